"""What the startup files of compat_patches call in every Python process of an environment.

A module of its own, beside the package, for two reasons. Importing ``compat_patches`` activates it, so whether that is
wanted has to be decided before. And most processes never import torch: all that they pay for is this module, which
imports os and sys alone (every interpreter has imported them by then), and one finder, which imports the package when
torch is about to be imported.

Nothing that goes wrong here reaches the user's process. With ``COMPAT_PATCHES_LOG`` it is told on standard error.

pytest wants to rewrite the modules of every package that has a plugin, and would warn that this one is imported
already: PYTEST_DONT_REWRITE.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MARKER = "compat_patches.enabled"
"""The file by which ``compat-patches enable`` says yes for an environment. After an uninstall it means nothing."""

fired: list[str] = []
"""The startup files that called, in the order in which they did; for ``compat-patches doctor``."""

failure: "BaseException | None" = None
"""What went wrong here, for ``compat-patches doctor``."""


def start(by: str = "compat_patches.start", unless_off: bool = False) -> None:
    """Activate compat_patches if the environment or ``compat-patches enable`` says so.

    Args:
        by: the startup file that calls. A line of a ``.start`` file calls without arguments.
        unless_off: activate where nobody says so, too, only not where the environment says off.
    """
    # In a virtual environment site reads each .pth file twice, and knows only the second time of the user's site.
    if by not in fired:
        fired.append(by)
    try:
        if switch() is not False if unless_off else wanted():
            _activate()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # A SystemExit in a startup file would end the interpreter.
        _report(error)


def wanted() -> bool:
    """Whether this process is to be activated. ``COMPAT_PATCHES`` has the last word where it says on or off."""
    said = switch()
    return any(map(os.path.exists, markers())) if said is None else said


def switch() -> "bool | None":
    """What ``COMPAT_PATCHES`` says: True for on, False for off, None where it says neither."""
    word = os.environ.get("COMPAT_PATCHES", "").strip().lower()
    if word in ("on", "1", "true", "yes"):
        return True
    return False if word in ("off", "0", "false", "no") else None


def markers() -> list[str]:
    """Where a marker counts for this process: at the top of the environment, and in the user's site if it is in use."""
    places = [sys.prefix]
    # While site runs it has set these; without site (-S) nobody calls us.
    site = sys.modules.get("site")
    if site is not None and getattr(site, "ENABLE_USER_SITE", False):
        places.append(site.getusersitepackages())
    return [os.path.join(place, MARKER) for place in places]


def _activate() -> None:
    if "torch" in sys.modules:
        import compat_patches  # noqa: F401  # importing activates

        return
    # A manifest that the environment names may be about any package, so it is read as soon as site has put all folders
    # on the path. The sign of that is its search for a sitecustomize.
    if os.environ.get("COMPAT_PATCHES_MANIFEST") and not sys.flags.ignore_environment:
        _finder.awaited = ("torch", "sitecustomize")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder:
    """Imports compat_patches when torch is about to be imported, and hands over to its finder."""

    awaited: tuple[str, ...] = ("torch",)

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in self.awaited:
            return None
        try:
            import compat_patches.importing
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _report(error)
            return None
        if name != "torch":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        # The import system goes on behind this place of the list, and would miss the finder that is now before it.
        # What this raises, the user asked for (COMPAT_PATCHES_STRICT).
        return compat_patches.importing.FINDER.find_spec(name, path, target)


_finder = _Finder()


def _report(error: BaseException) -> None:
    global failure
    failure = error
    if os.environ.get("COMPAT_PATCHES_LOG", "").strip():
        try:
            text = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"compat_patches: could not be activated by {', '.join(fired)}: {text}\n")
        except Exception:
            pass  # No standard error, or a closed one.
