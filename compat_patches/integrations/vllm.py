"""vLLM: a plugin of the group ``vllm.general_plugins``.

vLLM loads its general plugins in every process that it starts: the API server, the engine core and each worker. It
calls them without arguments, maybe several times in a process, and before or after torch is imported. As with any
plugin of vLLM, installing it is what switches it on; ``VLLM_PLUGINS`` chooses among plugins, and ``COMPAT_PATCHES=off``
switches this one off.
"""

from __future__ import annotations

from compat_patches import env_override


def register() -> None:
    """Activate compat_patches in this process. Calling it again changes nothing."""
    env_override.activate()
