"""Relations between patches: which is applied after which, and which are not applied together.

They are declared by name, and whoever is named may be in a manifest that is loaded later, or in none. A name that leads
nowhere and a circle of `after` and `before` are remarked upon and otherwise passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .manifest import Patch

_MOST_CIRCLES = 20
_MOST_SHOWN = 10
"""So many circles are told, and so many members of each; who has mended those is told the next."""


class Relations:
    """What is between the patches of all manifests, by qualified id.

    Args:
        patches: all patches, by qualified id, in the order in which they were declared.
    """

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._earlier: dict[str, dict[str, None]] = {}
        self._conflicts: dict[str, dict[str, None]] = {}
        self._remarks: dict[str, list[str]] = {}
        self.circles: list[str] = []
        related = [patch for patch in patches.values() if patch.after or patch.before or patch.conflicts]
        if not related:
            return
        by_id: dict[str, list[str]] = {}
        for qualified_id, patch in patches.items():
            by_id.setdefault(patch.id, []).append(qualified_id)
        for patch in related:
            ours = patch.qualified_id
            for other in self._named(patch, "after", patches, by_id):
                self._earlier.setdefault(ours, {})[other] = None
            for other in self._named(patch, "before", patches, by_id):
                self._earlier.setdefault(other, {})[ours] = None
            for other in self._named(patch, "conflicts", patches, by_id):
                self._conflicts.setdefault(ours, {})[other] = None
                self._conflicts.setdefault(other, {})[ours] = None
        self._break_circles()

    def order(self, qualified_ids: Iterable[str]) -> list[str]:
        """Sort patches so that each comes after those it is to be applied after; otherwise the order stays."""
        wanted = dict.fromkeys(qualified_ids)
        if not self._earlier:
            return list(wanted)
        ordered: dict[str, None] = {}
        for first in wanted:
            # Not by recursion: a chain may be as long as a manifest.
            path = [(first, iter(self._earlier.get(first, ())))]
            while path:
                patch, earlier = path[-1]
                ahead = next((other for other in earlier if other in wanted and other not in ordered), None)
                if ahead is None:
                    ordered[patch] = None
                    path.pop()
                else:
                    path.append((ahead, iter(self._earlier.get(ahead, ()))))
        return list(ordered)

    def conflicts(self, qualified_id: str) -> list[str]:
        """The patches that are not applied together with this one, whichever of the two says so."""
        return list(self._conflicts.get(qualified_id, ()))

    def remarks(self, qualified_id: str) -> list[str]:
        """What of a patch's relations could not be heeded, and why."""
        return self._remarks.get(qualified_id, [])

    def _named(
        self, patch: Patch, key: str, patches: Mapping[str, Patch], by_id: Mapping[str, list[str]]
    ) -> Iterable[str]:
        for name in getattr(patch, key):
            # An id that is not qualified is rather the manifest's own.
            own = f"{patch.manifest}/{name}"
            found = [own] if own in patches else [name] if name in patches else by_id.get(name, [])
            if len(found) == 1:
                yield found[0]
            elif found:
                choices = " or ".join(found)
                self._remark(patch.qualified_id, f"{key} {name!r}: several patches have this id; say {choices}")
            else:
                self._remark(patch.qualified_id, f"{key} {name!r}: no such patch is loaded")

    def _break_circles(self) -> None:
        """Leave out, of each circle, the one relation that closes it, so that there is an order."""
        done: set[str] = set()
        for first in list(self._earlier):
            path = [] if first in done else [first]
            ways = [iter(list(self._earlier.get(name, ()))) for name in path]
            on_path = set(path)
            while path:
                other = next((name for name in ways[-1] if name not in done), None)
                if other is None:
                    done.add(path[-1])
                    on_path.discard(path.pop())
                    ways.pop()
                elif other in on_path:
                    del self._earlier[path[-1]][other]
                    self._tell_of_circle(path[path.index(other) :][::-1])
                else:
                    path.append(other)
                    ways.append(iter(list(self._earlier.get(other, ()))))
                    on_path.add(other)

    def _tell_of_circle(self, members: list[str]) -> None:
        if len(self.circles) == _MOST_CIRCLES:
            return
        shown = ", ".join(members[:_MOST_SHOWN]) + (", …" if len(members) > _MOST_SHOWN else "")
        self.circles.append(f"after and before go round in a circle ({shown}); one of them is passed over")
        for member in members:
            self._remark(member, self.circles[-1])

    def _remark(self, qualified_id: str, text: str) -> None:
        self._remarks.setdefault(qualified_id, []).append(text)
