"""Vector files as .npz archives: one array an operand, d, kinds (index into kind_names)."""

from __future__ import annotations

import math
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.errors import FileFormatError
from golden.files.inputs import shortened
from golden.files.npyfile import read_arrays
from golden.vectors.word import WordLayout

Bits = npt.NDArray[Any]


def write(
    stream: IO[bytes],
    layout: WordLayout,
    count: int,
    records: Iterable[tuple[dict[str, Bits], Bits]],
    folder: Path,
) -> None:
    """Writes (arrays, kinds) chunk by chunk: each array goes through a temporary file, so memory holds one
    chunk only."""
    shapes = {field.name: (field.shape, field.dtype) for field in layout.fields} | {
        "kinds": ((), np.dtype(np.uint8))
    }
    with ExitStack() as stack:
        spools = {name: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for name in shapes}
        for arrays, kinds in records:
            for name, array in (arrays | {"kinds": kinds}).items():
                spools[name].write(np.ascontiguousarray(array, shapes[name][1].newbyteorder("<")).tobytes())
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, (shape, dtype) in shapes.items():
                _member(archive, name, (count, *shape), dtype, spools[name])
            # without a date, so that equal content gives equal bytes
            with archive.open(zipfile.ZipInfo("kind_names.npy"), "w") as member:
                np.lib.format.write_array(member, np.array(stimuli.KINDS), allow_pickle=False)


def _member(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], spool: IO[bytes]
) -> None:
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    spool.seek(0)
    with archive.open(info, "w", force_zip64=True) as member:
        header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        # Bytes that are copied at a time.
        copy = 1 << 20
        while block := spool.read(copy):
            member.write(block)


def read(path: Path, layout: WordLayout, count: int) -> tuple[dict[str, Bits], Bits]:
    """Arrays by name and kinds of an archive of `count` records, which must have the dtypes and shapes of
    the layout."""
    wanted = {field.name: (field.dtype, (count, *field.shape)) for field in layout.fields} | {
        "kinds": (np.dtype(np.uint8), (count,))
    }
    size = sum(dtype.itemsize * math.prod(shape) + 256 for dtype, shape in wanted.values())
    # Bytes of the names of the kinds.
    max_names = 1 << 16
    found = read_arrays(path, (*wanted, "kind_names"), most=size + max_names)
    for name, (dtype, shape) in wanted.items():
        held = (found[name].dtype, found[name].shape) if name in found else "missing"
        if held != (dtype, shape):
            actual = held if isinstance(held, str) else f"{held[0]} {held[1]}"
            raise FileFormatError(f"{path}[{name}]: is {actual}, expected {dtype} {shape}")
    kinds = _kinds(found, path)
    return {field.name: found[field.name] for field in layout.fields}, kinds


def _kinds(found: dict[str, Bits], path: Path) -> Bits:
    """The kinds as numbers of this package's."""
    if "kind_names" not in found or found["kind_names"].dtype.kind != "U" or found["kind_names"].ndim != 1:
        raise FileFormatError(f"{path}[kind_names]: is missing or no list of names")
    names = [str(name) for name in found["kind_names"]]
    unknown = next((name for name in names if name not in stimuli.KINDS), None)
    if unknown is not None:
        raise FileFormatError(f"{path}[kind_names]: '{shortened(unknown)}' is the name of no kind")
    if (found["kinds"] >= len(names)).any():
        raise FileFormatError(f"{path}[kinds]: holds {int(found['kinds'].max())}, the number of no kind")
    numbers = np.array([stimuli.KINDS.index(name) for name in names], np.uint8)
    return np.asarray(numbers[found["kinds"]])
