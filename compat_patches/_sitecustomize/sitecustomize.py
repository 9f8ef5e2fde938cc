"""Activates compat_patches where a startup file of ``site-packages`` cannot, then runs the user's own sitecustomize.

For ``PYTHONPATH``, which every child inherits, also a Python of another environment and of another age: there the
package is not found, and nothing happens. Hence only what every Python back to 2.7 can read.

Python runs the first sitecustomize of the path alone. So that the user's own is found, imported and reported exactly as
if this folder were not on the path, this module takes the folder off the path, itself out of ``sys.modules``, and
imports ``sitecustomize`` again.
"""

# mypy: ignore-errors

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _startup_module():
    try:
        import _compat_patches_startup
    except ImportError:
        # In a zip file, say. Only for the very Python that compat_patches runs in (compat_patches/launch.py).
        this_python = ".".join(map(str, sys.version_info[:2])) + ":" + sys.prefix
        if os.environ.get("COMPAT_PATCHES_PYTHON") != this_python:
            return None
        sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
        try:
            import _compat_patches_startup
        except ImportError:
            return None
    return _compat_patches_startup


def _activate():
    startup = _startup_module()
    # Who put this folder on the path wants it, unless the environment says off.
    if startup is not None:
        startup.start("sitecustomize.py", unless_off=True)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
_activate()

# Kept until the end: before Python 3.4 a module that nobody refers to loses its globals.
_this = sys.modules.pop(__name__)
# Where there is no other, the error says so to site.py, which expects it; where it raises, site.py reports it.
import sitecustomize  # noqa: E402, F401
