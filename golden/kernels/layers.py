"""What a layer answered for every batch size M on one GPU: a recording, small enough to keep.

The operands are periodic: row i of A is row i mod ROWS of a few, and column j of B is column j mod COLUMNS.
All elements of D whose places agree in both then have the same operands, so that a few elements stand for all
of D, and a kernel that adds in another order in another place betrays itself. Nothing of the operands is
stored: `operands` draws them again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import FileFormatError, MmagoldError, runs
from golden.files.inputs import read_json
from golden.files.output import write_text
from golden.kernels.conversion import encode, table
from golden.kernels.drawing import drawn
from golden.number.formats import Format, get_format

Bits = npt.NDArray[Any]
ROWS, COLUMNS = 4, 128
"""Different rows of A and columns of B."""
SEED = 54  # of the operands of a recording
CANCELLING, NORMAL = "cancelling", "normal"
KINDS = (CANCELLING, NORMAL)
"""Operands whose exact sums are zero: D is what rounding lost, and shows every change of the order. And
normally distributed ones, as a network's: what a change of the order does to them."""
CALLS = {"mm": ("bf16", "f16"), "linear": ("bf16", "f16"), "scaled_mm": ("e4m3",), "triton": ("bf16", "f16")}
"""The calls of a layer, and the formats of the operands that each takes."""
SCHEMA = 1  # version of the recording's file
MOST_BATCHES, MOST_SIZE = 1 << 20, 1 << 24
"""Bounds of a recording that is read: M, also how many of them, and N or K. Far above any that was recorded
(M up to 8192, K up to 53248): a damaged file ends in a message and not in a long wait."""


