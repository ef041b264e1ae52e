"""NumPy's files, read as what anybody may have put there: no Python objects, nothing unpacked that is larger
than it may be.

codes = read_array("a.npy")
arrays = read_arrays("operands.npz", ("a", "b", "c"))
"""

from __future__ import annotations

import io
import lzma
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from golden.errors import FileFormatError, nearest
from golden.files.inputs import opened, shortened, unreadable

MAX_UNPACKED = 4 << 30
"""Bytes that the arrays of an archive may take in memory, where nothing says how large they should be."""
_UNREADABLE = (
    *(
        OSError,
        ValueError,
        EOFError,
        KeyError,
        AttributeError,
        RuntimeError,
        MemoryError,
        OverflowError,
        TypeError,
    ),
    *(
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        NotImplementedError,
        SyntaxError,
        tokenize.TokenError,
    ),
)
"""What reading NumPy's files raises where their bytes are broken."""


def read_array(path: str | Path) -> npt.NDArray[Any]:
    """The array in a .npy file, whose header must agree with the length of the file.

    Raises:
        FileFormatError: it cannot be read, is none, truncated, or holds Python objects.
    """
    with opened(path) as file:
        return _array(file, file.seek(0, io.SEEK_END), f"{path}")


def read_arrays(
    path: str | Path,
    names: Iterable[str] | None = None,
    most: int = MAX_UNPACKED,
    content: bytes | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz archive by name.

    Args:
        names: the ones that may be in it; another one is an error. Default: any.
        most: bytes that the arrays may have in all.
        content: the archive, where it was read already.

    Raises:
        FileFormatError: it cannot be read, is no archive, truncated, unpacks to more than `most` bytes, or
            holds Python objects.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content) if content is not None else Path(path)) as archive:
            return _members(archive, f"{path}", None if names is None else list(names), most)
    except FileFormatError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    except _UNREADABLE as error:
        raise FileFormatError(f"{path}: truncated or not a NumPy file: {_reason(error)}") from None


def _members(
    archive: zipfile.ZipFile, where: str, wanted: list[str] | None, most: int
) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if wanted is not None and name not in wanted:
            raise FileFormatError(
                f"{where}: unknown key '{shortened(name)}', expected "
                f"{', '.join(wanted)}{nearest(name, wanted)}"
            )
        if name in found or name == info.filename:
            raise FileFormatError(f"{where}: member '{shortened(info.filename)}' is no array, or there twice")
        most -= info.file_size
        if most < 0:
            raise FileFormatError(
                f"{where}: unpacks to more than it may ('{shortened(name)}' to {info.file_size} bytes)"
            )
        try:
            with archive.open(info) as member:
                found[name] = _array(member, info.file_size, f"{where}[{shortened(name)}]")
        except FileFormatError:
            raise
        except _UNREADABLE as error:
            raise FileFormatError(
                f"{where}[{shortened(name)}]: truncated or damaged: {_reason(error)}"
            ) from None
    return found


def _array(file: IO[bytes], size: int, where: str) -> npt.NDArray[Any]:
    """Reads one array of a file of `size` bytes; nothing is allocated before header and size agree."""
    try:
        file.seek(0)
        version = np.lib.format.read_magic(file)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if reader is None:
            raise ValueError(f"format {version[0]}.{version[1]} of .npy")
        with warnings.catch_warnings(action="ignore"):  # that Python 2 wrote it
            shape, _, dtype = reader(file)
        length = dtype.itemsize
        for extent in shape:
            length *= extent
        if dtype.hasobject:
            raise ValueError("holds Python objects")
        if length < 0 or not dtype.itemsize or file.tell() + length != size:
            raise ValueError(f"{size} bytes, but its header says {shape} of {dtype}")
        file.seek(0)
        with warnings.catch_warnings(action="ignore"):
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise FileFormatError(f"{where}: cannot be read: {error.strerror or error}") from None
    except _UNREADABLE as error:
        raise FileFormatError(
            f"{where}: truncated or damaged, or not a NumPy file: {_reason(error)}"
        ) from None


def _reason(error: BaseException) -> str:
    return str(error).split("\n", 1)[0] or type(error).__name__
