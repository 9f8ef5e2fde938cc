"""The finder: tells when a module that somebody waits for is found, and when it has been executed.

Imports os, sys and built-ins only, as every Python process of a job may pay for it. For a module that nobody waits for
the finder answers with one look into a dictionary. It is on ``sys.meta_path`` only while somebody waits.

Who waits is called without any lock of ours held; the import system's own lock on the module is held, so that no
other thread sees the module before who waits has seen it.
"""

import sys
from _thread import allocate_lock, get_ident
from os import register_at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# One lock for this module's own few dictionaries. What is done under it calls nobody.
_lock = allocate_lock()
# Taken before a fork, so that a child finds it free. The engine, whose lock comes before this one, does so earlier.
register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_roots: "dict[str, Callable[[str, str | None], None]]" = {}
_watched: "dict[str, set[Any]]" = {}
_executing: set[str] = set()
_executed: set[str] = set()  # While who waits is told, the import system still calls them unfinished.
_listeners: "list[Callable[[str], None]]" = []
_searching: set[tuple[int, str]] = set()


def expect(root: str, callback: "Callable[[str, str | None], None]") -> None:
    """Call ``callback(name, origin)`` once, when the module ``root`` is about to be made; nothing of it has run yet."""
    with _lock:
        _roots[root] = callback
        _attend()


def forget(root: str) -> None:
    """Take an :func:`expect` back."""
    with _lock:
        _roots.pop(root, None)
        _attend()


def subscribe(listener: "Callable[[str], None]") -> None:
    """Have ``listener(name)`` called for each watched module that has been executed."""
    _listeners.append(listener)


def unsubscribe(listener: "Callable[[str], None]") -> None:
    """Take a :func:`subscribe` back."""
    _listeners.remove(listener)


def watch(name: str, who: "Any") -> None:
    """Be told each time the module has been executed, on reload too. Doing it twice is doing it once.

    Args:
        name: the module.
        who: an object that stands for who waits; the same for :func:`unwatch`.
    """
    with _lock:
        _watched.setdefault(name, set()).add(who)
        _attend()


def unwatch(name: str, who: "Any") -> None:
    """Take a :func:`watch` back, where there is one."""
    with _lock:
        waiting = _watched.get(name, set())
        waiting.discard(who)
        if not waiting:
            _watched.pop(name, None)
        _attend()


def finished(name: str) -> "bool | None":
    """Whether a module has been executed: None where it is not loaded, False while it is being executed.

    Where it is being executed, and was found before anybody waited for it, this arranges that who waits is told in
    the end.
    """
    module = sys.modules.get(name)
    if module is None:
        return None
    if name in _executing:
        return False
    if name in _executed:
        return True
    if _is_lazy(module):
        # To ask it for anything at all would execute it.
        if name in _watched:
            _stand_before_loader(object.__getattribute__(module, "__spec__"))
        return None
    spec = getattr(module, "__spec__", None)
    return not (getattr(spec, "_initializing", False) and _tell_when_initialised(spec))


def executing_above(name: str) -> "str | None":
    """The outermost package above a module that is still being executed, None where there is none."""
    package = name.rpartition(".")[0]
    outermost = None
    while package:
        if finished(package) is False:
            outermost = package
        package = package.rpartition(".")[0]
    return outermost


def _attend() -> None:
    """Be on ``sys.meta_path`` exactly while somebody waits. Called under the lock."""
    wanted = bool(_roots or _watched)
    present = any(entry is FINDER for entry in sys.meta_path)
    if wanted and not present:
        sys.meta_path.insert(0, FINDER)
    elif present and not wanted:
        # A new list would lose what another thread inserts meanwhile.
        for index, entry in enumerate(sys.meta_path):
            if entry is FINDER:
                del sys.meta_path[index]
                break


