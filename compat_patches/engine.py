"""The engine: applies patches, takes them back, verifies them. The only owner of state.

Whatever calls foreign code (importing an implementation, calling its factory, gathering evidence) is done without the
engine's lock: it plans what shall be written, and then, under the lock, looks whether that is still wanted and whether
the slots still hold what the plan was made from, and writes all of it at once. Two threads may so plan the same patch;
one of them writes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import actions, claims, compiling, copies, discovery, importing, manifest, planning
from .catalogue import Catalogue
from .errors import CompatPatchesError, ManifestError, PatchError, UnknownPatchError
from .layers import Layer, Layers
from .manifest import Manifest, Patch
from .predicates import Circumstances
from .settings import Settings
from .target import MISSING, ModuleSlot, Slot

if TYPE_CHECKING:
    from .report import PatchStatus

log = logging.getLogger("compat_patches")

_MOST_PLANS = 16
"""How often a plan is made anew because others change the slots meanwhile, before it is called a failure."""

# Held for bookkeeping and for writing slots only, never while foreign code is called. It is taken before a fork, so
# that a child finds it free and the state whole.
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(eq=False, slots=True)
class _Claim:
    """A ``with applied(…)`` or ``with reverted(…)`` whose body is being executed."""

    wants: bool
    force: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """What was wanted of one patch at some time, and how it stood; see :meth:`Engine.wishes`."""

    wanted: bool
    force: bool
    claims: tuple[_Claim, ...]
    note: tuple[str, str, str | None]

    @property
    def wants(self) -> bool:
        """Whether the patch was to be applied."""
        return self.claims[-1].wants if self.claims else self.wanted


@dataclass(eq=False, slots=True)
class _Record:
    """The state of one patch. Only the engine changes it, under the lock."""

    patch: Patch
    state: str = "pending"
    reason: str = "not looked at yet"
    traceback: str | None = None
    wanted: bool = False
    force: bool = False
    claims: list[_Claim] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    watching: tuple[str, ...] = ()
    # What it has been planned from: a reload of these applies it again.
    modules: tuple[str, ...] = ()
    # Where copies by value were found, and how many modules were loaded, and which last, when they were looked for.
    copies: tuple[tuple[int, str], list[Slot]] = ((0, ""), [])

    @property
    def wants(self) -> bool:
        return self.claims[-1].wants if self.claims else self.wanted

    @property
    def forced(self) -> bool:
        return self.claims[-1].force if self.claims else self.force

    @property
    def acting(self) -> list[Layer]:
        return [layer for layer in self.layers if not layer.lingering]

    def note(self, state: str, reason: str = "", trace: str | None = None) -> None:
        self.state, self.reason, self.traceback = state, reason, trace


class Engine:
    """Applies, reverts and verifies the patches of the manifests that it was given.

    Args:
        settings: what the user wants; nothing out of the ordinary where it is left out.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings if settings is not None else Settings()
        self._records: dict[str, _Record] = {}
        self._catalogue = Catalogue()
        self._layers = Layers()
        self._waiting: dict[str, dict[_Record, None]] = {}
        self._circumstances: Circumstances | None = None
        self._simulated: Circumstances | None = None
        self._torch_init: str | None = None
        self._started = False
        self.complaints: list[str] = []
        self._circles_told: set[str] = set()

    def open(self) -> None:
        """Listen to the import system."""
        importing.subscribe(self._executed)

    def close(self) -> None:
        """Undo everything and let go of the import system."""
        self.revert(*self._records)
        importing.unsubscribe(self._executed)

    # --- manifests ---------------------------------------------------------------------------------------------

    def add(self, declared: Manifest) -> list[Patch]:
        """Take in a manifest. Nothing of it is applied yet.

        Returns:
            Its patches; none where the very same manifest was taken in before.

        Raises:
            ManifestError: another manifest of that name is loaded.
        """
        with _lock:
            new = self._catalogue.add(declared)
            self._records.update((patch.qualified_id, _Record(patch)) for patch in new)
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
        with _lock:
            declared = [patch for known in self._catalogue.manifests if known.name == name for patch in known.patches]
        self.revert(*(patch.qualified_id for patch in declared))
        with _lock:
            for patch in self._catalogue.remove(name):
                self._records.pop(patch.qualified_id, None)

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests that are loaded."""
        with _lock:
            return self._catalogue.manifests

    def patches(self, *names: str) -> list[Patch]:
        """The declarations that ids or groups name; all where none is named.

        Raises:
            UnknownPatchError: nothing has that name.
        """
        return [record.patch for record in self._select(names)]

    def wanted(self) -> list[Patch]:
        """The patches that are to be applied, whether they are, are not yet, or cannot be."""
        with _lock:
            return [record.patch for record in self._records.values() if record.wants]

    def _select(self, names: Sequence[str]) -> list[_Record]:
        with _lock:
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

    def _judge(self, records: list[_Record]) -> None:
        for record in records:
            with _lock:
                wants, force = record.wants, record.forced
            if not wants:
                continue
            try:
                planning.admit(record.patch, self.circumstances, force=force)
            except planning.Skip as skip:
                with _lock:
                    if record.wants and not record.patch.irreversible:
                        self._drop(record)
                self._note(record, "skipped", str(skip))
        self._settle_all([record for record in records if record.wants])

    # --- what is wanted ----------------------------------------------------------------------------------------

    def start_once(self, torch_init: str | None = None) -> None:
        """Apply what is wanted in every process; later calls do nothing.

        Args:
            torch_init: the ``__init__.py`` of the torch that is about to be imported.
        """
        with _lock:
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
            with _lock:
                record.wanted = unwanted is None
                if unwanted is not None:
                    record.note("skipped", unwanted)
                else:
                    wanted.append(record)
        with _lock:
            circles = [text for text in self._catalogue.relations.circles if text not in self._circles_told]
            self._circles_told.update(circles)
        for text in circles:
            log.warning("%s", text)
        self._settle_all(wanted)

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
        with _lock:
            for record in records:
                # Who asks by name has the last word; contexts that are still open find nothing left to do.
                record.claims.clear()
                record.wanted, record.force = wanted, force
        self._settle_all(records)
        return [self._status_of(record) for record in records]

    @contextlib.contextmanager
    def holding(self, *names: str, wants: bool, force: bool = False) -> Iterator[list[PatchStatus]]:
        """Keep patches applied (``wants``) or undone for as long as the body takes.

        Contexts nest and overlap, also between threads: of those that are open the one entered last decides, and with
        the last that is left comes back what was the case before.
        """
        records = self._select(names) if names else []
        claims = [(record, _Claim(wants, force)) for record in records]
        try:
            with _lock:
                for record, claim in claims:
                    record.claims.append(claim)
            self._settle_all(records)
            yield [self._status_of(record) for record in records]
        finally:
            with _lock:
                for record, claim in claims:
                    claim.left = True
                    if claim in record.claims:
                        record.claims.remove(claim)
            self._settle_all(records)
            if force:
                # Who wanted it before, without force, has it only where it is for this process.
                self._judge(records)

    def wishes(self) -> dict[str, Wish]:
        """What is wanted of each patch now, by qualified id; :meth:`restore` brings it back."""
        with _lock:
            return {
                qualified_id: Wish(
                    record.wanted,
                    record.force,
                    tuple(record.claims),
                    (record.state, record.reason, record.traceback),
                )
                for qualified_id, record in self._records.items()
            }

    def restore(self, wishes: Mapping[str, Wish]) -> None:
        """Want again what was wanted at an earlier time.

        Contexts that were open then and are still open count again, also where somebody who asked by name has passed
        over them; those that were entered since and are still open keep the last word.

        Args:
            wishes: what :meth:`wishes` returned. Patches that are not in it are left alone.
        """
        changed: list[_Record] = []
        with _lock:
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
        self._settle_all(changed[::-1])
        self._judge(changed)
        with _lock:
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

        Returns:
            How the named patches stand; without names, those that have something in a slot or failed.
        """
        records = self._select(names)
        for record in records:
            with _lock:
                for layer in [layer for layer in record.layers if layer.lingering]:
                    if not self._layers.holds(layer) or self._layers.settle(layer):
                        record.layers.remove(layer)
                if not record.layers and record.state == "overlaid":
                    record.note("reverted")
        return [self._status_of(record) for record in records if names or record.layers or record.state == "failed"]

    def beneath(self, slot: Slot) -> tuple[Any, list[str]]:
        """What stands in a slot beneath what this engine has put there. Changes nothing.

        Returns:
            The raw entry, and the qualified ids of the patches whose work somebody has taken out of the slot.
        """
        with _lock:
            return self._layers.beneath(slot)

    def _status_of(self, record: _Record) -> PatchStatus:
        # Only who looks needs it; and no module is imported under the lock.
        from .report import PatchStatus

        with _lock:
            self._look(record)
            patch = record.patch
            return PatchStatus(
                id=self._catalogue.short_id(patch),
                manifest=patch.manifest,
                state=record.state,
                reason=record.reason,
                target=str(patch.target),
                summary=patch.summary,
                traceback=record.traceback,
            )

    def _look(self, record: _Record) -> None:
        """Bring what is known of an applied patch up to date with what stands in its slots. Under the lock."""
        standings = [self._layers.standing(layer) for layer in record.acting if self._layers.holds(layer)]
        for state in ("lost", "overlaid"):
            reasons = [standing.reason for standing in standings if standing.state == state]
            if reasons:
                record.note(state, "; ".join(dict.fromkeys(reasons)))
                return
        if standings and record.state != "applied":
            record.note("applied")

    # --- applying ----------------------------------------------------------------------------------------------

    def _settle_all(self, records: list[_Record], *, late: bool = True) -> None:
        """Bring patches to where they are wanted. One that fails does not keep the others from it."""
        with _lock:
            ordered = self._in_order(records)
        failures = []
        for record in ordered:
            try:
                self._settle(record, late)
            except PatchError as error:
                failures.append(error)
        if any(record.patch.affects_compile for record in records):
            self._mark_compiled_code()
        if failures:
            raise failures[0]

    def _mark_compiled_code(self) -> None:
        """Have code that is compiled from now on kept apart by the patches that change it."""
        from . import compile_cache

        with _lock:
            digests = {declared.name: declared.digest for declared in self._catalogue.manifests}
            applied = [record.patch for record in self._records.values() if record.acting]
        compile_cache.mark((patch, digests[patch.manifest]) for patch in applied if patch.affects_compile)

    def _in_order(self, records: list[_Record]) -> list[_Record]:
        """What is to be undone, the last first, and then what is to be applied, each after those it comes after."""
        named = {record.patch.qualified_id: record for record in records}
        ordered = [named[qualified_id] for qualified_id in self._catalogue.relations.order(named)]
        return [r for r in reversed(ordered) if not r.wants] + [r for r in ordered if r.wants]

    def _settle(self, record: _Record, late: bool) -> None:
        acted = bool(record.acting)
        try:
            self._bring(record, late)
        finally:
            if record.patch.affects_compile and bool(record.acting) != acted:
                compiling.forget_classes()

    def _bring(self, record: _Record, late: bool) -> None:
        with _lock:
            if not record.wants:
                self._take_off(record)
                return
        try:
            self._advance(record, late)
        except planning.Skip as skip:
            self._note(record, "skipped", str(skip))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = str(error) if isinstance(error, CompatPatchesError) else f"{type(error).__name__}: {error}"
            self._note(record, "failed", reason, "".join(traceback.format_exception(error)))
            if self.settings.strict:
                raise PatchError(f"{record.patch.qualified_id} failed: {reason}") from error
            log.warning("%s failed and was left out: %s", record.patch.qualified_id, reason)

    def _advance(self, record: _Record, late: bool) -> None:
        for _ in range(_MOST_PLANS):
            with _lock:
                if not record.wants:
                    return
                self._refuse(record)
                if self._in_effect(record):
                    return
                force = record.forced
            admission = planning.admit(record.patch, self.circumstances, force=force)
            if not self._ready(record, admission.modules):
                return
            try:
                plans, reason = planning.prepare(admission)
            except ImportError as error:
                above = next(filter(None, map(importing.executing_above, admission.modules)), None)
                if above is None:
                    raise
                # The implementation needs more of the package than is there yet.
                self._watch(record, (*admission.modules, above))
                self._note(record, "pending", f"waits for {above} to finish executing ({error})")
                return
            if self._commit(record, plans, reason, late):
                return
        raise PatchError(f"others keep changing {record.patch.target}; gave up after {_MOST_PLANS} attempts")

    def _ready(self, record: _Record, modules: tuple[str, ...]) -> bool:
        """Whether all of the modules have been executed; where not, be told when they have."""
        # First watch, then look: a module that is done in between has told us, or is seen to be done.
        record.modules = modules
        self._watch(record, modules)
        states = {name: importing.finished(name) for name in modules}
        missing = [name for name, finished in states.items() if finished is None]
        executing = [name for name, finished in states.items() if finished is False]
        if missing:
            self._note(record, "pending", f"waits for {', '.join(missing)} to be imported")
        elif executing:
            self._note(record, "pending", f"waits for {', '.join(executing)} to finish executing")
        return not missing and not executing

    def _commit(self, record: _Record, plans: list[actions.Plan], reason: str, late: bool) -> bool:
        """Write the plans, unless something has changed since they were made.

        Returns:
            False where new plans have to be made.
        """
        left_alone: list[str] = []
        if late:
            plans, left_alone = self._with_copies(record, plans)
        with _lock:
            reason = "; ".join([reason, *self._catalogue.relations.remarks(record.patch.qualified_id)])
        if left_alone:
            reason += f"; copies made before were left alone: {', '.join(left_alone)}"
        with _lock:
            if not record.wants:
                return True
            self._refuse(record)
            if self._in_effect(record):
                return True
            # What is left of an earlier time was lost.
            self._abandon(record)
            if not all(plan.slot.holds(plan.below) for plan in plans):
                return False
            self._yield_to(claims.claim(record.patch.qualified_id))
            try:
                self._layers.put(record.patch.qualified_id, plans, record.layers)
            except BaseException:
                claims.release(record.patch.qualified_id)
                raise
            record.note("applied", reason)
        log.debug("%s applied: %s", record.patch.qualified_id, reason)
        return True

    def _refuse(self, record: _Record) -> None:
        """Keep a patch away from those that it conflicts with, and from itself in another copy of us. Under the lock.

        Raises:
            planning.Skip: another is applied already.
        """
        if record.acting:
            return
        name = record.patch.qualified_id
        for other in self._catalogue.relations.conflicts(name):
            if self._records[other].acting:
                raise planning.Skip(f"conflicts with {other}, which is applied; revert that first to have this one")
        self._yield_to(claims.holder(name))

    @staticmethod
    def _yield_to(holder: str | None) -> None:
        if holder is not None:
            raise planning.Skip(f"applied already by another copy of compat_patches in this process, from {holder}")

    def _with_copies(self, record: _Record, plans: list[actions.Plan]) -> tuple[list[actions.Plan], list[str]]:
        """Add plans for the copies by value that the patch rebinds; name those that it leaves alone."""
        steps = record.patch.steps
        rebinding = {str(target) for step in steps if step.rebind for target in step.targets}
        strangers = [plan for plan in plans if isinstance(plan.slot, ModuleSlot) and plan.below is not MISSING]
        loaded, found = record.copies
        now = (len(sys.modules), next(reversed(sys.modules)))
        if strangers and loaded != now:
            loaded = now
            ours = {
                "compat_patches",
                *(step.using.partition(":")[0] for step in steps if step.using is not None),
            }
            found = copies.find_copies([plan.below for plan in strangers], [plan.slot for plan in plans], ours)
            record.copies = (loaded, found)
        left_alone = []
        for plan in strangers:
            held = [slot for slot in found if slot.holds(plan.below)]
            if plan.slot.title in rebinding:
                plans = plans + [plan._replace(slot=slot) for slot in held]
            else:
                left_alone += [slot.title for slot in held]
        return plans, list(dict.fromkeys(left_alone))

    def _in_effect(self, record: _Record) -> bool:
        """Whether all that was applied acts; wakes up what was undone beneath somebody else's work. Under the lock."""
        if not record.layers or not all(map(self._layers.holds, record.layers)):
            return False
        lingering = [layer for layer in record.layers if layer.lingering]
        if not all(map(self._layers.awaken, lingering)):
            return False
        if lingering:
            claims.claim(record.patch.qualified_id)
            self._watch(record, record.modules)
            record.note("applied")
        self._look(record)
        return record.state != "lost"

    # --- undoing -----------------------------------------------------------------------------------------------

    def _take_off(self, record: _Record) -> None:
        """Undo what a patch has put into its slots. Under the lock; runs nobody's code."""
        self._watch(record, ())
        if record.layers and record.patch.irreversible:
            record.reason = "cannot be undone"
            return
        if record.layers or record.state in ("applied", "lost", "overlaid"):
            reasons = self._drop(record)
            record.note("overlaid" if reasons else "reverted", "; ".join(reasons))
            log.debug("%s %s %s", record.patch.qualified_id, record.state, record.reason)
        elif record.state == "pending":
            record.note("reverted", "undone before it was applied")

    def _drop(self, record: _Record) -> list[str]:
        """Take the layers off. Returns why some of them still linger."""
        try:
            return self._take_layers_off(record)
        except BaseException as error:
            # Half of a patch is none: what was begun is brought to its end before an interrupt goes on.
            reasons = self._take_layers_off(record)
            if isinstance(error, KeyboardInterrupt):
                raise
            return reasons

    def _take_layers_off(self, record: _Record) -> list[str]:
        reasons = []
        for layer in reversed(record.layers):
            standing = self._layers.take_off(layer) if self._layers.holds(layer) else None
            if standing is not None and standing.state == "overlaid":
                reasons.append(standing.reason)
        record.layers = [layer for layer in record.layers if self._layers.holds(layer)]
        claims.release(record.patch.qualified_id)
        return list(dict.fromkeys(reasons))

    def _abandon(self, record: _Record) -> None:
        """Take the layers off for good: what still lingers hands its calls through, and is known to nobody."""
        self._drop(record)
        for layer in record.layers:
            self._layers.abandon(layer)
        record.layers = []

    # --- importing ---------------------------------------------------------------------------------------------

    def _watch(self, record: _Record, modules: tuple[str, ...]) -> None:
        """Wait for these modules and for no others."""
        with _lock:
            if not record.wants:
                modules = ()
            before = record.watching
            # Whoever is interrupted in between has it done by the next call.
            record.watching = (*before, *modules)
            for name in modules:
                self._waiting.setdefault(name, {})[record] = None
                importing.watch(name, record)
            for name in before:
                if name not in modules:
                    importing.unwatch(name, record)
                    records = self._waiting.get(name, {})
                    records.pop(record, None)
                    if not records:
                        self._waiting.pop(name, None)
            record.watching = modules

    def _executed(self, name: str) -> None:
        """A module that somebody waits for has been executed, for the first time or again."""
        again: list[tuple[_Record, tuple[str, ...]]] = []
        with _lock:
            records = [record for record in self._waiting.get(name, ()) if record.wants]
            for record in records:
                if record.layers and self._has_moved(record):
                    # What lingers belongs to the module as it was.
                    self._abandon(record)
                    record.note("pending", f"{name} was executed again")
                elif record.state not in ("failed", "skipped"):
                    continue
                again.append((record, record.watching))
        try:
            self._settle_all(records, late=False)
        finally:
            # A reload can take several modules, and what has failed after the first may be in order after the last.
            for record, modules in again:
                if record.state in ("failed", "skipped"):
                    self._watch(record, modules)

    def _has_moved(self, record: _Record) -> bool:
        """Whether the targets are other slots now, or hold what we did not put there: their module was reloaded."""
        self._look(record)
        return record.state in ("lost", "overlaid")

    # --- notes -------------------------------------------------------------------------------------------------

    def _note(self, record: _Record, state: str, reason: str, trace: str | None = None) -> None:
        """Write down where a patch that is not applied has got to."""
        with _lock:
            if not record.wants or record.acting:
                return
            if state != "pending":
                self._watch(record, ())
            record.note(state, reason, trace)
        log.debug("%s %s: %s", record.patch.qualified_id, state, reason)


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
        with _lock:
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
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("compat_patches[%(process)d] %(levelname)s: %(message)s"))
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
