"""Keeps code that was compiled with a patch apart from code that was compiled without it.

Inductor's caches know torch by a hash of its files, which a patch at run time does not change. For patches that say
``affects_compile``, ``torch.compiler.config.cache_key_tag`` is given a mark, which is part of every key. What the user
has put into the tag stays there, and once such patches are undone so is the mark.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from . import __version__, importing
from .manifest import Patch

CONFIG = "torch.compiler.config"

log = logging.getLogger("compat_patches")
# torch's own setter of a configuration value is all that is called under it.
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_mark = ""
_wanted = ""
_listening = False


def mark(patches: Iterable[tuple[Patch, str]]) -> None:
    """Say which patches are applied that change what is compiled.

    Args:
        patches: each with the digest of its manifest.
    """
    global _wanted, _listening
    names = sorted(f"{patch.qualified_id} {digest}" for patch, digest in patches)
    content = "\n".join([__version__, *names])
    with _lock:
        _wanted = f"compat_patches:{hashlib.sha256(content.encode()).hexdigest()[:16]}" if names else ""
        listen = bool(_wanted) and not _listening and not importing.finished(CONFIG)
        _listening = _listening or listen
    if listen:
        importing.subscribe(_executed)
        importing.watch(CONFIG, _executed)
    # Also where it was being listened for: it may have been executed in between.
    _write()


def _executed(name: str) -> None:
    global _listening
    if name == CONFIG:
        with _lock:
            _listening = False
        importing.unwatch(CONFIG, _executed)
        importing.unsubscribe(_executed)
        _write()


def _write() -> None:
    global _mark
    config: Any = sys.modules.get(CONFIG)
    if config is None or importing.finished(CONFIG) is False:
        return
    with _lock:
        tag = getattr(config, "cache_key_tag", None)
        if not isinstance(tag, str):
            log.debug("torch has no cache_key_tag; compiled code is not kept apart by patches")
            return
        parts = [part for part in tag.split(" ") if part and part != _mark]
        changed = " ".join([*parts, *([_wanted] if _wanted else [])])
        _mark = _wanted
        if changed == tag:
            return
        try:
            config.cache_key_tag = changed
        except Exception:
            # Whoever imports torch, or applies a patch, is not to suffer for it.
            log.warning("compiled code is not kept apart by patches: torch refuses the tag", exc_info=True)
