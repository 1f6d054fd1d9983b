"""Exceptions at chosen instructions of a call, as the handler of a signal raises them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

UNTRACED = ("<frozen ", "/tests/", "/logging/", "/threading.py", "/concurrent/", "/warnings.py")
"""Parts of the paths of code that is not interrupted: imports, the tests, and locks of Python's own."""


class Interrupt(BaseException):
    """The exception of a signal's handler, as of Ctrl-C."""


class LateError(Exception):
    """The exception of a handler that limits the time of a call."""


def interrupted(call: Callable[[], object], *, every: int, within: str = "") -> Iterator[BaseException | None]:
    """Call again and again; raise at each ``every``-th instruction of Python that the calls reach, at each once.

    :param within: a part of the path of the code that is interrupted.

    Yields after each call the error that it ended with, whose traceback keeps what its frames have. That may be another
    error than the exception, or none.
    """
    seen: set[tuple[int, int]] = set()

    def at_instruction(frame: FrameType, event: str, _: object) -> Any:
        position = (id(frame.f_code), frame.f_lasti)
        if event == "opcode" and position not in seen:
            seen.add(position)
            if len(seen) % every == 0:
                raise (Interrupt, LateError)[len(seen) // every % 2]
        return at_instruction

    def at_call(frame: FrameType, _event: str, _argument: object) -> Any:
        path = frame.f_code.co_filename
        if within not in path or any(part in path for part in UNTRACED):
            return None
        frame.f_trace_opcodes = True
        return at_instruction

    known = -1
    ended_by: BaseException | None
    while len(seen) > known:
        known, before, ended_by = len(seen), sys.gettrace(), None
        try:
            sys.settrace(at_call)
            call()
        except (Interrupt, Exception) as error:
            # Without an interrupt the call must succeed.
            if len(seen) // every == known // every:
                raise
            ended_by = error
        finally:
            sys.settrace(before)
        yield ended_by
