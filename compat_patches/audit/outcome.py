"""The outcome of an audit: all judgements, and the releases they are about, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..manifest import Patch
from . import cache
from .judging import Judgement, Runner, judge
from .places import Release, Unread, by_version, label, open_release
from .trees import PlaceError


@dataclass(slots=True)
class Outcome:
    """What an audit found.

    Attributes:
        patches: the patches, in the order of their manifests.
        releases: from the oldest to the newest; what could not be read comes last.
    """

    patches: tuple[Patch, ...]
    releases: list[Release | Unread]
    _judgements: dict[tuple[str, str], Judgement] = field(default_factory=dict)

    @property
    def read(self) -> list[Release]:
        return [release for release in self.releases if isinstance(release, Release)]

    @property
    def unread(self) -> list[Unread]:
        return [release for release in self.releases if isinstance(release, Unread)]

    def of(self, patch: Patch, release: Release) -> Judgement:
        return self._judgements[patch.qualified_id, release.where]

    def row(self, patch: Patch) -> list[Judgement]:
        """The judgements of one patch, from the oldest release to the newest."""
        return [self.of(patch, release) for release in self.read]

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for patch in self.patches for judgement in self.row(patch)]

    @property
    def mismatches(self) -> list[Judgement]:
        return [judgement for judgement in self.judgements if judgement.is_mismatch]

    @property
    def is_fine(self) -> bool:
        """Whether nothing contradicts the manifest, and all releases could be read."""
        return not self.mismatches and not self.unread

    def name_of(self, patch: Patch) -> str:
        """The id, with the manifest's name where two manifests declare the same."""
        same = [other for other in self.patches if other.id == patch.id]
        return patch.id if len(same) == 1 else patch.qualified_id


def audit(
    patches: Sequence[Patch],
    wheres: Sequence[str],
    *,
    offline: bool = False,
    use_cache: bool = True,
    run: Runner | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Audit patches over releases.

    Args:
        patches: the declared patches.
        wheres: environments, wheels, versions.
        offline: fetch nothing.
        use_cache: use what earlier audits found, and keep what this one finds.
        run: asks running code for what the sources cannot tell.
        tell: is told what is being done, for a progress display.
    """
    store = cache.Store() if use_cache else None
    releases: list[Release | Unread] = []
    judgements: dict[tuple[str, str], Judgement] = {}
    # One release is open at a time; the directory of a wheel alone takes 15 MB.
    for release in _opened(wheres, offline, store, tell):
        if isinstance(release, Release):
            try:
                for judgement in judge(patches, release, run):
                    judgements[judgement.patch.qualified_id, release.where] = judgement
            except PlaceError as error:
                release = Unread(release.where, str(error))
            else:
                keep(release, store)
                release.facts.close()
        releases.append(release)
    releases = by_version(releases)
    label(releases)
    return Outcome(tuple(patches), releases, judgements)


def open_all(
    wheres: Sequence[str],
    *,
    offline: bool = False,
    use_cache: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Release | Unread]:
    """Open all places, each once, and label them. One that cannot be read does not keep the others from it."""
    releases = by_version(list(_opened(wheres, offline, cache.Store() if use_cache else None, tell)))
    label(releases)
    return releases


def _opened(
    wheres: Sequence[str], offline: bool, store: cache.Store | None, tell: Callable[[str], None]
) -> Iterator[Release | Unread]:
    places = list(dict.fromkeys(wheres))
    for number, where in enumerate(places, 1):

        def tell_of(text: str, number: int = number) -> None:
            tell(f"{text} ({number} of {len(places)})")

        try:
            yield open_release(where, offline=offline, store=store, tell=tell_of)
        except PlaceError as error:
            yield Unread(where, str(error))


def keep(release: Release, store: cache.Store | None) -> None:
    """Keep what was found out about a release."""
    if store is not None and release.facts.changed:
        store.save(release.tree, release.facts.known)
