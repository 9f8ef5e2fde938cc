"""The engine of this process, made when it is first asked for."""

from __future__ import annotations

import logging

from . import discovery
from .engine import Engine
from .errors import ManifestError
from .records import lock
from .settings import Settings

_engine: Engine | None = None


def current() -> Engine:
    """The engine of this process, with all manifests loaded. It is made by the first call.

    Raises:
        CompatPatchesError: a manifest or a setting is broken, and the settings are strict.
    """
    global _engine
    if _engine is None:
        # Made without a lock, as modules are imported for it; of two threads' engines the first is the one.
        made = _made()
        with lock:
            if _engine is None:
                _engine = made
                made.open()
    return _engine


def _made() -> Engine:
    engine = Engine(Settings.from_environment())
    if engine.settings.log is not None:
        _log_to_standard_error(engine.settings.log)
    for complaint in engine.settings.complaints:
        engine.complain(complaint)
    for found in discovery.manifests(engine.settings):
        try:
            if isinstance(found, Exception):
                raise found
            engine.add(found)
        except ManifestError as error:
            engine.complain(f"a manifest was left out: {error}")
    return engine


def _log_to_standard_error(level: str) -> None:
    log = logging.getLogger("compat_patches")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("compat_patches[%(process)d] %(levelname)s: %(message)s"))
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
