"""The audit: what the sources of torch releases say about the declared patches.

Reads source files, in an environment or inside of a wheel, and never imports what it reads. From file to answer:
:mod:`.trees` reads files, :mod:`.places` finds them, :mod:`.scopes` and :mod:`.facts` say what a target is,
:mod:`.cache` remembers it, :mod:`.judging` compares it with what a manifest declares.
"""
