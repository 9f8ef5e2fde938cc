"""The catalogue: which patches the loaded manifests declare, and what their names stand for."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ManifestError, UnknownPatchError
from .manifest import Manifest, Patch
from .relations import Relations


class Catalogue:
    """Patches by id and by group, both also qualified by the manifest (``manifest/id``, ``manifest/group``)."""

    def __init__(self) -> None:
        self._manifests: dict[str, Manifest] = {}
        self._by_id: dict[str, list[Patch]] = {}
        self._by_group: dict[str, list[Patch]] = {}
        self._patches: dict[str, Patch] = {}
        self._relations: Relations | None = None

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests, in the order in which they came."""
        return list(self._manifests.values())

    @property
    def relations(self) -> Relations:
        """What is between the patches, as far as they are loaded."""
        if self._relations is None:
            self._relations = Relations(self._patches)
        return self._relations

    def add(self, declared: Manifest) -> list[Patch]:
        """Take in a manifest.

        Returns:
            Its patches; none where the very same manifest is there already.

        Raises:
            ManifestError: another manifest of that name is there.
        """
        known = self._manifests.get(declared.name)
        if known is not None:
            if known.digest == declared.digest:
                return []
            raise ManifestError(
                declared.source,
                [
                    f"[manifest]: key 'name': {declared.name!r} is the name of the manifest that was loaded from "
                    f"{known.source}; expected one of its own"
                ],
            )
        self._manifests[declared.name] = declared
        self._relations = None
        for patch in declared.patches:
            self._patches[patch.qualified_id] = patch
            self._by_id.setdefault(patch.id, []).append(patch)
            for group in dict.fromkeys(patch.groups):
                self._by_group.setdefault(group, []).append(patch)
                self._by_group.setdefault(f"{declared.name}/{group}", []).append(patch)
        return list(declared.patches)

    def remove(self, name: str) -> list[Patch]:
        """Forget the manifest of that name.

        Returns:
            The patches that it declared; none where no such manifest is there.
        """
        declared = self._manifests.pop(name, None)
        if declared is None:
            return []
        for patch in declared.patches:
            del self._patches[patch.qualified_id]
            _take_out(self._by_id, patch.id, patch)
            for group in dict.fromkeys(patch.groups):
                _take_out(self._by_group, group, patch)
                _take_out(self._by_group, f"{name}/{group}", patch)
        return list(declared.patches)

    def short_id(self, patch: Patch) -> str:
        """The id, qualified by the manifest where another manifest declares the same."""
        return patch.id if len(self._by_id.get(patch.id, ())) <= 1 else patch.qualified_id

    def select(self, names: Sequence[str]) -> list[str]:
        """The qualified ids that ids and groups stand for; all where no name is given.

        Raises:
            UnknownPatchError: nothing has that name, or it could stand for several.
        """
        if not names:
            return list(self._patches)
        selected: dict[str, None] = {}
        for name in names:
            selected.update((patch.qualified_id, None) for patch in self._named(name))
        return list(selected)

    def _named(self, name: str) -> list[Patch]:
        if name in self._patches:
            return [self._patches[name]]
        by_id, by_group = self._by_id.get(name, []), self._by_group.get(name, [])
        # Two manifests may use a name for different things, but a group may have members in several.
        if len(by_id) > 1 or (by_id and by_group):
            groups = {f"{patch.manifest}/{name}": None for patch in by_group}
            choices = [*(patch.qualified_id for patch in by_id), *groups]
            raise UnknownPatchError(name, choices, f"several manifests declare {name!r}; say {' or '.join(choices)}")
        if not by_id and not by_group:
            known = {*self._by_id, *(group for group in self._by_group if "/" not in group)}
            raise UnknownPatchError(name, sorted(known))
        return by_id or by_group


def _take_out(names: dict[str, list[Patch]], name: str, patch: Patch) -> None:
    names[name] = [other for other in names[name] if other is not patch]
    if not names[name]:
        del names[name]
