"""Settling: bringing patches to where they are wanted, applied or undone, as far as their modules are there.

Whatever calls foreign code (importing an implementation, calling its factory, gathering evidence) is done without the
engine's lock: it plans what shall be written, and then, under the lock, looks whether that is still wanted and whether
the slots still hold what the plan was made from, and writes all of it at once. Two threads may so plan the same patch;
one of them writes.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Mapping

from . import claims, compiling, importing, planning
from .catalogue import Catalogue
from .errors import CompatPatchesError, PatchError
from .layers import Layers
from .plans import Plan, settle
from .predicates import Circumstances
from .records import Record, Watches, do_postponed, lock
from .target import MISSING, ModuleSlot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registrations import Registration

log = logging.getLogger("compat_patches")

_MOST_PLANS = 16
"""How often a plan is made anew because others change the slots meanwhile, before it is called a failure."""


class Settler:
    """Brings patches to where they are wanted.

    Args:
        records: all patches, by qualified id.
        catalogue: what the manifests declare of them.
        circumstances: tells what predicates are asked about.
        strict: a patch that fails raises.
    """

    def __init__(
        self,
        records: Mapping[str, Record],
        catalogue: Catalogue,
        circumstances: Callable[[], Circumstances],
        strict: bool,
    ) -> None:
        self._records = records
        self._catalogue = catalogue
        self._circumstances = circumstances
        self._strict = strict
        self.layers = Layers()
        self.watches = Watches()
        self._leaving: list[tuple[Record, Registration]] = []

    def settle(self, records: list[Record], *, late: bool = True) -> None:
        """Bring patches to where they are wanted. One that fails does not keep the others from it."""
        failures = self._leave_registrations()
        with lock:
            self.layers.clear_away()
            ordered = self._in_order(records)
        for record in ordered:
            try:
                failures += self._settle_one(record, late)
            except PatchError as error:
                failures.append(error)
        if any(record.patch.affects_compile for record in records):
            self._mark_compiled_code()
        for record in records:
            for registration in tuple(record.leaving):
                registration.wait()
        do_postponed()
        if failures and self._strict:
            raise failures[0]

    def _mark_compiled_code(self) -> None:
        """Have code that is compiled from now on kept apart by the patches that change it."""
        from . import compile_cache

        with lock:
            digests = {declared.name: declared.digest for declared in self._catalogue.manifests}
            applied = [record.patch for record in self._records.values() if record.acting]
        compile_cache.mark((patch, digests[patch.manifest]) for patch in applied if patch.affects_compile)

    def _in_order(self, records: list[Record]) -> list[Record]:
        """What is to be undone, the last first, and then what is to be applied, each after those it comes after."""
        named = {record.patch.qualified_id: record for record in records}
        ordered = [named[qualified_id] for qualified_id in self._catalogue.relations.order(named)]
        return [r for r in reversed(ordered) if not r.wants] + [r for r in ordered if r.wants]

    def _settle_one(self, record: Record, late: bool) -> list[PatchError]:
        acted = bool(record.acting)
        try:
            self._bring(record, late)
        finally:
            failures = self._leave_registrations()
            if record.patch.affects_compile and bool(record.acting) != acted:
                compiling.forget_classes()
        return failures

    def _bring(self, record: Record, late: bool) -> None:
        with lock:
            if not record.wants:
                self._take_off(record)
                return
        try:
            self._advance(record, late)
        except planning.Skip as skip:
            self.note(record, "skipped", str(skip))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = str(error) if isinstance(error, CompatPatchesError) else f"{type(error).__name__}: {error}"
            self.note(record, "failed", reason, "".join(traceback.format_exception(error)))
            if self._strict:
                raise PatchError(f"{record.patch.qualified_id} failed: {reason}") from error
            log.warning("%s failed and was left out: %s", record.patch.qualified_id, reason)

    def _advance(self, record: Record, late: bool) -> None:
        for _ in range(_MOST_PLANS):
            with lock:
                if not record.wants:
                    return
                self._refuse(record)
                if self._in_effect(record):
                    return
                if any(layer.plan.registration is not None for layer in record.layers):
                    # A part of it was lost. What is registered still would be taken for somebody else's.
                    self._abandon(record)
                force = record.forced
            self._leave_registrations()
            admission = planning.admit(record.patch, self._circumstances(), force=force)
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
                self.note(record, "pending", f"waits for {above} to finish executing ({error})")
                return
            try:
                committed = self._commit(record, plans, reason, late)
            finally:
                settle(plans)
            if committed:
                return
        raise PatchError(f"others keep changing {record.patch.target}; gave up after {_MOST_PLANS} attempts")

    def _ready(self, record: Record, modules: tuple[str, ...]) -> bool:
        """Whether all of the modules have been executed; where not, be told when they have."""
        # First watch, then look: a module that is done in between has told us, or is seen to be done.
        record.modules = modules
        self._watch(record, modules)
        states = {name: importing.finished(name) for name in modules}
        missing = [name for name, finished in states.items() if finished is None]
        executing = [name for name, finished in states.items() if finished is False]
        if missing:
            self.note(record, "pending", f"waits for {', '.join(missing)} to be imported")
        elif executing:
            self.note(record, "pending", f"waits for {', '.join(executing)} to finish executing")
        return not missing and not executing

    def _commit(self, record: Record, plans: list[Plan], reason: str, late: bool) -> bool:
        """Write the plans, unless something has changed since they were made.

        Returns:
            False where new plans have to be made.
        """
        left_alone: list[str] = []
        if late:
            plans, left_alone = self._with_copies(record, plans)
        with lock:
            reason = "; ".join([reason, *self._catalogue.relations.remarks(record.patch.qualified_id)])
        if left_alone:
            reason += f"; copies made before were left alone: {', '.join(left_alone)}"
        with lock:
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
                self.layers.put(record.patch.qualified_id, plans, record.layers)
            except BaseException:
                claims.release(record.patch.qualified_id)
                raise
            for plan in plans:
                if plan.registration is not None:
                    plan.registration.kept = True
            record.note("applied", reason)
        log.debug("%s applied: %s", record.patch.qualified_id, reason)
        return True

    def _refuse(self, record: Record) -> None:
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

    def _with_copies(self, record: Record, plans: list[Plan]) -> tuple[list[Plan], list[str]]:
        """Add plans for the copies by value that the patch rebinds; name those that it leaves alone."""
        from . import copies

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
                plans = plans + [plan.replace(slot=slot) for slot in held]
            else:
                left_alone += [slot.title for slot in held]
        return plans, list(dict.fromkeys(left_alone))

    def _in_effect(self, record: Record) -> bool:
        """Whether all that was applied acts; wakes up what was undone beneath somebody else's work. Under the lock."""
        held = [self.layers.holds(layer) for layer in record.layers]
        if not any(held) or not all(layer.lingering or there for layer, there in zip(record.layers, held, strict=True)):
            return False
        lingers = any(layer.lingering for layer in record.layers)
        if lingers and not self.layers.awaken(record.layers):
            return False
        if lingers:
            claims.claim(record.patch.qualified_id)
            self._watch(record, record.modules)
            record.note("applied")
        self.look(record)
        return record.state != "lost"

    # --- undoing -----------------------------------------------------------------------------------------------

    def _take_off(self, record: Record) -> None:
        """Undo what a patch has put into its slots. Under the lock; runs nobody's code."""
        self._watch(record, ())
        if record.layers and record.patch.irreversible:
            record.reason = "cannot be undone"
            return
        if record.layers or record.state in ("applied", "lost", "overlaid"):
            reasons = self.drop(record)
            record.note("overlaid" if reasons else "reverted", "; ".join(reasons))
            log.debug("%s %s %s", record.patch.qualified_id, record.state, record.reason)
        elif record.state == "pending":
            record.note("reverted", "undone before it was applied")

    def drop(self, record: Record) -> list[str]:
        """Take the layers off. Returns why some of them still linger."""
        try:
            return self._take_layers_off(record)
        except BaseException as error:
            # Half of a patch is none: what was begun is brought to its end before an interrupt goes on.
            reasons = self._take_layers_off(record)
            if isinstance(error, KeyboardInterrupt):
                raise
            return reasons

    def _take_layers_off(self, record: Record) -> list[str]:
        reasons = []
        for layer in reversed(record.layers):
            if not self.layers.holds(layer):
                continue
            registration = layer.plan.registration
            if registration is not None and registration.prepare_to_leave():
                # Before it leaves the books: from there on others may want the place.
                record.leaving.append(registration)
                self._leaving.append((record, registration))
            standing = self.layers.take_off(layer)
            if standing.state == "overlaid":
                reasons.append(standing.reason)
        if not any(map(self.layers.holds, record.layers)):
            # Where some still linger all are kept: they come back together or not at all.
            record.layers = []
        claims.release(record.patch.qualified_id)
        return list(dict.fromkeys(reasons))

    def _leave_registrations(self) -> list[PatchError]:
        """Take back what was registered by patches that were undone. Runs their code, so no lock may be held.

        Returns:
            What could not be taken back.
        """
        failures = []
        while self._leaving:
            with lock:
                if not self._leaving:
                    break
                record, registration = self._leaving.pop(0)
            try:
                registration.leave()
            except BaseException as error:
                reason = f"{registration.title} could not be taken back: {type(error).__name__}: {error}"
                with lock:
                    if not record.acting:
                        record.note("failed", reason, "".join(traceback.format_exception(error)))
                if isinstance(error, KeyboardInterrupt):
                    raise
                log.warning("%s: %s", record.patch.qualified_id, reason)
                failures.append(PatchError(f"{record.patch.qualified_id}: {reason}"))
            finally:
                record.leaving.remove(registration)
        return failures

    def _abandon(self, record: Record) -> None:
        """Take the layers off for good: what still lingers hands its calls through, and is known to nobody."""
        self.drop(record)
        for layer in record.layers:
            self.layers.abandon(layer)
        record.layers = []

    # --- importing ---------------------------------------------------------------------------------------------

    def _watch(self, record: Record, modules: tuple[str, ...]) -> None:
        """Wait for these modules and for no others."""
        with lock:
            if not record.wants:
                modules = ()
            before = record.watching
            # Whoever is interrupted in between has it done by the next call.
            record.watching = (*before, *modules)
            for name in modules:
                self.watches.add(name, record)
                importing.watch(name, record)
            for name in before:
                if name not in modules:
                    importing.unwatch(name, record)
                    self.watches.remove(name, record)
            record.watching = modules

    def executed(self, name: str) -> None:
        """A module that somebody waits for has been executed, for the first time or again."""
        again: list[tuple[Record, tuple[str, ...]]] = []
        with lock:
            records = [record for record in self.watches.of(name) if record.wants]
            for record in records:
                if record.layers and (self._has_moved(record) or _has_registered(record, name)):
                    # What lingers belongs to the module as it was.
                    self._abandon(record)
                    record.note("pending", f"{name} was executed again")
                elif record.state not in ("failed", "skipped"):
                    continue
                again.append((record, record.watching))
        try:
            self.settle(records, late=False)
        finally:
            # A reload can take several modules, and what has failed after the first may be in order after the last.
            for record, modules in again:
                if record.state in ("failed", "skipped"):
                    self._watch(record, modules)

    def _has_moved(self, record: Record) -> bool:
        """Whether the targets are other slots now, or hold what we did not put there: their module was reloaded."""
        self.look(record)
        return record.state in ("lost", "overlaid")

    # --- notes -------------------------------------------------------------------------------------------------

    def note(self, record: Record, state: str, reason: str, trace: str | None = None) -> None:
        """Write down where a patch that is not applied has got to."""
        with lock:
            if not record.wants or record.acting:
                return
            if state != "pending":
                self._watch(record, ())
            record.note(state, reason, trace)
        log.debug("%s %s: %s", record.patch.qualified_id, state, reason)

    def look(self, record: Record) -> None:
        """Bring what is known of an applied patch up to date with what stands in its slots. Under the lock."""
        if not any(map(self.layers.holds, record.layers)):
            record.layers = []
            if record.state == "overlaid":
                record.note("reverted")
        standings = [self.layers.standing(layer) for layer in record.acting if self.layers.holds(layer)]
        for state in ("lost", "overlaid"):
            reasons = [standing.reason for standing in standings if standing.state == state]
            if reasons:
                record.note(state, "; ".join(dict.fromkeys(reasons)))
                return
        if standings and record.state != "applied":
            record.note("applied")


def _has_registered(record: Record, module: str) -> bool:
    """Whether a patch has registered something in a module, of which nothing is left when that is executed again."""
    return any(
        step.action == "register" and any(target.module == module for target in step.targets)
        for step in record.patch.steps
    )
