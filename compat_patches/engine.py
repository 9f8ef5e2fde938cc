"""The engine: what is wanted of each patch, and how each stands. The only owner of state.

What is wanted is written down here, under the lock; :class:`~compat_patches.settling.Settler` brings it about.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import importing, manifest, planning
from .catalogue import Catalogue
from .errors import CompatPatchesError, UnknownPatchError
from .manifest import Manifest, Patch
from .predicates import Circumstances
from .records import Claim, Record, Wish, do_postponed, lock, when_free
from .settings import Settings
from .settling import Settler
from .target import Slot

if TYPE_CHECKING:
    from .report import PatchStatus

log = logging.getLogger("compat_patches")


class Engine:
    """Applies, reverts and verifies the patches of the manifests that it was given.

    Args:
        settings: what the user wants; nothing out of the ordinary where it is left out.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings if settings is not None else Settings()
        self._records: dict[str, Record] = {}
        self._catalogue = Catalogue()
        self._settler = Settler(self._records, self._catalogue, lambda: self.circumstances, self.settings.strict)
        self._circumstances: Circumstances | None = None
        self._simulated: Circumstances | None = None
        self._torch_init: str | None = None
        self._started = False
        self.complaints: list[str] = []
        self._circles_told: set[str] = set()

    def open(self) -> None:
        """Listen to the import system."""
        importing.subscribe(self._settler.executed)

    def close(self) -> None:
        """Undo everything and let go of the import system."""
        self.revert(*self._records)
        importing.unsubscribe(self._settler.executed)

    # --- manifests ---------------------------------------------------------------------------------------------

    def add(self, declared: Manifest) -> list[Patch]:
        """Take in a manifest. Nothing of it is applied yet.

        Returns:
            Its patches; none where the very same manifest was taken in before.

        Raises:
            ManifestError: another manifest of that name is loaded.
        """
        with lock:
            new = self._catalogue.add(declared)
            self._records.update((patch.qualified_id, Record(patch)) for patch in new)
            return new

    def load_manifest(self, path: str | os.PathLike[str]) -> list[PatchStatus]:
        """Load a manifest file and apply what it declares for every process.

        Raises:
            ManifestError: the file cannot be loaded; nothing of it is.
        """
        declared = manifest.load(path)
        new = [patch.qualified_id for patch in self.add(declared)]
        if new:
            self.start(*new)
        return self.status(*(patch.qualified_id for patch in declared.patches))

    def remove(self, name: str) -> None:
        """Undo the patches of the manifest of that name and forget them; nothing where there is no such manifest."""
        with lock:
            declared = [patch for known in self._catalogue.manifests if known.name == name for patch in known.patches]
        self.revert(*(patch.qualified_id for patch in declared))
        with lock:
            for patch in self._catalogue.remove(name):
                self._records.pop(patch.qualified_id, None)

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests that are loaded."""
        with lock:
            return self._catalogue.manifests

    def patches(self, *names: str) -> list[Patch]:
        """The declarations that ids or groups name; all where none is named.

        Raises:
            UnknownPatchError: nothing has that name.
        """
        return [record.patch for record in self._select(names)]

    def wanted(self) -> list[Patch]:
        """The patches that are to be applied, whether they are, are not yet, or cannot be."""
        with lock:
            return [record.patch for record in self._records.values() if record.wants]

    def _select(self, names: Sequence[str]) -> list[Record]:
        with lock:
            return [self._records[qualified_id] for qualified_id in self._catalogue.select(names)]

    # --- circumstances -----------------------------------------------------------------------------------------

    @property
    def circumstances(self) -> Circumstances:
        """What predicates are asked about; a simulation, where there is one."""
        if self._simulated is not None:
            return self._simulated
        known = self._circumstances
        if known is None or known.torch is None:
            known = self._circumstances = Circumstances.current(self._torch_init)
        return known

    def simulate(self, circumstances: Circumstances | None) -> Circumstances | None:
        """Ask predicates about other circumstances from now on; about the real ones with None.

        Returns:
            What was simulated before.
        """
        previous, self._simulated = self._simulated, circumstances
        return previous

    def judge_again(self) -> None:
        """Ask the predicates once more about all patches that are wanted, as the circumstances have changed.

        What they refuse now is undone; what they let through now is applied; what stays is not touched.
        """
        self._judge(self._select(()))

    def _judge(self, records: list[Record]) -> None:
        for record in records:
            with lock:
                wants, force = record.wants, record.forced
            if not wants:
                continue
            try:
                planning.admit(record.patch, self.circumstances, force=force)
            except planning.Skip as skip:
                with lock:
                    if record.wants and not record.patch.irreversible:
                        self._settler.drop(record)
                self._settler.note(record, "skipped", str(skip))
        self._settler.settle([record for record in records if record.wants])

    # --- what is wanted ----------------------------------------------------------------------------------------

    def start_once(self, torch_init: str | None = None) -> None:
        """Apply what is wanted in every process; later calls do nothing.

        Args:
            torch_init: the ``__init__.py`` of the torch that is about to be imported.
        """
        with lock:
            if torch_init is not None:
                self._torch_init, self._circumstances = torch_init, None
            if self._started:
                return
            self._started = True
        self.start()

    def start(self, *names: str) -> None:
        """Apply what the settings and the manifests want in every process, of all patches or of the named.

        Raises:
            PatchError: a patch failed, where the settings are strict. The others are applied all the same.
        """
        only, disable = self._listed(self.settings.only), self._listed(self.settings.disable)
        wanted = []
        for record in self._select(names):
            unwanted = self._unwanted(record.patch, only, disable)
            with lock:
                record.wanted = unwanted is None
                if unwanted is not None:
                    record.note("skipped", unwanted)
                else:
                    wanted.append(record)
        with lock:
            circles = [text for text in self._catalogue.relations.circles if text not in self._circles_told]
            self._circles_told.update(circles)
        for text in circles:
            log.warning("%s", text)
        self._settler.settle(wanted)

    def _listed(self, names: tuple[str, ...]) -> set[str]:
        found: set[str] = set()
        for name in names:
            try:
                found.update(record.patch.qualified_id for record in self._select((name,)))
            except UnknownPatchError as error:
                self.complain(f"COMPAT_PATCHES_ONLY or COMPAT_PATCHES_DISABLE: {error}")
        return found

    def _unwanted(self, patch: Patch, only: set[str], disable: set[str]) -> str | None:
        if self.settings.off:
            return "switched off by COMPAT_PATCHES=off"
        if patch.qualified_id in disable:
            return "disabled by COMPAT_PATCHES_DISABLE"
        if self.settings.only:
            return None if patch.qualified_id in only else "not among COMPAT_PATCHES_ONLY"
        if patch.scope == "context":
            return "applied only where it is asked for: with compat_patches.applied(…), or by its name"
        if not patch.enabled:
            return "opt-in: applied only by its name"
        if patch.irreversible:
            return "cannot be undone, so it is applied only by its name"
        return None

    def complain(self, text: str) -> None:
        """Report what is wrong with the surroundings (not with one patch), and keep it in :attr:`complaints`.

        Raises:
            CompatPatchesError: where the settings are strict.
        """
        self.complaints.append(text)
        if self.settings.strict:
            raise CompatPatchesError(text)
        log.warning("%s", text)

    def apply(self, *names: str, force: bool = False) -> list[PatchStatus]:
        """Apply patches, for good. Applying one that is applied does nothing.

        Args:
            names: ids or groups.
            force: pass over predicates, evidence and pins; never over a missing target.

        Returns:
            How they stand now.

        Raises:
            UnknownPatchError: nothing has that name.
            PatchError: a patch failed, where the settings are strict.
        """
        return self._want(names, True, force)

    def revert(self, *names: str) -> list[PatchStatus]:
        """Undo patches. One that is still pending never fires.

        Args:
            names: ids or groups.

        Returns:
            How they stand now: ``reverted``, or ``overlaid`` where somebody else's work stands on top.

        Raises:
            UnknownPatchError: nothing has that name.
        """
        return self._want(names, False, False)

    def _want(self, names: tuple[str, ...], wanted: bool, force: bool) -> list[PatchStatus]:
        records = self._select(names) if names else []
        with lock:
            for record in records:
                # Who asks by name has the last word; contexts that are still open find nothing left to do.
                record.claims.clear()
                record.wanted, record.force = wanted, force
        self._settler.settle(records)
        return [self._status_of(record) for record in records]

    @contextlib.contextmanager
    def holding(self, *names: str, wants: bool, force: bool = False) -> Iterator[list[PatchStatus]]:
        """Keep patches applied (``wants``) or undone for as long as the body takes.

        Contexts nest and overlap, also between threads: of those that are open the one entered last decides, and with
        the last that is left comes back what was the case before.
        """
        records = self._select(names) if names else []
        claims = [(record, Claim(wants, force)) for record in records]
        try:
            with lock:
                for record, claim in claims:
                    record.claims.append(claim)
            self._settler.settle(records)
            yield [self._status_of(record) for record in records]
        finally:
            when_free(lambda: self._leave(claims, force))

    def _leave(self, claims: list[tuple[Record, Claim]], force: bool) -> None:
        records = [record for record, _ in claims]
        with lock:
            for record, claim in claims:
                claim.left = True
                if claim in record.claims:
                    record.claims.remove(claim)
        self._settler.settle(records)
        if force:
            # Who wanted it before, without force, has it only where it is for this process.
            self._judge(records)

    def wishes(self) -> dict[str, Wish]:
        """What is wanted of each patch now, by qualified id; :meth:`restore` brings it back."""
        with lock:
            return {qualified_id: Wish(record) for qualified_id, record in self._records.items()}

    def restore(self, wishes: Mapping[str, Wish]) -> None:
        """Want again what was wanted at an earlier time.

        Contexts that were open then and are still open count again, also where somebody who asked by name has passed
        over them; those that were entered since and are still open keep the last word.

        Args:
            wishes: what :meth:`wishes` returned. Patches that are not in it are left alone.
        """
        changed: list[Record] = []
        with lock:
            for qualified_id, wish in wishes.items():
                record = self._records.get(qualified_id)
                if record is None:
                    continue
                claims = [claim for claim in wish.claims if not claim.left]
                claims += [claim for claim in record.claims if claim not in wish.claims]
                before = (record.wanted, record.force, record.claims)
                if before != (wish.wanted, wish.force, claims):
                    record.wanted, record.force, record.claims = wish.wanted, wish.force, claims
                    changed.append(record)
        self._settler.settle(changed[::-1])
        self._judge(changed)
        with lock:
            for qualified_id, wish in wishes.items():
                record = self._records.get(qualified_id)
                # Skipped then, reverted now: to whoever looks it is as it was.
                if record is not None and not (record.wants or record.layers or wish.wants):
                    record.note(*wish.note)

    # --- looking -----------------------------------------------------------------------------------------------

    def status(self, *names: str) -> list[PatchStatus]:
        """How the named patches stand, or all. Looks into the slots, and changes nothing there."""
        return [self._status_of(record) for record in self._select(names)]

    def verify(self, *names: str) -> list[PatchStatus]:
        """Look whether what was applied is still there; clear away what was undone and nobody refers to any more.

        What waits for a module that has been executed meanwhile is applied: somebody's import hook may stand before
        ours and not have told of it.

        Returns:
            How the named patches stand; without names, those that have something in a slot or failed.
        """
        records = self._select(names)
        layers = self._settler.layers
        # This takes what has come to light since out of all slots, also where there is nothing to settle.
        self._settler.settle([record for record in records if record.state == "pending" and _could_go_on(record)])
        for record in records:
            with lock:
                for layer in record.layers:
                    if layer.lingering and layers.holds(layer):
                        layers.settle(layer)
                self._settler.look(record)
        return [self._status_of(record) for record in records if names or record.layers or record.state == "failed"]

    def beneath(self, slot: Slot) -> tuple[Any, list[str]]:
        """What stands in a slot beneath what this engine has put there. Changes nothing.

        Returns:
            The raw entry, and the qualified ids of the patches whose work somebody has taken out of the slot.
        """
        with lock:
            return self._settler.layers.beneath(slot)

    def _status_of(self, record: Record) -> PatchStatus:
        # Only who looks needs it; and no module is imported under the lock.
        from .report import PatchStatus

        with lock:
            self._settler.look(record)
            patch = record.patch
            status = PatchStatus(
                id=self._catalogue.short_id(patch),
                manifest=patch.manifest,
                state=record.state,
                reason=record.reason,
                target=str(patch.target),
                summary=patch.summary,
                traceback=record.traceback,
            )
        do_postponed()
        return status


def _could_go_on(record: Record) -> bool:
    return record.wants and bool(record.watching) and all(map(importing.finished, record.watching))
