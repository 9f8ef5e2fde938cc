"""What activation does.

1. ``COMPAT_PATCHES=off``: nothing.
2. Otherwise a finder is put on ``sys.meta_path`` that waits for torch. A process that never imports torch pays for that
   and for nothing else. Manifests that the environment names may be about other packages; they are read at once.
3. When torch is found (or at once, where it is there already) the manifests are read, and each patch is judged by the
   version of that torch, which is read from its files. Patches of the environment are made now, before torch runs.
4. Each other patch waits until its target's module has been executed, then looks for the evidence, and is applied.

Whatever goes wrong is reported and leaves the process alone; with ``COMPAT_PATCHES_STRICT=1`` it raises.
"""

import os
import sys

from . import importing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine import Engine

ROOTS = ("torch",)
"""The packages that the built-in manifest is about."""


def activate() -> None:
    """Arrange that patches are applied when their targets are imported. Calling it again changes nothing."""
    if _switched_off():
        return
    # First, since what follows may raise, and a startup file swallows that: then importing torch raises it again.
    for root in ROOTS:
        if root not in sys.modules:
            importing.expect(root, _start_for)
    named = os.environ.get("COMPAT_PATCHES_MANIFEST") and not sys.flags.ignore_environment
    if named or any(root in sys.modules for root in ROOTS):
        _start()


def engine() -> "Engine":
    """The engine of this process; what is wanted in every process has been applied, as far as it can be yet."""
    from .process import current

    found = current()
    found.start_once()
    return found


def _switched_off() -> bool:
    return os.environ.get("COMPAT_PATCHES", "").strip().lower() in ("off", "0", "false", "no")


def _start_for(root: str, origin: "str | None") -> None:
    _start(origin if root == "torch" else None)


def _start(torch_init: "str | None" = None) -> None:
    from .errors import CompatPatchesError

    try:
        from . import answers
        from .process import current

        current().start_once(torch_init)
        answers.remember()
    except CompatPatchesError:
        # Raised only where the user asked for strictness.
        raise
    except Exception:
        # A defect of ours; the import that woke us is somebody else's and goes on.
        import logging

        logging.getLogger("compat_patches").warning("compat_patches could not start", exc_info=True)
