"""One writer at a time: what two runs add to the same folder or report would be lost by one of them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from golden.errors import FileFormatError


@contextlib.contextmanager
def only_writer(path: Path, lock: Path, wait: bool = False) -> Iterator[None]:
    """Holds the file `lock` while the block adds to `path`. The kernel lets go of it, too, when this process
    is killed.

    Args:
        wait: until another run has finished; else that is an error.

    Raises:
        FileFormatError: another run adds to `path`, or the lock cannot be made.
    """
    handle = _acquired(path, lock, wait)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
        os.close(handle)


def _acquired(path: Path, lock: Path, wait: bool) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise FileFormatError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # a file system without locks
                return handle
            os.close(handle)
            raise FileFormatError(
                f"{path}: another run of mmagold adds to it: wait for it, or choose another --out"
            ) from None
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        os.close(handle)  # whoever held it has removed it: take the new one
