"""Vector files as .npz archives: one array an operand, d, kinds (index into kind_names)."""

from __future__ import annotations

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
from golden.vectors.word import WordLayout

Bits = npt.NDArray[Any]
_DATE = (1980, 1, 1, 0, 0, 0)
_COPY = 1 << 20


def write(
    stream: IO[bytes], layout: WordLayout, count: int, records: Iterable[tuple[dict[str, Bits], Bits]], folder: Path
) -> None:
    """Writes (arrays, kinds) chunk by chunk: each array goes through a temporary file, so memory holds one chunk only."""
    shapes = {field.name: (field.shape, field.dtype) for field in layout.fields} | {"kinds": ((), np.dtype(np.uint8))}
    with ExitStack() as stack:
        spools = {name: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for name in shapes}
        for arrays, kinds in records:
            for name, array in (arrays | {"kinds": kinds}).items():
                spools[name].write(np.ascontiguousarray(array, shapes[name][1].newbyteorder("<")).tobytes())
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, (shape, dtype) in shapes.items():
                _member(archive, name, (count, *shape), dtype, spools[name])
            with archive.open(zipfile.ZipInfo("kind_names.npy", _DATE), "w") as member:
                np.lib.format.write_array(member, np.array(stimuli.KINDS), allow_pickle=False)


def _member(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], spool: IO[bytes]) -> None:
    info = zipfile.ZipInfo(f"{name}.npy", _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    spool.seek(0)
    with archive.open(info, "w", force_zip64=True) as member:
        header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        while block := spool.read(_COPY):
            member.write(block)


def read(path: Path, layout: WordLayout) -> tuple[dict[str, Bits], Bits]:
    """Arrays by name and kinds of an archive."""
    with np.load(path, allow_pickle=False) as archive:
        names = [str(name) for name in archive["kind_names"]]
        missing = [name for name in names if name not in stimuli.KINDS]
        if missing:
            raise FileFormatError(f"{path}[kind_names]: '{missing[0]}' is the name of no kind")
        numbers = np.array([stimuli.KINDS.index(name) for name in names], np.uint8)
        arrays = {field.name: archive[field.name].astype(field.dtype, copy=False) for field in layout.fields}
        return arrays, numbers[archive["kinds"]]
