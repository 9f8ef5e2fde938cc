"""torch.distributed: do all ranks have the same patches in effect?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_patches.env_override import engine
from compat_patches.errors import DifferentPatchesError
from compat_patches.fleet import compare, describe

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def assert_same(group: ProcessGroup | None = None) -> str:
    """Compare the digests of all ranks. A collective call: every rank of the group makes it, and gets the same answer.

    Args:
        group: the process group; the default group where it is None.

    Returns:
        The digest that all ranks have.

    Raises:
        DifferentPatchesError: on every rank, with the ranks that differ and what differs.
    """
    import torch.distributed as dist

    member = describe(engine(), f"rank {dist.get_rank()}")
    gathered: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(gathered, member, group=group)
    lines = compare(gathered)
    if lines:
        raise DifferentPatchesError(lines, len(gathered))
    return member.digest
