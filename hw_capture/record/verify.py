"""Replays captured vectors through the models, without a GPU. Zero differences is the only pass.

The C core computes every result twice, with its fast and with its general path; the reference, which is slow,
one or more dot products of every tile, or all. A difference is explained: the reference's trace of that dot
product and, where a hypothesis of golden/identify/diagnosis.py explains the hardware's results, the first
step in which the two part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instruction
from golden.errors import FileFormatError
from golden.explain import first_difference
from golden.identify.diagnosis import diagnose
from golden.model.instruction import Instruction
from golden.vectors import captured
from golden.vectors.captured import Captured
from hw_capture.record.runner import differing

PRODUCTS = "products.json"
"""Together with recorded results of whole products."""

Bits = npt.NDArray[Any]
Place = tuple[int, int, int]
"""Tile, row, column."""
_ORDER = ("a", "b", "c", "metadata", "scale_a", "scale_b")


@dataclass(frozen=True)
class Difference:
    """The results of one instruction that a model does not give, and the first of them.

    `expected` is the model's code, `recorded` the hardware's. `blame`: one sentence
    on the step; `trace`: the steps.
    """

    name: str
    model: str
    wrong: int
    total: int
    tile: int
    row: int
    column: int
    what: str
    expected: int
    recorded: int
    digits: int
    blame: str = ""
    trace: str = ""

    def sentence(self) -> str:
        """One line for the reader."""
        return (
            f"{self.name}: {self.wrong:,} of {self.total:,} differ from the {self.model}; tile {self.tile} "
            f"({self.what}), row {self.row}, column {self.column}: the model gives "
            f"{self.expected:#0{self.digits}x}, the hardware gave {self.recorded:#0{self.digits}x}"
        )


@dataclass
class Report:
    """What a replay found: counts of instructions and results, and what differs."""

    instructions: int = 0
    results: int = 0
    reference_results: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether there was something to replay and nothing differs."""
        return self.results > 0 and not self.differences

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "passed": self.passed, "differences": [vars(item) for item in self.differences]}


def manifests(folder: Path) -> list[Path]:
    """Returns the manifests of a folder of architectures, or of one;
    raises FileFormatError where there is none."""
    found = (
        [folder / "manifest.json"]
        if (folder / "manifest.json").is_file()
        else sorted(folder.glob("*/manifest.json"))
    )
    if not found:
        if not folder.is_dir():
            raise FileFormatError(
                f"{folder}: there is no such folder, expected one that mmagold capture wrote, or the folder "
                "vectors of a clone of the repository"
            )
        raise FileFormatError(
            f"{folder}: it holds no captured vectors, expected manifest.json in it or in a folder of it"
        )
    return found


def names(folder: Path) -> list[str]:
    """Returns the names of all captured instructions below a folder;
    raises FileFormatError as `verify` does."""
    return [name for path in manifests(folder) for name in captured.read_manifest_file(path)["instructions"]]


def unlisted(folder: Path) -> list[Path]:
    """Returns the vector files that no manifest names: an interrupted capture leaves such files, and goes on
    with them.

    A folder whose manifest is missing has nothing else, but for one of whole products (hw_capture/products)
    and one of functions, whose manifest has the name of its file.
    """
    found = []
    for path in sorted(folder.glob("*/*.npz")):
        if not any(
            (path.parent / name).exists() for name in ("manifest.json", PRODUCTS, f"{path.stem}.json")
        ):
            found.append(path)
    for path in manifests(folder):
        listed = {entry["file"] for entry in captured.read_manifest_file(path)["instructions"].values()}
        found += [file for file in sorted(path.parent.glob("*.npz")) if file.name not in listed]
    return found


