"""What ``torch.compile`` has to be told when a patch comes or goes that changes what it compiles."""

from __future__ import annotations

import sys


def forget_classes() -> None:
    """Let Dynamo note anew which classes it puts into graphs: it looks at ``torch.Event`` and its like once, for good.

    Found by running it: ``UserDefinedClassVariable._in_graph_classes`` is a ``functools.cache``, and after a patch of
    such a class was undone Dynamo refused torch's own.
    """
    module = sys.modules.get("torch._dynamo.variables.user_defined")
    variable = getattr(module, "UserDefinedClassVariable", None)
    cache_clear = getattr(getattr(variable, "_in_graph_classes", None), "cache_clear", None)
    if cache_clear is not None:
        cache_clear()
