"""Ray: the patches in every worker of a job, and a report of what all nodes and actors have in effect.

::

    import ray
    from compat_patches.integrations import ray as patches

    ray.init(runtime_env=patches.runtime_env())
    patches.assert_same()

compat_patches has to be installed on each node; Ray can do that too (``runtime_env({"pip": ["compat-patches"]})``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from compat_patches import env_override
from compat_patches.errors import DifferentPatchesError
from compat_patches.fleet import Member, compare, describe

HOOK = "compat_patches.integrations.ray.activate_worker"
"""What Ray calls in each worker before it gets work."""

_INHERITED = ("COMPAT_PATCHES_ONLY", "COMPAT_PATCHES_DISABLE", "COMPAT_PATCHES_STRICT", "COMPAT_PATCHES_LOG")


def activate_worker() -> None:
    """Activate compat_patches in this worker. Calling it again changes nothing."""
    env_override.activate()


def runtime_env(
    base: Mapping[str, Any] | None = None,
    *,
    only: Iterable[str] = (),
    disable: Iterable[str] = (),
    strict: bool | None = None,
) -> dict[str, Any]:
    """Make a runtime environment in which each worker, and each process that a worker starts, has the patches active.

    What the variables of this process say is handed on, and wins over what those of a node say. Manifests that they
    name are not: their paths are of this machine.

    Args:
        base: a runtime environment to add to; what it says about these variables stands.
        only: ids and groups; these and no others.
        disable: ids and groups that are left out, with those of ``COMPAT_PATCHES_DISABLE``.
        strict: whether a failure raises.

    Returns:
        For ``ray.init``, for a job, or for a task or an actor.

    Raises:
        ValueError: ``base`` has a setup hook of its own.
    """
    from compat_patches.launch import child_environment

    environment = dict(base or {})
    if environment.get("worker_process_setup_hook", HOOK) != HOOK:
        raise ValueError(
            "the runtime environment has a worker_process_setup_hook of its own, and Ray calls one only; call "
            f"{HOOK}() there, and leave this function out"
        )
    here = {name: os.environ[name] for name in ("COMPAT_PATCHES", *_INHERITED) if name in os.environ}
    variables = child_environment(here, only=only, disable=disable, strict=strict)
    handed_on = {name: variables[name] for name in ("COMPAT_PATCHES", *_INHERITED) if name in variables}
    environment["env_vars"] = {**handed_on, **environment.get("env_vars", {})}
    environment["worker_process_setup_hook"] = HOOK
    return environment


def fleet_report(actors: Mapping[str, Any] | None = None, *, timeout: float = 60.0) -> list[Member]:
    """Ask every node, and every actor that is given or has a name in this namespace, what it has in effect.

    On each node a task of this job is run, which asks for no CPU; torch is not imported for it. An actor answers when
    it is idle.

    Args:
        actors: handles, by the name that the report shall use.
        timeout: seconds to wait for all of them together.

    Returns:
        What each has in effect, this process first, or why it does not say.
    """
    import ray  # type: ignore[import-not-found, unused-ignore]
    from ray.util.scheduling_strategies import (  # type: ignore[import-not-found, unused-ignore]
        NodeAffinitySchedulingStrategy,
    )

    asked: dict[str, Any] = {}
    ask = ray.remote(num_cpus=0, max_retries=0)(_member)
    for node in ray.nodes():
        if node["Alive"]:
            title = f"node {node['NodeID'][:8]} ({node['NodeManagerHostname']})"
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[title] = ask.options(scheduling_strategy=strategy).remote(title)
    named = {name: ray.get_actor(name) for name in ray.util.list_named_actors()}
    for name, actor in {**named, **(actors or {})}.items():
        title = f"actor {name}"
        asked[title] = actor.__ray_call__.remote(_member_of_actor, title)
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=timeout)
    driver = describe(env_override.engine(), "the driver")
    return [driver, *(_answer(title, reference) for title, reference in asked.items())]


def assert_same(actors: Mapping[str, Any] | None = None, *, timeout: float = 60.0) -> str:
    """Compare what all nodes and actors have in effect; arguments as for :func:`fleet_report`.

    Returns:
        The digest that all have.

    Raises:
        DifferentPatchesError: with those that differ and what differs.
    """
    members = fleet_report(actors, timeout=timeout)
    lines = compare(members)
    if lines:
        raise DifferentPatchesError(lines, len(members))
    return members[0].digest


def _member(title: str) -> Member:
    return describe(env_override.engine(), title)


def _member_of_actor(actor: Any, title: str) -> Member:
    return _member(title)


def _answer(title: str, reference: Any) -> Member:
    import ray

    try:
        member: Member = ray.get(reference, timeout=0)
    except ray.exceptions.GetTimeoutError:
        return Member(title, error="did not answer in time")
    except ray.exceptions.RayError as error:
        # Ray's texts have a page of traceback; the last line says what it was.
        return Member(title, error=f"could not answer: {str(error).strip().splitlines()[-1]}")
    return member
