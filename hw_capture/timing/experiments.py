"""The experiments of H. Abdelkhalik et al. (arXiv 2208.11174) as they print them, one thread each.

- Figure 2: words of 8 bytes that lie one behind the other, each the address of the next, are stored with
  `st.wt` and then chased, four loads a turn. As printed, every turn begins at the first word again; `goes_on`
  follows the chain, as the text says. The size that was stored says where the words lie at the start.
- Figure 3: one `ld.shared.u64`, or one `st.shared.u64`, and an add between two readings of the clock.
- Insight 1: two add and two mad between two readings; and two and four of each alone.
- A chase of one lane through shared memory in words of 8 bytes, which Figure 3 stands for.

A reading of the clock takes time itself: `empty` is two of them with nothing between.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden.catalog.timing import PRINTED
from golden.files import escape
from hw_capture.errors import DeviceError, SassError
from hw_capture.gpu.device import Device, Module
from hw_capture.kernels import toolchain
from hw_capture.kernels.sass import mnemonic
from hw_capture.timing import loops
from hw_capture.timing.clocks import Watch
from hw_capture.timing.programs import template
from hw_capture.timing.records import Conditions, Progress, head, table
from hw_capture.timing.scalar.checking import between_clocks

STORED = 52268760
"""Bytes that Figure 2 stores: more than the 40 MiB of an A100's L2."""
LOADED = 262144
"""Bytes that Figure 2 chases through, behind them."""
_IN_L2, _IN_L1 = 4 << 20, 16 << 10
_LINKS = 16
"""Loads of the chase through shared memory, one behind the other between the two readings."""


@dataclass(frozen=True)
class Chase:
    """One kernel of Figure 2: the operator of its loads, and whether a turn goes on where the last ended."""

    operator: str
    goes_on: bool

    @property
    def name(self) -> str:
        """The kernel."""
        return f"chase_{self.operator}_{'on' if self.goes_on else 'printed'}"

    @property
    def instruction(self) -> str:
        """What is timed."""
        return f"ld.global.{self.operator}.u64"


@dataclass(frozen=True)
class Straight:
    """One kernel without a loop: what stands between the two readings. count: of what the cycles are divided
    by, if by more than one. holds: the SASS that has to stand there, by the beginning of its name."""

    name: str
    instruction: str
    title: str
    steps: tuple[str, ...]
    variant: str
    holds: dict[str, int] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True)
class Built:
    """The cubin, and the SASS between the clock readings of each kernel."""

    cubin: bytes
    sass: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Sample:
    """Cycles of one instruction, or of what stands between two readings: median, least and most of the runs.
    cold: of the first pass, whose code is not in the instruction cache; None for a chase."""

    instruction: str
    variant: str
    cycles: float
    least: float
    most: float
    sass: dict[str, int]
    cold: float | None = None


@dataclass
class Result:
    """Everything of one run."""

    conditions: Conditions
    samples: list[Sample] = field(default_factory=list)


CHASES = tuple(Chase(operator, goes_on) for operator in ("cv", "cg", "ca") for goes_on in (False, True))
_ADD = "add.u32 %i{0}, %i{0}, %i{1};"
_MAD = "mad.lo.u32 %i{0}, %i{0}, %i{1}, %i{2};"


def _arithmetic(adds: int, mads: int) -> Straight:
    steps = [_ADD.format(4 + n % 4, n % 2) for n in range(adds)]
    steps += [_MAD.format(4 + (adds + n) % 4, n % 2, 2 + n % 2) for n in range(mads)]
    parts = [f"{n} {name}" for n, name in ((adds, "add.u32"), (mads, "mad.lo.u32")) if n]
    title = " + ".join(parts) or "nothing"
    return Straight(
        f"add{adds}_mad{mads}",
        title,
        f"Insight 1: {title}",
        tuple(steps),
        PRINTED if adds and mads else "between two clocks",
        {"IMAD": mads},
    )


