"""The edge between a program and the shell: every way in which a command can end,
as one line and one exit status.

    boundary.end(lambda: 0 if equal() else 1)

| Status | Meaning |
|---|---|
| 0 | done; of a check: equal |
| 1 | not equal. Only the value that `work` returns can say so, no exception of any kind |
| 2 | an error: bad input, a missing tool, output that cannot be written, or a fault of this package |
| 129, 130, 143 | ended by SIGHUP, Ctrl-C, SIGTERM, after cleaning up |
| 141 | the reader of the output has gone (`mmagold list | head`) |
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import io
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from golden.errors import MmagoldError, one_line

ERROR, BROKEN_PIPE = 2, 128 + signal.SIGPIPE
TRACEBACK = "MMAGOLD_TRACEBACK"
"""Environment variable: where it is set, an internal error also prints its traceback."""
_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
_PACKAGES = ("golden", "hw_capture", "rtl_tb")
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came. What cleans up after Ctrl-C cleans up after these too."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Ended(SystemExit):
    """A program that ran inside a boundary has ended; another one around it lets this pass."""


def end(work: Callable[[], int | None], name: str = "mmagold") -> NoReturn:
    """Runs a program and leaves Python with its status: what `work` returns (None: 0), or what an
    exception means."""
    raise Ended(run(work, name))


def run(work: Callable[[], int | None], name: str = "mmagold") -> int:
    """The status of `end`; everything to say is said and the standard streams are flushed. Passes on
    `Ended` alone."""
    _open_closed_streams()
    _make_streams_take_any_text()
    if os.environ.get(TRACEBACK):
        with contextlib.suppress(Exception):  # a standard error that is no file
            faulthandler.enable()
    with _signals_unwind() as received:
        try:
            try:
                status = work() or 0
                if sys.stdout is not None:
                    sys.stdout.flush()
                return status
            except Ended:
                raise
            except BaseException as error:
                return _report(error, name, received)
        except KeyboardInterrupt:  # while it is reported
            return _interrupted(received)[0]


def internal_error(error: BaseException) -> str:
    """One line about an exception that nobody foresaw: what, where, and how to learn more."""
    return (
        f"internal error: {_what(error)}{_where(error)}; this says nothing about what was checked. "
        f"{TRACEBACK}=1 prints the traceback: please report it, with the command and its files"
    )


def exception_line(error: BaseException) -> str:
    """The same of a part of the work that is given up, for a report: no word of Python, but where it was.
    With TRACEBACK the traceback goes to stderr."""
    if os.environ.get(TRACEBACK):
        _say("".join(traceback.format_exception(error)).rstrip())
    return f"a fault of mmagold itself{_where(error)}; {TRACEBACK}=1 prints the traceback: please report it"


# What an exception means ------------------------------------------------------------------------------------


def _report(error: BaseException, name: str, received: list[int]) -> int:
    """Says on stderr what ended the program and returns its status."""
    status, line = _meaning(error, received)
    if os.environ.get(TRACEBACK) and not isinstance(error, MmagoldError):
        _say("".join(traceback.format_exception(error)).rstrip())
    if line:
        _say(f"{name}: {' '.join(line.split())}")
    _discard_what_cannot_be_written()
    return status


def _meaning(error: BaseException, received: list[int]) -> tuple[int, str]:
    if isinstance(error, MmagoldError):
        return ERROR, str(error)
    if isinstance(error, KeyboardInterrupt):
        return _interrupted(received)
    if _pipe_is_closed(error):
        return BROKEN_PIPE, ""
    if isinstance(error, MemoryError):
        return ERROR, f"not enough memory: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.filename is not None:
        return ERROR, f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in _NOT_WRITTEN:
        return ERROR, f"the output: {error.strerror}"
    if isinstance(error, ImportError):  # modules are imported where they are used: the guard is past
        return ERROR, (
            f"cannot start: {_what(error)}; is it installed completely? {TRACEBACK}=1 prints the traceback"
        )
    return ERROR, internal_error(error)


def _interrupted(received: list[int]) -> tuple[int, str]:
    number = received[0] if received else signal.SIGINT
    return 128 + number, _SIGNALS.get(signal.Signals(number), "interrupted")


def _what(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"something ended the program with status {error.code}"
    return one_line(error)


def _where(error: BaseException) -> str:
    """The innermost line of this package on the way to an exception."""
    steps = [(Path(step.filename), step.lineno) for step in traceback.extract_tb(error.__traceback__)]
    house = Path(__file__).parents[1]
    ours = [
        (path.relative_to(house), line)
        for path, line in steps
        if any(path.is_relative_to(house / name) for name in _PACKAGES)
    ]
    if ours:
        return f" ({ours[-1][0]}:{ours[-1][1]})"
    return f" ({steps[-1][0].name}:{steps[-1][1]})" if steps else ""


def _pipe_is_closed(error: BaseException) -> bool:
    """Whether standard output is a pipe that nobody reads; a broken pipe to another program is an error
    like any other."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        return True  # so rich ends a program, standard output being /dev/null by then
    if not isinstance(error, BrokenPipeError):
        return False
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _say(text: str) -> None:
    with contextlib.suppress(Exception):  # the pipe is closed: the status says it
        print(text, file=sys.stderr, flush=True)


# Signals ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _signals_unwind() -> Iterator[list[int]]:
    """SIGTERM and SIGHUP raise Terminated in the block, once;
    yields a list that then holds the signal's number.

    One that is ignored (nohup) or handled already stays so, and a forked child dies of it
    as any program does.
    """
    received: list[int] = []
    owner = os.getpid()

    def handle(number: int, _: FrameType | None) -> None:
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not received:
            received.append(number)
            raise Terminated(number)

    ours = []
    try:
        for number in _SIGNALS:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, handle)
                ours.append(number)
    except ValueError:  # not the main thread, which alone gets signals
        pass
    try:
        yield received
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


# Standard streams -------------------------------------------------------------------------------------------


def _open_closed_streams() -> None:
    """Gives closed standard streams (`>&-`) a file, as GNU's tools do.

    The next file that the program opens would else get the number of standard output, and with it all that is
    printed. Output is opened for reading: writing fails as it does on a closed file, so that a lost result is
    reported. What goes to a closed standard error is lost.
    """
    modes = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        opened = os.open(os.devnull, modes[number])
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _make_streams_take_any_text() -> None:
    """A name or note that the terminal's encoding lacks, or a file name that is no text, appears as its code.

    PYTHONIOENCODING=ascii or a Latin-1 locale would else turn a unit's Japanese name
    into a UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_what_cannot_be_written() -> None:
    """Writes what standard output still holds; what fails now would fail again when Python ends, with a
    status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