@dataclass(frozen=True)
class Layer:
    """One layer as a library is called with it.

    Attributes:
        n, k: the weight is n x k.
        a, d: the formats of both operands, and of the result.
        call: `mm`, `linear` (with a bias), `scaled_mm` (fp8, one scale of 1) or `triton` (a kernel with one
            plan).
        options: what else the call is given: `fast` of scaled_mm, `split_k: false` of the others.
        of: models that have the layer.
    """

    n: int
    k: int
    a: str
    d: str
    call: str = "mm"
    options: dict[str, Any] = field(default_factory=dict)
    of: str = ""

    @property
    def name(self) -> str:
        """Unique in a recording."""
        words = [f"{self.n}x{self.k}", self.a, self.call]
        return " ".join([*words, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def bias(self) -> bool:
        """Whether a bias of each column is added."""
        return self.call == "linear"


@dataclass(frozen=True)
class Answer:
    """The same bits for some M.

    Attributes:
        batches: M, ascending.
        d: raw codes (rows, COLUMNS) of the first elements with operands that cancel; rows are ROWS, or M if
            fewer.
        normal: the digest of the same elements of normally distributed operands.
        alike: whether all elements of D with the same operands have the same bits.
    """

    batches: tuple[int, ...]
    d: Bits
    normal: str
    alike: bool = True


@dataclass(frozen=True)
class Recorded:
    """All answers of a layer. `kernels`: names of the kernels that ran, by M; `seconds`: of one call, by M,
    where it was measured."""

    layer: Layer
    answers: tuple[Answer, ...]
    kernels: Mapping[int, tuple[str, ...]]
    seconds: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """What one GPU with these versions answered. `device`: name, driver, versions; `refused`: layers by name
    that the library did not take, with its message; `seed`: of the operands."""

    date: str
    device: dict[str, str]
    layers: tuple[Recorded, ...]
    refused: dict[str, str] = field(default_factory=dict)
    seed: int = SEED


def operands(layer: Layer, kind: str, seed: int = SEED) -> dict[str, Bits]:
    """Raw codes a (ROWS, k), b (k, COLUMNS) and, of a layer that has one, bias (COLUMNS,) of the format d."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{layer.k} {layer.a}".encode()), KINDS.index(kind)])
    fmt, out = get_format(layer.a), get_format(layer.d)
    if kind == NORMAL:
        found = {name: _rounded(rng.standard_normal(shape), fmt) for name, shape in _shapes(layer).items()}
        bias = rng.standard_normal(COLUMNS)
    else:
        found = _cancelling(rng, layer)
        bias = np.ldexp(rng.standard_normal(COLUMNS), -12)  # about as large as what rounding loses
    return found | ({"bias": _rounded(bias, out)} if layer.bias else {})


def _shapes(layer: Layer) -> dict[str, tuple[int, int]]:
    return {"a": (ROWS, layer.k), "b": (layer.k, COLUMNS)}


def _rounded(values: Bits, fmt: Format) -> Bits:
    """Codes of numbers; codes of 8 bits by way of f16, so that NumPy suffices."""
    if fmt.storage > 8:
        return encode(values.astype(np.float32), fmt)
    half = get_format("f16")
    return table(half, fmt, "nearest_even")[encode(values.astype(np.float32), half)]


def _cancelling(rng: np.random.Generator, layer: Layer) -> dict[str, Bits]:
    """Each product has its negative at a place of K drawn at random; an odd K has a zero at its end."""
    fmt, pairs = get_format(layer.a), layer.k // 2
    # Exponents of operands that cancel: at most this far from that of 1.0, so that f16 holds sums of any K.
    # Formats of 8 bits have so few bits that only a wider spread makes rounding lose some.
    float_spread, byte_spread = 3, 6
    spread = float_spread if fmt.storage > 8 else byte_spread
    a, b = (drawn(rng, fmt, shape, spread) for shape in ((ROWS, pairs), (pairs, COLUMNS)))
    minus = b ^ fmt.dtype.type(1 << (fmt.bits - 1))
    order = rng.permutation(2 * pairs)
    whole = {name: np.zeros(shape, fmt.dtype) for name, shape in _shapes(layer).items()}
    whole["a"][:, order] = np.concatenate([a, a], axis=1)
    whole["b"][order] = np.concatenate([b, minus])
    return whole


def digest(codes: Bits) -> str:
    """A short digest of raw codes."""
    return hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()[:16]


def write(recording: Recording, path: Path) -> None:
    """Writes a recording as JSON, whole."""
    kernels = sorted({run for one in recording.layers for run in one.kernels.values()})
    numbers = {run: number for number, run in enumerate(kernels)}
    given = {
        "schema": SCHEMA,
        "date": recording.date,
        "seed": recording.seed,
        "device": recording.device,
        "kernels": kernels,
        "refused": recording.refused,
        "layers": [_layer(one, numbers) for one in recording.layers],
    }
    text = json.dumps(given, separators=(",", ":"))
    write_text(path, text.replace('{"layer":', '\n{"layer":') + "\n")


def _layer(one: Recorded, numbers: Mapping[tuple[str, ...], int]) -> dict[str, Any]:
    ran: list[list[int]] = []  # first M, last M, number of the kernels
    for m, names in sorted(one.kernels.items()):
        if ran and ran[-1][1:] == [m - 1, numbers[names]]:
            ran[-1][1] = m
        else:
            ran.append([m, m, numbers[names]])
    return {
        "layer": asdict(one.layer),
        "answers": [
            {
                "m": [[run[0], run[-1]] for run in runs(answer.batches)],
                "d": base64.b64encode(answer.d.astype(answer.d.dtype.newbyteorder("<")).tobytes()).decode(),
                "normal": answer.normal,
                "alike": answer.alike,
            }
            for answer in one.answers
        ],
        "kernels": ran,
        "seconds": {str(m): round(seconds, 9) for m, seconds in one.seconds.items()},
    }


def read(path: Path) -> Recording:
    """Reads what `write` wrote.

    Raises:
        FileFormatError: it is no such file.
    """
    given = read_json(path)
    try:
        if given["schema"] != SCHEMA:
            raise FileFormatError(f"{path}: schema is {given['schema']!r}, expected {SCHEMA}")
        layers = tuple(_read_layer(entry, given["kernels"]) for entry in given["layers"])
        texts = {"date": given["date"], **given["device"], **given["refused"]}
        _expect(all(isinstance(text, str) for text in texts.values()), "date, device and refused hold texts")
        names = [one.layer.name for one in layers]
        _expect(len(set(names)) == len(names), "each layer once")
        _expect(_whole(given["seed"], 0, 1 << 63), "a seed of 0 or more")
        return Recording(given["date"], given["device"], layers, given["refused"], given["seed"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, MmagoldError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"{path}: is no recording of layers ({type(error).__name__}: {error}), expected a file of "
            "mmagold invariance --record"
        ) from None


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"expected {what}")


def _whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _batches(given: Any) -> tuple[int, ...]:
    """The M of ranges [first, last], ascending, each once."""
    found: list[int] = []
    for first, last in given:
        _expect(_whole(first, 1, MOST_BATCHES) and _whole(last, first, MOST_BATCHES), "M from 1 to 2^20")
        _expect(not found or first > found[-1], "ranges of M in ascending order")
        found += range(first, last + 1)
    _expect(bool(found), "an M")
    return tuple(found)


def _read_layer(entry: Mapping[str, Any], kernels: Sequence[Sequence[str]]) -> Recorded:
    layer = Layer(**{one.name: entry["layer"][one.name] for one in fields(Layer)})
    _expect(all(_whole(size, 1, MOST_SIZE) for size in (layer.n, layer.k)), "N and K from 1 to 2^24")
    _expect(layer.call in CALLS, f"a call, one of {', '.join(CALLS)}")
    _expect(isinstance(layer.options, dict) and isinstance(layer.of, str), "options and models")
    _expect(all(get_format(name).is_float for name in (layer.a, layer.d)), "formats of floats")
    answers = tuple(_read_answer(one, layer) for one in entry["answers"])
    called = [m for one in answers for m in one.batches]
    _expect(bool(called) and len(set(called)) == len(called), "one answer for each M")
    ran: dict[int, tuple[str, ...]] = {}
    for first, last, number in entry["kernels"]:
        _expect(_whole(number, 0, len(kernels) - 1), "the number of a kernel")
        names = tuple(kernels[number])
        _expect(all(isinstance(name, str) for name in names), "names of kernels")
        ran |= dict.fromkeys(_batches([[first, last]]), names)
    _expect(set(called) <= set(ran), "the kernels of each M")
    seconds = {int(m): float(x) for m, x in entry["seconds"].items()}
    _expect(all(0 <= x < math.inf for x in seconds.values()), "seconds of 0 or more")
    return Recorded(layer, answers, ran, seconds)


def _read_answer(one: Mapping[str, Any], layer: Layer) -> Answer:
    dtype = get_format(layer.d).dtype
    d = np.frombuffer(base64.b64decode(one["d"], validate=True), np.dtype(dtype).newbyteorder("<"))
    batches, codes = _batches(one["m"]), d.astype(dtype).reshape(-1, COLUMNS)
    _expect(len(codes) == min(max(batches), ROWS), f"{ROWS} rows of results, or M if fewer")
    return Answer(
        batches,
        codes,
        str(one["normal"]),
        bool(one["alike"]),
    )


def named(recording: Recording, pattern: str) -> Iterator[Recorded]:
    """The layer with this name, or those whose names contain these words."""
    exact = [one for one in recording.layers if one.layer.name == pattern]
    if exact:
        yield from exact
        return
    words = pattern.split()
    yield from (one for one in recording.layers if all(word in one.layer.name.split() for word in words))