def replayed(
    folder: Path,
    matching: Callable[[str], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Iterator[tuple[Instruction, Captured]]:
    """Yields every captured instruction below a folder with its vectors, checked against manifest and spec.

    Raises:
        FileFormatError: a manifest or a file is missing, was edited or cut short.
        UnknownNameError: a captured instruction is not in the spec.
    """
    for path in manifests(folder):
        manifest = captured.read_manifest_file(path)
        chosen = [name for name in manifest["instructions"] if matching is None or matching(name)]
        for done, vector in enumerate(captured.load_entries(manifest, path.parent, chosen)):
            if progress:
                progress(vector.name, done, len(chosen))
            ins = instruction(manifest["architecture"], vector.name)
            found, wanted = (
                (vector.d.shape, vector.d.dtype),
                ((len(vector.classes), ins.m, ins.n), ins.formats["d"].dtype),
            )
            if found != wanted:
                raise FileFormatError(f"{path}: {vector.name}: array 'd' is {found}, expected {wanted}")
            if not vector.d.size:
                raise FileFormatError(f"{path}: {vector.name}: holds no result: there is nothing to compare")
            yield ins, vector


def verify(
    folder: Path,
    *,
    matching: Callable[[str], bool] | None = None,
    reference: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    explain: int = 3,
) -> Report:
    """Replays every captured vector below a folder.

    Args:
        matching: only instructions whose names this accepts.
        reference: dot products of every tile that the reference computes too; 0: all of them.
        explain: for this many instructions the difference is traced and diagnosed (some 10 s each).

    Raises:
        FileFormatError: a manifest or a file is missing, was edited or cut short, or there is nothing to
            replay.
        UnknownNameError: a captured instruction is not in the spec.
    """
    report = Report()
    for ins, vector in replayed(folder, matching, progress):
        places = list(_sample(ins, len(vector.d), reference))
        report.instructions += 1
        report.results += vector.d.size
        report.reference_results += len(places)
        report.differences += _replay(ins, vector, places, len(report.differences) < explain)
    if not report.results:
        raise FileFormatError(f"{folder}: nothing was replayed: no captured instruction was chosen")
    return report


def _replay(ins: Instruction, vector: Captured, places: list[Place], explain: bool) -> list[Difference]:
    """The differences of one instruction: one entry for each model that has any;
    the reference runs at `places`."""
    given = [vector.operands.get(name) for name in _ORDER]
    models = {"fast core": ins(**vector.operands), "general core": ins.engine.matrices(*given, general=True)}
    found = [
        _difference(ins, vector, model, d) for model, d in models.items() if differing(vector.d, d, ins.name)
    ]
    total = wrong = 0
    first: tuple[int, int, int, int] | None = None
    for tile, row, column in places:
        code = ins.reference_dot(**dot_of(vector.operands, tile, row, column))
        total += 1
        if code != int(vector.d[tile, row, column]):
            wrong += 1
            first = first or (tile, row, column, code)
    if first:
        found.append(_entry(ins, vector, "reference", wrong, total, first))
    return [_explained(ins, vector, item) for item in found[:1]] + found[1:] if explain else found


def _sample(ins: Instruction, tiles: int, count: int) -> Iterator[Place]:
    """`count` places of every tile: along the diagonal, where the structure of the stimuli is, further on in
    each tile.

    No place twice: all of them for a count of 0, or one that is at least as large as a tile.
    """
    if not count or count >= ins.m * ins.n:
        yield from np.ndindex(tiles, ins.m, ins.n)
        return
    for tile in range(tiles):
        steps = range(tile * count, (tile + 1) * count)
        turns = ((step, step // min(ins.m, ins.n) * (i % 2)) for i, step in enumerate(steps))
        yield from dict.fromkeys((tile, step % ins.m, (step + turn) % ins.n) for step, turn in turns)


def dot_of(operands: dict[str, Bits], tile: int, row: int, column: int) -> dict[str, Bits]:
    """The operands of one dot product of a tile, as `ins.dot` takes them."""
    return {name: _of_dot(name, codes, tile, row, column) for name, codes in operands.items()}


def _of_dot(name: str, codes: Bits, tile: Any, row: Any, column: Any) -> Bits:
    """What one operand gives to a dot product, or to many whose places come as index arrays."""
    if name in ("b", "scale_b"):
        return np.asarray(codes[tile, :, column])
    return np.asarray(codes[tile, row, column] if name == "c" else codes[tile, row])


def _difference(ins: Instruction, vector: Captured, model: str, result: Bits) -> Difference:
    places = np.argwhere(result != vector.d)
    tile, row, column = (int(i) for i in places[0])
    return _entry(
        ins, vector, model, len(places), vector.d.size, (tile, row, column, int(result[tile, row, column]))
    )


def _entry(
    ins: Instruction, vector: Captured, model: str, wrong: int, total: int, first: tuple[int, int, int, int]
) -> Difference:
    tile, row, column, expected = first
    recorded, digits = int(vector.d[tile, row, column]), ins.formats["d"].storage // 4 + 2
    name = f"{ins.architecture}:{ins.name}"
    return Difference(
        name, model, wrong, total, tile, row, column, vector.classes[tile], expected, recorded, digits
    )


def _explained(ins: Instruction, vector: Captured, item: Difference) -> Difference:
    """The difference with the trace of its dot product and the step to blame."""
    dot = dot_of(vector.operands, item.tile, item.row, item.column)
    trace = ins.trace(**dot)
    return Difference(**{**vars(item), "blame": _blame(ins, vector, item, dot), "trace": str(trace)})


def _blame(ins: Instruction, vector: Captured, item: Difference, dot: dict[str, Bits]) -> str:
    if ins.reference_dot(**dot) == item.recorded:
        return f"the reference gives what the hardware gave: the {item.model} is wrong, not the spec"
    # Seconds for the diagnosis of one vector.
    seconds = 10.0
    found = diagnose(ins, *_failing(ins, vector), budget_seconds=seconds)
    best = found.hypotheses[0] if found.explains else None
    if best is None or best.instruction is None or not best.has_words:
        return f"{_last_step(ins, item, dot)}; no change of a single step explains it ({found.sentence()})"
    first = first_difference.first_difference(ins, best.instruction, dot)
    if first is None:
        return f"the hardware is a unit with {best.text}"
    return f"{first.sentence()} in a unit that explains the hardware: {best.text}"


def _last_step(ins: Instruction, item: Difference, dot: dict[str, Bits]) -> str:
    """The step that makes the result, in a sentence:
    what a difference is blamed on that nothing earlier explains."""
    events = ins.trace(**dot).events
    last = events[-1]
    step = sum(event.operation == last.operation for event in events)
    codes = (f"{code:#0{item.digits}x}" for code in (item.expected, item.recorded))
    return first_difference.Difference(last.operation, step, last.step.op, "d", 0, *codes).sentence()


def _failing(ins: Instruction, vector: Captured) -> tuple[dict[str, Bits], Bits]:
    """Dot products for the diagnosis, the differing ones first, and what the hardware gave for them."""
    wrong = ins(**vector.operands) != vector.d
    # Results that the diagnosis gets, the wrong ones first.
    most = 4096
    order = np.argsort(~wrong.ravel(), kind="stable")[:most]
    tile, row, column = np.unravel_index(order, vector.d.shape)
    dots = {name: _of_dot(name, codes, tile, row, column) for name, codes in vector.operands.items()}
    return dots, vector.d[tile, row, column]
