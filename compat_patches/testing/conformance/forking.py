"""Calling a function in a fork of this process: it begins with all that is imported, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .process import SuiteError


def in_fork(function: Callable[[], Any]) -> Any:
    """What a function returns, through JSON.

    Raises:
        SuiteError: it raised, or ended its process.
    """
    [answer] = all_in_fork(lambda: [function()])
    return answer


def all_in_fork(function: Callable[[], Iterable[Any]]) -> list[Any]:
    """What a function yields, each through JSON, from one fork.

    Raises:
        SuiteError: it raised, or ended its process.
    """
    # What was printed before would be printed by both.
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns where a library (OpenBLAS, say) keeps threads; those know how to be forked.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(function, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        answers = [json.loads(line) for line in pipe if line.endswith("\n")]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise SuiteError(f"a process of the suite ended with {status}; its traceback is in the output")
    return answers


def _answer(function: Callable[[], Iterable[Any]], writing: int) -> None:
    status = 1
    try:
        with open(writing, "w", encoding="utf-8") as pipe:
            for answer in function():
                pipe.write(json.dumps(answer) + "\n")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # The parent's exit handlers are not this process's to run.
        os._exit(status)
