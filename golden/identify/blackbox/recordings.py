"""Recordings as black boxes: dot products with their results, to which no question can be added.

captured:hopper:NAME       the vectors of an instruction that were recorded on a GPU (vectors/)
recording:FILE             a vector file with its manifest, or an .npz archive of one's own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from golden.catalog.lookup import instruction
from golden.errors import FileFormatError, OperandError
from golden.files.npyfile import read_arrays
from golden.identify.blackbox.sources import taken
from golden.program.signature import Bits, Operands, Signature
from golden.vectors import captured, files
from golden.vectors.manifest import beside
from golden.vectors.tiles import element, grid


@dataclass(frozen=True)
class Recording:
    """What somebody recorded of a unit: operands (n, ...) by name as `dot` takes them, and results (n,)."""

    name: str
    takes: Signature
    operands: Operands
    answers: Bits

    def __post_init__(self) -> None:
        if not len(self):
            raise OperandError(f"{self.name} holds no dot product, expected some")

    def __len__(self) -> int:
        return len(self.answers)


def open_recording(
    text: str,
    formats: Mapping[str, str] | None = None,
    k: int | None = None,
    scale_block: int | None = None,
    pattern: str | None = None,
) -> Recording | None:
    """The recording that a text names; None where it names something else.

    Args:
        formats, k, scale_block, pattern: of an archive without a manifest; see `open_box`.

    Raises:
        UnknownNameError, OperandError, FileFormatError: with what was expected.
    """
    kind, _, rest = text.partition(":")
    if kind not in ("captured", "recording") or not rest:
        return None
    if kind == "captured" or beside(rest).is_file():
        if formats is not None or k is not None:
            raise OperandError(f"{text} has formats and K of its own, expected neither beside it")
        return _captured(text, rest) if kind == "captured" else _vector_file(text, Path(rest))
    return _archive(text, Path(rest), taken(text, formats, k, scale_block, pattern))


def _captured(text: str, name: str) -> Recording:
    architecture, colon, rest = name.partition(":")
    if not colon:
        raise OperandError(f"{text} names no recording, expected captured:ARCHITECTURE:INSTRUCTION")
    ins = instruction(architecture, rest)
    found = captured.load_one(architecture, ins.name)
    return _of_tiles(text, ins, found.operands, found.d)


def _vector_file(text: str, path: Path) -> Recording:
    vectors = files.read(path)
    ins = vectors.instruction
    if ins.modes is not None or ins.state:
        raise OperandError(f"{text}: vectors of a unit with modes or a state, expected those of one without")
    if vectors.level == "tile":
        return _of_tiles(text, ins, vectors.operands, vectors.d)
    return Recording(text, _bare(text, ins), dict(vectors.operands), vectors.d)


def _bare(text: str, ins: Signature) -> Signature:
    """What an instruction takes, and nothing else of it."""
    return Signature(text, 1, 1, ins.k, dict(ins.formats), ins.pattern, ins.ordered_metadata, ins.scale_block)


def _of_tiles(text: str, takes: Signature, operands: Mapping[str, Bits], d: Bits) -> Recording:
    """Each element of each tile's result."""
    places = grid(np.arange(len(d)), *d.shape[1:])
    return Recording(text, _bare(text, takes), element(operands, *places), d[places])


def _archive(text: str, path: Path, takes: Signature) -> Recording:
    """An archive with arrays of raw codes by the operands' names and d: dot products, a and b (n, k), c and d
    (n,); or tiles, a (n, rows, k), b (n, k, columns), c and d (n, rows, columns)."""
    if path.suffix != ".npz":
        raise OperandError(f"{text} has no manifest beside it, expected one, or an .npz archive")
    arrays = read_arrays(path, (*takes.operand_shapes(matrices=False), "d"))
    missing = [name for name in (*takes.operand_shapes(matrices=False), "d") if name not in arrays]
    if missing:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}, expected an array of codes for each")
    d = arrays.pop("d")
    if d.ndim not in (1, 3):
        raise FileFormatError(f"{path}[d] has shape {d.shape}, expected one dimension, or three of tiles")
    if d.ndim == 3:
        tiles = Signature(
            text, d.shape[1], d.shape[2], takes.k, takes.formats, takes.pattern, scale_block=takes.scale_block
        )
        _check(path, arrays, tiles.operand_shapes(matrices=True), len(d))
        arrays, d = element(arrays, *(places := grid(np.arange(len(d)), *d.shape[1:]))), d[places]
    _check(path, arrays, takes.operand_shapes(matrices=False), len(d))
    takes.formats["d"].check(d, f"{path}[d]")
    return Recording(text, takes, takes.check_named(arrays), d.astype(takes.formats["d"].dtype))


def _check(path: Path, arrays: Mapping[str, Bits], shapes: Mapping[str, tuple[int, ...]], count: int) -> None:
    for name, shape in shapes.items():
        if arrays[name].shape != (count, *shape):
            raise FileFormatError(
                f"{path}[{name}] has shape {arrays[name].shape}, expected {(count, *shape)}"
            )