_LINK = ("ld.volatile.shared.u64 %r25, [%r25];", "xor.b64 %r40, %r40, %r25;")
"""A load of the chase; what reads the high half, too, without which the compiler loads the low half alone."""
STRAIGHT = (
    Straight(
        "load_shared",
        "ld.shared.u64",
        "Figure 3: reading from shared memory",
        ("ld.volatile.shared.u64 %r25, [%r50];", "add.u64 %r40, %r25, 32;"),
        PRINTED,
        {"LDS.64": 1},
    ),
    Straight(
        "store_shared",
        "st.shared.u64",
        "Figure 3: storing to the shared memory",
        ("st.volatile.shared.u64 [%r50], 50;", "add.u64 %r24, %r23, 32;"),
        PRINTED,
        {"STS.64": 1},
    ),
    Straight(
        "store_load_shared",
        "st.shared.u64 + ld.shared.u64",
        "A store to shared memory and the load that gives it back",
        (
            "st.volatile.shared.u64 [%r50], %r26;",
            "ld.volatile.shared.u64 %r25, [%r50];",
            "add.u64 %r40, %r25, 32;",
        ),
        "between two clocks",
        {"STS.64": 1, "LDS.64": 1},
    ),
    Straight(
        "chase_shared",
        "ld.shared.u64",
        f"{_LINKS} loads from shared memory, each the address of the next, one lane",
        ("mov.u64 %r25, %r50;", *_LINK * _LINKS),
        "1 lane",
        {"LDS.64": _LINKS},
        _LINKS,
    ),
    *(_arithmetic(adds, mads) for adds, mads in ((0, 0), (2, 0), (0, 2), (2, 2), (4, 0), (0, 4))),
)


def source(target: str) -> str:
    """The PTX of every kernel."""
    return template("experiments", "ptx").render(target=target, chases=CHASES, straight=STRAIGHT)


def build(target: str) -> Built:
    """Compiles everything and holds it against what has to stand between the clock readings.

    Raises:
        ToolMissing: no ptxas or no disassembler. CompileError: ptxas refuses it. SassError: something else
            stands there.
    """
    cubin = toolchain.assemble(source(target), target)
    codes = loops.kernels(toolchain.disassemble(cubin))
    wanted = {chase.name: {"LDG": 4} for chase in CHASES} | {one.name: one.holds for one in STRAIGHT}
    return Built(cubin, {name: _held(name, codes[name], counts) for name, counts in wanted.items()})


def _held(name: str, code: loops.Code, wanted: dict[str, int]) -> dict[str, int]:
    found = Counter(mnemonic(line) for line in between_clocks(code)[1:-1])
    for beginning, count in wanted.items():
        there = sum(n for full, n in found.items() if f"{full}.".startswith(f"{beginning}."))
        if there < count:
            raise SassError(f"{name}: {there} x {beginning} between the clock readings, expected {count}")
    return dict(found)


def measure(gpu: Device, built: Built, repeats: int = 5, progress: Progress | None = None) -> Result:
    """Runs everything; raises DeviceError where the GPU fails, or its clock was throttled."""
    watch = Watch(gpu)
    result = Result(watch.conditions)
    module, out = gpu.load(built.cubin), gpu.empty(256, 0)
    facts = gpu.facts()
    if progress:
        progress("experiments", 0, 1)
    # Stores of this many times its size surely leave nothing of the first words in the L2.
    times = 4
    most = max(STORED, times * int(facts.get("l2_bytes", 0)))
    array = gpu.empty(most + 64, 0)
    result.samples += _chases(gpu, module, out, array, most, built, repeats)
    result.samples += _between(gpu, module, out, array, built, repeats)
    watch.close()
    return result


def _chases(
    gpu: Device, module: Module, out: object, array: object, most: int, built: Built, repeats: int
) -> Iterator[Sample]:
    sizes = {"cv": (STORED, most), "cg": (_IN_L2,), "ca": (_IN_L1,)}
    for chase in CHASES:
        first = sizes[chase.operator][0]
        for stored in sizes[chase.operator]:
            loaded = min(LOADED, stored)
            runs = [
                _run(gpu, module, chase.name, out, array, stored, loaded)[0] * 8 / loaded
                for _ in range(repeats + 1)
            ][1:]
            variant = PRINTED if (chase.goes_on, stored) == (False, first) else _behind(chase, stored)
            numbers = statistics.median(runs), min(runs), max(runs)
            yield Sample(chase.instruction, variant, *numbers, built.sass[chase.name])


