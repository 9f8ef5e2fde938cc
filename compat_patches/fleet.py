"""What a process has in effect, in a form that can be compared with other processes, here and on other machines."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from . import __version__, planning
from .engine import Engine


@dataclass(frozen=True, slots=True)
class Member:
    """One process of several that should have the same patches in effect.

    Attributes:
        title: how people call it: a rank, a node, an actor.
        host: the name of its machine.
        pid: its process id.
        digest: the hash of what follows; equal digests mean equal patches.
        versions: of compat_patches, Python, torch, torch's build, and the digests of the manifests.
        patches: for each qualified id ``on``, ``off``, or what is out of order with it.
        states: for each qualified id the state and its reason, for people. These change while modules are imported.
        error: why it cannot tell, where it cannot; the rest is empty then.
    """

    title: str
    host: str = ""
    pid: int = 0
    digest: str = ""
    versions: dict[str, str | None] = field(default_factory=dict)
    patches: dict[str, str] = field(default_factory=dict)
    states: dict[str, tuple[str, str]] = field(default_factory=dict)
    error: str = ""

    def as_document(self) -> dict[str, Any]:
        """The same as a dictionary that JSON can hold."""
        return asdict(self)


def describe(engine: Engine, title: str) -> Member:
    """Describe this process.

    A patch that waits for its target counts like one that is applied, and so does one whose evidence has found since
    that it is not needed: what a process has imported so far makes no difference.
    """
    circumstances = engine.circumstances
    versions: dict[str, str | None] = {
        "compat_patches": __version__,
        "python": "{}.{}".format(*sys.version_info[:2]),
        "torch": circumstances.torch,
        "build": circumstances.build,
        **{f"manifest {declared.name}": declared.digest for declared in engine.manifests},
    }
    wanted = {patch.qualified_id for patch in engine.wanted()}
    patches, states = {}, {}
    for patch, status in zip(engine.patches(), engine.status(), strict=True):
        states[patch.qualified_id] = (status.state, status.reason)
        if status.state in ("failed", "lost", "overlaid"):
            patches[patch.qualified_id] = status.state
        else:
            on = patch.qualified_id in wanted and _admitted(engine, patch)
            patches[patch.qualified_id] = "on" if on else "off"
    return Member(
        title,
        socket.gethostname(),
        os.getpid(),
        _hash([versions, patches]),
        versions,
        dict(sorted(patches.items())),
        states,
    )


def compare(members: Sequence[Member]) -> list[str]:
    """Find who differs from most of the others.

    Returns:
        A line for each that does, with what is different; none where all are the same.
    """
    counts = Counter(member.digest for member in members if not member.error)
    if len(counts) == 1 and not any(member.error for member in members):
        return []
    usual = next((member for member in members if counts and member.digest == counts.most_common(1)[0][0]), None)
    lines = []
    for member in members:
        if member.error:
            lines.append(f"{member.title}: {member.error}")
        elif usual is not None and member.digest != usual.digest:
            lines.append(f"{member.title} ({member.host}, pid {member.pid}): {'; '.join(_differences(member, usual))}")
    return lines


def _differences(member: Member, usual: Member) -> list[str]:
    found = []
    for ours, theirs in ((member.versions, usual.versions), (member.patches, usual.patches)):
        for name in sorted({*ours, *theirs}):
            here, there = ours.get(name, "missing"), theirs.get(name, "missing")
            if here != there:
                found.append(f"{name} is {_short(here)}, and {_short(there)} at {usual.title}{_why(member, name)}")
    return found


def _short(value: str | None) -> str:
    # Manifests are told apart by hashes; a few digits do for people.
    return "none" if value is None else value[:12] if len(value) == 64 else value


def _why(member: Member, name: str) -> str:
    state, reason = member.states.get(name, ("", ""))
    return f" ({state}: {reason})" if reason else ""


def _admitted(engine: Engine, patch: Any) -> bool:
    try:
        planning.admit(patch, engine.circumstances, force=False)
    except planning.Skip:
        return False
    return True


def _hash(content: Any) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
