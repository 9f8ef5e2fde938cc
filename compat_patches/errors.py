"""The exceptions of compat_patches. Each says what was found, what was expected and what to do."""

from __future__ import annotations

_MOST_SHOWN = 40
"""So many names are listed to who gave an unknown one."""


class CompatPatchesError(Exception):
    """Base of every exception that compat_patches raises on purpose."""


class ManifestError(CompatPatchesError):
    """A manifest that cannot be loaded.

    Args:
        source: the file (or the name of the text) that was read.
        problems: one line for each fault; all faults of a manifest are reported in one pass.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        super().__init__(source, problems)
        self.source = source
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


class UnknownPatchError(CompatPatchesError, LookupError):
    """A patch id or group that no loaded manifest declares."""

    def __init__(self, name: str, known: list[str], why: str | None = None) -> None:
        super().__init__(name, known, why)
        self.name = name
        self.known = known
        self.why = why

    def __str__(self) -> str:
        import difflib

        if self.why is not None:
            return self.why
        near = difflib.get_close_matches(self.name[:64], self.known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        more = len(self.known) - _MOST_SHOWN
        known = ", ".join(self.known[:_MOST_SHOWN]) or "none"
        return f"no patch and no group is named {self.name!r}{hint} Known: {known}{f', and {more} more' * (more > 0)}"


class PatchError(CompatPatchesError):
    """A patch that could not be applied or undone. Raised only where the user asked for strictness."""


class MissingTargetError(PatchError, LookupError):
    """What a patch wants to change is not there.

    Args:
        target: the whole target, ``package.module:Qualified.name``.
        holder: the part that was found.
        missing: the part of the name that ``holder`` has not got.
    """

    def __init__(self, target: str, holder: str, missing: str) -> None:
        super().__init__(target, holder, missing)
        self.target = target
        self.holder = holder
        self.missing = missing

    def __str__(self) -> str:
        return f"target missing: {self.holder} has no {self.missing!r} (wanted {self.target})"


class DifferentPatchesError(CompatPatchesError):
    """Processes of one job do not have the same patches in effect.

    Args:
        lines: who differs from most of the others, and in what.
        count: how many processes there are.
    """

    def __init__(self, lines: list[str], count: int) -> None:
        super().__init__(lines, count)
        self.lines = lines
        self.count = count

    def __str__(self) -> str:
        found = "\n  ".join(self.lines)
        return f"not all of the {self.count} processes have the same patches in effect:\n  {found}"