def _behind(chase: Chase, stored: int) -> str:
    return f"{'the chain' if chase.goes_on else 'the first words'}, behind stores of {stored} B"


def _between(
    gpu: Device, module: Module, out: object, array: object, built: Built, repeats: int
) -> Iterator[Sample]:
    gpu.write(array, np.arange(16, dtype=np.uint32) * 2654435761 & 0xFFFF)
    for one in STRAIGHT:
        found = [_run(gpu, module, one.name, out, array, 0, 0) for _ in range(repeats + 1)][1:]
        warm, cold = ([run[place] / one.count for run in found] for place in (0, 1))
        numbers = statistics.median(warm), min(warm), max(warm)
        yield Sample(one.instruction, one.variant, *numbers, built.sass[one.name], statistics.median(cold))


def _run(
    gpu: Device, module: Module, name: str, out: object, array: object, stored: int, loaded: int
) -> tuple[int, int]:
    """Cycles between the two readings; of a kernel without a loop also the cycles of the pass before."""
    gpu.fill(out, 256, 0)
    module.get(name)(out, array, np.uint64(stored), np.uint64(loaded), np.uint64(0), grid=1, block=1)
    cycles, before = (int(n) for n in gpu.download(out, (2,), np.uint64))
    if not 0 < cycles < 1 << 40:
        raise DeviceError(f"kernel {name}: it gave no time")
    return cycles, before


_COMMENTS = (
    "Written by `mmagold bench-gpu --group abdelkhalik`: the experiments of H. Abdelkhalik et al., one",
    "thread each. `as printed`: as their Figures 2 and 3 stand. completion: cycles of one access; of Figure",
    "3, of insight 1 and `between two clocks`, all between two readings, the reading included (`nothing`).",
    "`cold`: the same in a first pass, whose code was not in the instruction cache. `loop`: SASS between the",
    "readings. `spread`: most less least, by the median.",
)
_SOURCE = (
    "mmagold bench-gpu --group abdelkhalik, one thread of an {{device}}, clock64, the median of "
    "{repeats} runs"
)
_COLUMNS = ("instruction", "variant", "cycles", "least", "most", "cold")


def yaml_text(result: Result, architecture: str, repeats: int) -> str:
    """Returns the file of spec/timing."""
    how = {"runs": repeats, "stored_bytes_of_figure_2": STORED, "loaded_bytes_of_figure_2": LOADED}
    lines = head(result.conditions, architecture, _COMMENTS, _SOURCE.format(repeats=repeats), how)
    accesses = [s for s in result.samples if "." in s.instruction and "u64" in s.instruction]
    rest = [s for s in result.samples if s not in accesses]
    lines += table("access", "Figures 2 and 3: one access", [_row(s, "completion") for s in accesses])
    lines += table(
        "insight 1",
        "Additions and multiplications between two clocks",
        [_row(s, "value") for s in rest],
        "",
        "latency",
    )
    return "\n".join(lines) + "\n"


def _row(sample: Sample, key: str) -> dict[str, object]:
    row: dict[str, object] = {"instruction": sample.instruction, "variant": sample.variant}
    row |= {key: round(sample.cycles, 2), "spread": round((sample.most - sample.least) / sample.cycles, 4)}
    row |= {} if sample.cold is None else {"cold": round(sample.cold, 2)}
    return row | ({"loop": sample.sass} if sample.sass else {})


def csv_text(result: Result) -> str:
    """Returns the samples as CSV with a header."""
    return escape.csv_text(_COLUMNS, _csv_rows(result))


def _csv_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for s in result.samples:
        numbers = [f"{n:.3f}" for n in (s.cycles, s.least, s.most)]
        yield s.instruction, s.variant, *numbers, "" if s.cold is None else f"{s.cold:.3f}"
