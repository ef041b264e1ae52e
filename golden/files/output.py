"""Every file that the project writes: whole or not at all, and never in the place of something
that is no file.

    write_text("report.json", text)                                  # one file
    write_all({path: fill, manifest: fill_manifest})                 # several files, all of them or none
    write_folder("model", {"Makefile": text, "model.c": source})     # the same into a folder, made if missing
    with workplace(target) as work: ...; put_folder(work / "made", target)      # a folder as a whole

A regular file, and one that does not exist yet, is written under a temporary name in the same folder and
renamed when it is complete, with the permissions of the file that it replaces. A symbolic link is followed
first: its target is replaced, the link stays. What cannot be replaced is written through in place, after
everything was computed: a device, a FIFO, a socket, a descriptor of this process (/dev/stdout, /dev/fd/3),
whatever that descriptor stands for.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from golden.errors import FileFormatError

Fill = Callable[[IO[bytes]], Any]
"""Writes the content of a file into a stream, which is a file on disk whatever the output is: it can seek
and be read."""
_DESCRIPTOR = re.compile(r"/proc/(?P<process>\d+)(?:/task/\d+)?/fd/(?P<number>\d+)|/dev/fd/(?P<own>\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def write_whole(path: str | Path, fill: Fill) -> None:
    """Writes one file.

    Raises:
        FileFormatError: it is a folder, its folder is missing or read-only, the disk is full, ...
    """
    write_all({Path(path): fill})


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file as UTF-8; what UTF-8 cannot hold (bytes of a file name)
    is written as backslash escapes."""
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "backslashreplace")))


def write_all(files: Mapping[Path, Fill]) -> None:
    """Writes several files in order; none is replaced before all are complete, nor while another command puts
    its own in their place. Raises as `write_whole`."""
    with ExitStack() as stack:
        outputs = [_Output(path) for path in files]
        for output, fill in zip(outputs, files.values(), strict=True):
            stack.enter_context(output)
            output.fill(fill)
        if len(outputs) > 1:  # of two commands that write the same files one comes first with all of them
            stack.enter_context(_alone_in(outputs[0]))
        for output in outputs:
            output.publish()


def write_folder(folder: str | Path, files: Mapping[str, str | Fill]) -> list[Path]:
    """Writes files by name ("model.c", "pictures/1.svg") into a folder, all of them or none;
    returns their paths.

    Folders that are missing are made, and go again when something fails. Raises as `write_whole`.
    """
    fills = {
        Path(folder) / name: _text_filler(content) if isinstance(content, str) else content
        for name, content in files.items()
    }
    with ExitStack() as stack:
        for parent in dict.fromkeys(path.parent for path in fills):
            stack.enter_context(made_folder(parent))
        write_all(fills)
    return list(fills)


@contextmanager
def _alone_in(output: _Output) -> Iterator[None]:
    """No other command puts several files into the folder of this one meanwhile, where its file system has
    locks; the kernel lets go of a lock with the process that holds it."""
    if output.target is None:
        yield
        return
    try:
        handle = os.open(output.target.parent, os.O_RDONLY)
    except OSError:  # a folder that is ours to write into, not to read
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents. Raises FileFormatError: it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
        raise FileFormatError(f"{folder}: cannot be made: {file} is a file, expected a folder") from None
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be made: {error.strerror or error}") from None


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Makes a folder and its parents; the ones that were missing go again when the block fails and they
    are empty."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        make_folder(folder)
        yield
    except BaseException:
        for place in missing:
            with suppress(OSError):  # not empty, or never made
                place.rmdir()
        raise


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """A private folder next to `target`, on the same file system, that goes when the block ends; what was
    made in it is put in place with `put_folder`. Raises FileFormatError: it cannot be made."""
    with made_folder(target.parent):
        try:
            work = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", dir=target.parent))
        except OSError as error:
            raise FileFormatError(f"{target}: cannot be made: {error.strerror or error}") from None
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def put_folder(made: Path, target: Path) -> None:
    """Gives a finished folder, made in a `workplace`, its name. Nothing of an earlier one of that name stays;
    where this fails the earlier one does.

    Raises:
        FileFormatError: it cannot be moved there.
    """
    tries = 3
    for left in reversed(range(tries)):  # another program may put its own there between the two steps
        try:
            _swap(made, target, made.with_name(f"{made.name}.earlier"))
            return
        except OSError as error:
            if not left:
                raise FileFormatError(f"{target}: cannot be written: {error.strerror or error}") from None


def _swap(made: Path, target: Path, earlier: Path) -> None:
    with suppress(FileNotFoundError):
        target.rename(earlier)
    try:
        made.rename(target)
    except BaseException:
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        raise
    finally:
        shutil.rmtree(earlier, ignore_errors=True)


def check(path: str | Path) -> None:
    """Raises the FileFormatError that writing would end in, as far as it shows beforehand: call it before
    long work."""
    with _Output(Path(path)):
        pass


