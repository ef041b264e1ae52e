"""What the width of the adder costs: Hopper's FP8 unit with F = 13, Blackwell's with F = 25, synthesized."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.catalog.unit_text import unit_text
from golden.circuit.synthesis import Synthesis, synthesized
from golden.circuit.systemverilog import module
from golden.program.steps import Align
from golden.studies.study import Progress, Study, Table, findings, percent, published
from golden.studies.units import Subject

NAME = "adder-width"

HOPPER = Subject("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "e4m3")
BLACKWELL = Subject("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3", "e4m3")
UNITS = (HOPPER, BLACKWELL)
AGAIN = 4
"""The K that is synthesized again wherever Yosys is installed: some seconds."""


def fraction_bits(unit: Subject) -> int:
    """F of a unit."""
    steps = unit.ins.program.operations[0].steps
    return next(bits for step in steps if isinstance(step, Align) for _, bits in step.fraction_bits)


def synthesis(unit: Subject, k: int) -> Synthesis:
    """The steps of a unit for k products, synthesized.

    Raises:
        ToolMissing: pyosys is not installed.
    """
    text = unit_text(unit.ins, "unit")
    assert text is not None, f"{unit.name} is dense"
    for before, after in ((f"k: {unit.ins.k}", f"k: {k}"), (f"to: {unit.ins.k - 1}", f"to: {k - 1}")):
        text = text.replace(before, after)
    document = yamlfile.parse(text)
    return synthesized({"unit.sv": module(build_instruction(document), "unit")}, "unit")


def recorded() -> dict[tuple[str, int], tuple[int, int]]:
    """Cells and longest path that were measured, by architecture and K: spec/studies/adder-width.yaml."""
    found: Any = published(NAME)["measured"]
    return {(row["unit"], row["k"]): (row["cells"], row["longest_path"]) for row in found}


def run(samples: int = 1, progress: Progress = lambda done, total: None) -> Study:
    """Shows what was measured, and measures the smallest units again where Yosys is installed."""
    known = recorded()
    again: dict[str, tuple[int, int]] = {}
    if find_spec("pyosys") is not None:
        for step, unit in enumerate(UNITS):
            made = synthesis(unit, AGAIN)
            again[unit.architecture] = made.cells, made.longest
            progress(step + 1, len(UNITS))
    counts = sorted({k for _, k in known})
    rows: list[tuple[Any, ...]] = [
        (k, *(number for unit in UNITS for number in known[unit.architecture, k])) for k in counts
    ]
    heads = [f"{unit.chip} (F = {fraction_bits(unit)})" for unit in UNITS]
    head = ("K", *(f"{what}, {one}" for one in heads for what in ("cells", "longest path")))
    caption = f"Cells, and cells on the longest path, {published(NAME)['tool']}, combinational"
    return Study(
        NAME,
        samples,
        _findings(known, counts, again),
        [Table("cells", caption, head, rows)],
        data={
            "measured": [list(row) for row in rows],
            "again": {name: list(values) for name, values in again.items()},
        },
        units=UNITS,
        random=False,
    )


def _findings(
    known: dict[tuple[str, int], tuple[int, int]], counts: list[int], again: dict[str, tuple[int, int]]
) -> str:
    least, most = counts[0], counts[-1]
    narrow, wide = (known[unit.architecture, most] for unit in UNITS)
    small = [known[unit.architecture, least][0] for unit in UNITS]
    same = all(known[name, AGAIN] == values for name, values in again.items())
    return findings(
        NAME,
        k=most,
        least=least,
        narrow=fraction_bits(HOPPER),
        wide=fraction_bits(BLACKWELL),
        fewer=percent(1 - narrow[0] / wide[0]),
        fewer_least=percent(1 - small[0] / small[1]),
        few=narrow[0],
        many=wide[0],
        short=narrow[1],
        long=wide[1],
        again=_sentence(again, same),
    )


def _sentence(again: dict[str, tuple[int, int]], same: bool) -> str:
    if not again:
        return "Yosys is not installed here, so nothing was synthesized again."
    if same:
        return f"Synthesized again here with K = {AGAIN}: the same figures."
    values = " and ".join(f"{cells:,} cells, path {path}" for cells, path in again.values())
    return f"Synthesized again here with K = {AGAIN}: {values}, as another version of Yosys may give."
