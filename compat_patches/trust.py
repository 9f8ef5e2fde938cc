"""May a file that the environment names be believed? Not where somebody else could have written it."""

from __future__ import annotations

import os
import stat


def why_not(path: str) -> str | None:
    """Look whether anybody but this user and root may change what a path leads to.

    Looked at are the file, its folder, the folders above, and the same of what a symbolic link leads to. A folder above
    may be one in which everybody may create files but nobody may rename another's, like ``/tmp``.

    Returns:
        The reason not to believe it, with what to do; None where there is none. A file that is not there is nobody's:
        whoever opens it will say so.
    """
    if not hasattr(os, "geteuid"):  # Permissions of another kind.
        return None
    try:
        named = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        candidates = dict.fromkeys((named, os.path.realpath(named)))
    except (OSError, ValueError):  # No path at all, such as one with a NUL.
        return None
    for found in candidates:
        places = [found, *_folders_above(found)]
        for depth, place in enumerate(places):
            try:
                status = os.lstat(place)
            except OSError:
                break
            reason = _reason(place, status, may_be_shared=depth > 1)
            if reason is not None:
                return reason
    return None


def _folders_above(path: str) -> list[str]:
    folders = []
    while (folder := os.path.dirname(path)) != path:
        folders.append(folder)
        path = folder
    return folders


def _reason(place: str, status: os.stat_result, *, may_be_shared: bool) -> str | None:
    if status.st_uid not in (os.geteuid(), 0):
        return f"{place} belongs to user {status.st_uid}; expected user {os.geteuid()}, who runs this process, or root"
    if stat.S_ISLNK(status.st_mode) or (may_be_shared and status.st_mode & stat.S_ISVTX):
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write to {place} (mode {stat.filemode(status.st_mode)}); chmod o-w it"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"group {status.st_gid} may write to {place} (mode {stat.filemode(status.st_mode)}); chmod g-w it"
    return None


def _is_private_group(gid: int) -> bool:
    """Whether nobody but the user is in a group, as where each user has one of that name."""
    if gid == 0:
        return True
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and user.pw_gid == gid and set(group.gr_mem) <= {user.pw_name}
