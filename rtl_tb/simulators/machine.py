"""Whether a tool broke off for a cause of the machine: no memory, no room on the disk, a signal that somebody
sent. What it says about a design then is no refusal."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path

_NO_ROOM = (
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EIO,
    errno.EROFS,
)
"""Errors of system calls of which no text of a design is the cause."""
_ENDED = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGXCPU", "SIGXFSZ", "SIGBUS")
"""Signals that the machine or somebody sends; a write into a full file system is a SIGBUS, too."""


def _any_of(words: Iterable[str | None]) -> str:
    return f"(?P<cause>{'|'.join(re.escape(word) for word in words if word)})"


_TOOL = (
    r"(?:[^\s:]*/)?(?:[\w.]+-)*(?:g?make|as|ld|collect2|ar|ranlib|g\+\+|gcc|c\+\+|cc|clang(?:\+\+)?|cc1(?:plus)?"
    r"|ccache|(?:ba|da)?sh|perl|python[\d.]*|verilator(?:_bin)?|iverilog|ivlpp|ivl|vvp|ghdl|yosys"
    r"|vcs|vlog|vcom|vopt|vsim|xrun|xm\w+)(?:[-.]\w+)*(?:\[\d+\])?: "
)
"""A line in which a tool speaks of itself begins so. A line about a design begins with its file, behind
`%Error: ` or not, or is an excerpt of it: both may hold any text."""
_SIGNALS = [signal.Signals[name] for name in _ENDED]
_BY_SIGNAL = _any_of(map(signal.strsignal, _SIGNALS))
_NUMBER = "|".join(str(int(number)) for number in _SIGNALS)
_STATUS = "|".join(str(128 + number) for number in _SIGNALS)
_ERROR = _any_of(map(os.strerror, _NO_ROOM))
_AT_ITS_LIMIT = _any_of(("out of memory", "memory exhausted", "Cannot fork", "std::bad_alloc"))
_NOT_LOADED = _any_of(("failed to map segment", *map(os.strerror, _NO_ROOM)))
_BEHIND = r"(?=$|[\s.,:;'])"
"""What stands behind a cause; a path would go on."""
_OF_THE_MACHINE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_TOOL}(?:.*[:\]] )?'?{_ERROR}(?=$|[.,:;'])",
        rf"{_TOOL}(?:.*[\s:])?{_AT_ITS_LIMIT}{_BEHIND}",
        rf"{_TOOL}(?:.*: )?{_BY_SIGNAL}(?: signal terminated program| \(program \w+\)| \(core dumped\)|$)",
        rf"{_TOOL}.*(?P<cause>terminated with signal (?:{_NUMBER}))\b",
        rf"{_TOOL}\*\*\* .*\] {_BY_SIGNAL}",
        rf"{_TOOL}\*\*\* .*\] (?P<cause>Error (?:{_STATUS}))$",
        rf"{_TOOL}.*: +\d+ {_BY_SIGNAL}",  # of bash
        rf"{_BY_SIGNAL}(?: \(core dumped\))?$",  # of other shells
        # Of the assembler; of the C++ compiler, whose sources are none of a design.
        rf"(?:\{{standard input\}}: |\S+\.s: )?(?:Fatal error: )?can't [^:]* \S+: '?{_ERROR}",
        rf"[^:]*\.(?:cpp|cc|c|h|hpp):[\d:]* fatal error: .*: {_ERROR}$",
        rf"\S+: error while loading shared libraries: .*: {_NOT_LOADED}",
        r"(?:terminate called .*|\s*what\(\): +|internal compiler error: )(?P<cause>std::bad_alloc)",
        rf"(?:\s*what\(\): +|virtual memory exhausted: |\w*Error: \[Errno \d+\] ){_ERROR}",
        rf"virtual {_AT_ITS_LIMIT}",
        r"(?P<cause>MemoryError)\b",
        r"%Error: (?P<cause>Can't write file)",
        rf"%Error: Verilator (?P<cause>threw signal (?:{_NUMBER}))\b",
    )
)
"""Lines that compilers and what they start print where memory, disk or processes ran out, or where they were
ended; not what a crash of their own prints."""


def cause_in_the_machine(text: str, how: str, folder: Path | None) -> str | None:
    """The cause, or None where there is none: the first that the tool says, the signal that ended it, or a
    full disk.

    Args:
        text: all that it printed.
        how: it ended, such as "exit status 2" or "signal SIGKILL".
        folder: where it wrote, in addition to the folder for temporary files.
    """
    for line in text.splitlines():
        for pattern in _OF_THE_MACHINE:
            if match := pattern.match(line):
                return match["cause"]
    if how.removeprefix("signal ") in _ENDED:
        return how
    folders = [Path(tempfile.gettempdir()), *([] if folder is None else [folder])]
    return next((f"no room in {folder}" for folder in folders if _is_full(folder)), None)


def _is_full(folder: Path) -> bool:
    try:
        # Bytes; with less room on its disk what a compiler says about a design is not believed: what it read
        # may be half of what another one wrote.
        room = 1 << 20
        return shutil.disk_usage(folder).free < room
    except OSError:
        return False
