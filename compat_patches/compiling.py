"""What ``torch.compile`` has to be told when a patch comes or goes that changes what it compiles."""

from __future__ import annotations

import sys
from types import FunctionType


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


def forget_function(function: FunctionType) -> None:
    """Let Dynamo read the parameters of a function anew, whose code was exchanged. Runs no code but the library's.

    Found by running it: ``torch._dynamo.variables.functions._spec_cache`` keeps them by function, not by code, and a
    function that was traced before could not be traced again.
    """
    cache = getattr(sys.modules.get("torch._dynamo.variables.functions"), "_spec_cache", None)
    if cache is not None:
        cache.pop(function, None)