def is_stream(path: str | Path) -> bool:
    """Whether an output is written through in place: nothing can lie next to it,
    and it cannot be read again."""
    return _Output(Path(path)).target is None


def scratch_folder(path: str | Path) -> Path:
    """Where to keep temporary files for an output: next to it, or for what is no file in the system's
    folder for them."""
    target = _Output(Path(path)).target
    return Path(tempfile.gettempdir()) if target is None else target.parent


def _text_filler(text: str) -> Fill:
    return lambda stream: stream.write(text.encode("utf-8", "backslashreplace"))


class _Output:
    """One output: what it really is, its content under a temporary name,
    and the step that puts that in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target: Path | None = None
        self.descriptor: int | None = None
        self._temporary: Path | None = None
        self._stream: IO[bytes] | None = None
        try:
            self._resolve()
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def _resolve(self) -> None:
        """Follows links, one by one: a descriptor's own link leads to a file that must not be replaced."""
        found, self.descriptor = followed(self.path)
        if self.descriptor is not None:
            return
        if not found.parent.is_dir():
            raise OSError(errno.ENOENT, f"the folder {found.parent} does not exist")
        if not found.exists() or stat.S_ISREG(found.stat().st_mode):
            self.target = found
        elif found.is_dir():
            raise OSError(errno.EISDIR, "it is a folder, expected the name of a file")
        self._place = found

    def __enter__(self) -> _Output:
        try:
            if self.target is None:
                self._stream = tempfile.TemporaryFile()
                return self
            if self.target.exists() and not os.access(self.target, os.W_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            handle, name = tempfile.mkstemp(prefix=f".{self.target.name[:40]}.", dir=self.target.parent)
            self._stream, self._temporary = os.fdopen(handle, "w+b"), Path(name)
        except OSError as error:
            raise self._failed(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        """Removes what was not published."""
        if self._stream is not None:
            with suppress(OSError):  # of what a full disk left in the buffer; it was reported
                self._stream.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def fill(self, fill: Fill) -> None:
        """Lets `fill` write the content."""
        assert self._stream is not None
        try:
            fill(self._stream)
            self._stream.flush()
        except OSError as error:
            raise self._failed(error) from None

    def publish(self) -> None:
        """Puts the content in place."""
        assert self._stream is not None
        try:
            if self.target is None:
                self._copy()
                return
            assert self._temporary is not None
            self._stream.close()
            _take_over(self.target, self._temporary)
            os.replace(self._temporary, self.target)
        except OSError as error:
            raise self._failed(error) from None

    def _copy(self) -> None:
        assert self._stream is not None
        self._stream.seek(0)
        if self.descriptor is not None:
            sys.stdout.flush()  # what was printed before stands before
            sys.stderr.flush()
            place: int | Path = os.dup(self.descriptor)
        else:
            place = self._place
        with open(place, "wb", buffering=0) as out:
            shutil.copyfileobj(self._stream, _Everything(out))

    def _failed(self, error: Exception) -> FileFormatError:
        return FileFormatError(f"{self.path}: cannot be written: {getattr(error, 'strerror', None) or error}")


class _Everything:
    """A raw stream that writes all it is given: a pipe takes a part."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def write(self, block: bytes) -> int:
        """Writes the whole block."""
        done = 0
        while done < len(block):
            done += self.raw.write(block[done:]) or 0
        return done


def followed(path: Path) -> tuple[Path, int | None]:
    """Where the links of a path lead, and the descriptor of this process that it names, if it does. Raises
    OSError: links without end."""
    max_links = 40
    for _ in range(max_links):
        found = Path(os.path.realpath(path.parent)) / path.name
        descriptor = _descriptor(found)
        if descriptor is not None or not found.is_symlink():
            return found, descriptor
        path = found.parent / os.readlink(found)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(path: Path) -> int | None:
    """The number of the descriptor of this process that a path names, else None."""
    # Linux has links into /proc there, others have devices.
    if str(path) in _STANDARD and not path.is_symlink():
        return _STANDARD[str(path)]
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None or (match["process"] and int(match["process"]) != os.getpid()):
        return None
    return int(match["number"] or match["own"])


def _take_over(old: Path, new: Path) -> None:
    """Gives the new file the permissions of the one that it replaces, else the ones that an ordinary open()
    would give."""
    if not old.exists():
        os.chmod(new, 0o666 & ~_umask())
        return
    held = old.stat()
    fresh = new.stat()
    if (held.st_uid, held.st_gid) != (fresh.st_uid, fresh.st_gid):
        with suppress(PermissionError):  # only root may give files away
            os.chown(new, held.st_uid, held.st_gid)
    os.chmod(new, held.st_mode & 0o777)


def _umask() -> int:
    # mkstemp makes files private; results get the permissions that an ordinary open() would give.
    mask = os.umask(0)
    os.umask(mask)
    return mask