class _Finder:
    """Lets the finders behind it find the module, and then puts itself between the module and its loader."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if fullname not in _watched and fullname not in _roots:
            return None
        search = (get_ident(), fullname)
        if search in _searching:  # A finder that asks the whole of sys.meta_path, as wrapt's does.
            return None
        try:
            _searching.add(search)
            spec = self._find(fullname, path, target)
        finally:
            _searching.discard(search)
        if spec is None:
            return None
        if spec.loader is not None:
            _stand_before_loader(spec)
            return spec
        # A namespace package: nothing of it is executed, but the import system marks when it is made.
        _about_to_be_made(spec)
        if fullname in _watched and not hasattr(type(spec), "_compat_patches_watches"):
            spec.__class__ = _watched_type(type(spec))
        return spec

    def _find(self, fullname: str, path: "Sequence[str] | None", target: "ModuleType | None") -> "ModuleSpec | None":
        finders = list(sys.meta_path)
        for index, finder in enumerate(finders):
            if finder is self:
                finders = finders[index + 1 :]
                break
        for finder in finders:
            find_spec = getattr(finder, "find_spec", None)
            if find_spec is not None and finder is not self:
                spec: ModuleSpec | None = find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None


FINDER = _Finder()


def _about_to_be_made(spec: "ModuleSpec") -> None:
    """Tell who expects a root. Not when it is found: many programs only look whether torch is there."""
    with _lock:
        callback = _roots.pop(spec.name, None)
    if callback is not None:
        callback(spec.name, spec.origin if spec.has_location else None)


class _Around:
    """Stands before a module's loader until the module is executed, and then leaves no trace of itself."""

    def __init__(self, loader: "Any") -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    @property  # type: ignore[misc]  # read-only, while object's can be assigned
    def __class__(self) -> type:
        """The loader's own class, for whoever asks ``isinstance`` of ``find_spec(name).loader``."""
        return type(self._loader)

    def _step_back(self, module: "ModuleType") -> None:
        spec = module.__spec__
        if spec is not None and vars(spec).get("loader") is self:
            spec.loader = self._loader
        module.__loader__ = self._loader


class _Loader(_Around):
    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        _about_to_be_made(spec)
        create_module = getattr(self._loader, "create_module", None)
        return create_module(spec) if create_module is not None else None

    def exec_module(self, module: "ModuleType") -> None:
        name = module.__name__
        # A private copy that somebody makes by hand is none of our business.
        registered = sys.modules.get(name) is module
        self._step_back(module)
        if not registered:
            self._loader.exec_module(module)
            return
        try:
            _executing.add(name)
            self._loader.exec_module(module)
        finally:
            _executing.discard(name)
        _tell_at_end(name)


class _LegacyLoader(_Around):
    """Before a loader that only knows ``load_module``."""

    def __init__(self, loader: "Any", spec: "ModuleSpec") -> None:
        super().__init__(loader)
        self._spec = spec

    def load_module(self, name: str) -> "ModuleType":
        _about_to_be_made(self._spec)
        try:
            _executing.add(name)
            module: ModuleType = self._loader.load_module(name)
        finally:
            _executing.discard(name)
        self._step_back(module)
        _tell_at_end(name)
        return module


def _stand_before_loader(spec: "Any") -> None:
    if issubclass(type(spec.loader), _Around):
        return
    modern = hasattr(spec.loader, "exec_module")
    spec.loader = _Loader(spec.loader) if modern else _LegacyLoader(spec.loader, spec)


def _is_lazy(module: "Any") -> bool:
    """Whether a module of :class:`importlib.util.LazyLoader` has not been executed yet."""
    # importlib.util itself would have to be imported for an isinstance.
    return type(module).__name__ == "_LazyModule" and type(module).__module__ == "importlib.util"


def _tell_at_end(name: str) -> None:
    """Tell from within the import, so that what a listener raises fails the import as the module's own code would."""
    try:
        _executed.add(name)
        _tell(name)
    finally:
        _executed.discard(name)


def _tell(name: str) -> None:
    if name in sys.modules and name in _watched:
        for listener in tuple(_listeners):
            listener(name)


_spec_types: dict[type, type] = {}


def _tell_when_initialised(spec: "Any") -> bool:
    """Arrange that who waits is told when the import system is done with a module that is being executed.

    The import system marks the spec of such a module with ``_initializing`` and takes the mark away when it is done;
    that store is the only sign of it. The spec is given a class that notices it, and then gets its own class back.

    Returns:
        False where the import system is done already, or the spec does not let itself be watched.
    """
    original = type(spec)
    if not hasattr(original, "_compat_patches_watches"):
        try:
            spec.__class__ = _watched_type(original)
        except TypeError:
            return False
    if spec._initializing:
        return True
    if type(spec) is _spec_types.get(original):
        spec.__class__ = original
    return False


def _watched_type(original: type) -> type:
    if original not in _spec_types:

        class WatchedSpec(original):  # type: ignore[misc]  # a class that is a variable
            _compat_patches_watches = True

            def __setattr__(self, key: str, value: "Any") -> None:
                object.__setattr__(self, key, value)
                if key == "_initializing" and not value:
                    self.__class__ = original
                    _tell(self.name)

        WatchedSpec.__name__, WatchedSpec.__qualname__ = original.__name__, original.__qualname__
        _spec_types.setdefault(original, WatchedSpec)
    return _spec_types[original]
