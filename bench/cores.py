"""Two builds of the C core compared: every distinct program, on every class of operands.

    python bench/cores.py OLD/golden/libmmagold_core.so --dots 1e8 --jobs 16 --out docs/reports/cores.md

The build of this checkout runs at every instruction set of the machine. The other build must lay its structs
out as this one does, and runs at the widest. The programs come from all architectures, spec/examples and
random units: units of any kind, units with the fast form, units that doubles hold. They fall into classes by
the way that they run; each gets --dots dot products, as matrices and, of every eighth matrix, in lanes of
their own. Exit status 1: a result differs, with its place.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "golden")]
os.environ["MMAGOLD_THREADS"] = "1"

import numpy as np  # noqa: E402
from doubles_units import doubles_unit  # noqa: E402
from faulty_units import any_unit  # noqa: E402
from instruction_sets import instruction_sets  # noqa: E402
from kernel_units import kernel_unit  # noqa: E402
from random_operands import as_dots  # noqa: E402
from random_units import accepted, wide_unit  # noqa: E402
from tiles import CLASSES, Tiles  # noqa: E402

import golden  # noqa: E402
from golden.model import engine  # noqa: E402
from golden.model.instruction import Instruction  # noqa: E402

LEVELS = instruction_sets()
SHAPES = ((1, 96, 160), (120, 16, 8), (1, 95, 157), (60, 16, 16), (1, 96, 152), (239, 8, 8))
"""How many matrices, and their rows and columns, by seed: columns fill vectors, or half of one, or rows are a
lane each; small matrices share a tile, and the last of them are fewer."""
MOST = 96 * 160
"""Elements of a matrix, at most; the way of a class decides how many matrices there are."""
WITHOUT_C = ("normal", "random_bits", "finite_bits")
"""Classes of operands for units that lack one."""
MAKERS = {
    "any": any_unit,
    "kernel": kernel_unit,
    "doubles": lambda rng: doubles_unit(rng.getrandbits(32)),
    "wide": wide_unit,
}
"""Who draws random units."""
RANDOM = "random units, "
Job = tuple[str, str, int, int]
"""A way, a program's name or a random unit's maker and seed, the seed of operands and how many dot
products."""


def way(ins: Instruction) -> str:
    """How the core runs a unit."""
    return engine.core_path(ins.program, ins)


@cache
def programs() -> dict[str, Instruction]:
    """Units by name, one for each program and its formats."""
    found: dict[str, Instruction] = {}
    every = [ins for name in golden.architectures() for ins in golden.instructions(name)]
    files = sorted((ROOT / "spec" / "examples").glob("*.yaml"))
    every += [unit for file in files for unit in units_of(golden.load_instruction(file))]
    for ins in every:
        key = repr((ins.program, {name: f.name for name, f in ins.formats.items()}, ins.sparse, ins.k))
        found.setdefault(key, ins)
    return {f"{ins.architecture} {ins.name} {ins.mode_code}": ins for ins in found.values()}


def units_of(ins: Instruction) -> list[Instruction]:
    """The unit in each of its modes, with c as an operand."""
    return [unit.stateless for unit in ins.mode_units.values()] or [ins.stateless]


def matrices(
    ins: Instruction,
    core: ctypes.CDLL,
    operands: dict[str, Any],
    shape: Sequence[int],
    lanes: bool,
    fast: bool = True,
) -> Any:
    """D by a build of the core; not `fast`: in blocks of integers, or by the interpreter."""
    one = ins.engine_of_one
    assert isinstance(one, engine.Engine)
    low = one._program
    own, one.core, ways = one.core, core, (low.all_fast, low.in_doubles)
    try:
        if not fast:
            low.all_fast = low.in_doubles = False
        if not lanes:
            return one.tiles(operands, *shape)
        return one.compute(as_dots(operands), matrices=False)
    finally:
        one.core, (low.all_fast, low.in_doubles) = own, ways


@cache
def other(path: str) -> ctypes.CDLL:
    """The other build."""
    core, sizes = ctypes.CDLL(path), [(ctypes.c_int64 * 5)() for _ in range(2)]
    for build, into in zip((core, engine.library()), sizes, strict=True):
        build.mg_struct_sizes(into)
    core.mg_simd.restype = ctypes.c_char_p
    if list(sizes[0]) != list(sizes[1]):
        raise SystemExit(f"{path}: this build lays its structs out differently from this checkout's")
    return core


def run(path: str, lacks: Sequence[str], job: Job) -> tuple[str, str, int, list[str]]:
    """One program on operands of every class in turn: its way, name, dot products and what differs."""
    kind, name, seed, dots = job
    wrong: list[str] = []
    if kind.startswith(RANDOM):
        maker, _, drawn = name.partition(" ")
        ins = accepted(MAKERS[maker], int(drawn))[1]
        kind = RANDOM + way(ins).partition(":")[0]
    else:
        ins = programs()[name]
    known = not way(ins).endswith(tuple(lacks))
    rng, done = np.random.default_rng([seed, len(name)]), 0
    batch, *shape = SHAPES[(seed + zlib.crc32(name.encode())) % len(SHAPES)]
    size = batch * shape[0] * shape[1]
    tiles = Tiles(ins, rng, *shape, batch)
    classes = CLASSES if {"a", "b", "c"} <= tiles.shapes.keys() else WITHOUT_C
    while done < dots:
        what = classes[done // size % len(classes)]
        operands = ins.complete(getattr(tiles, what)(), True)
        lanes = done // (size * len(classes)) % 8 == 7
        os.environ["MMAGOLD_SIMD"] = LEVELS[-1]
        wanted = matrices(ins, other(path), operands, shape, lanes, known)
        for level in LEVELS:
            os.environ["MMAGOLD_SIMD"] = level
            got = matrices(ins, engine.library(), operands, shape, lanes)
            for matrix, row, column in np.argwhere(got != wanted)[:1]:
                at = matrix, row, column
                codes = f"{int(got[at]):#x}, not {int(wanted[at]):#x}"
                place = f"matrix {matrix}, row {row}, column {column}"
                wrong.append(f"{name}, {what}, {level}, seed {seed}, {place}: {codes}")
        done += size
    return kind, name, done, wrong


def jobs(dots: int, units: int, seed: int) -> list[Job]:
    """All of it, in parts of much the same length."""
    by_way: dict[str, list[str]] = defaultdict(list)
    for name, ins in programs().items():
        by_way[way(ins)].append(name)
    if units:
        by_way[RANDOM] = [f"{maker} {seed + i}" for maker in MAKERS for i in range(units)]
    most = 8 * MOST * len(CLASSES)
    found = []
    for kind, names in by_way.items():
        part = min(most, -(-dots // len(names)))
        times = -(-dots // (part * len(names)))
        found += [(kind, name, seed + i, part) for name in names for i in range(times)]
    random.Random(seed).shuffle(found)
    return found


def to_markdown(done: dict[str, Counter[str]], wrong: list[str], options: argparse.Namespace) -> str:
    """The report as a page."""
    classes = ", ".join(what.replace("_", " ") for what in CLASSES)
    reached = sum(len(names) for kind, names in done.items() if not kind.startswith(RANDOM))
    lines = [
        "# Campaign: the core compared with an earlier build of it",
        "",
        f"{datetime.now(UTC).date().isoformat()}, mmagold {golden.__version__}: the core of this version at "
        f"each of {', '.join(LEVELS)} against {options.label} at the widest, {len(wrong)} differing, "
        f"{reached} of {len(programs())} programs reached. Operands "
        f"of {len(CLASSES)} classes ({classes}), seed {options.seed}. The command is `bench/cores.py`.",
        "",
        "| Way through the core | Programs | Dot products, at every instruction set | Fewest of a program |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {len(names):,} | {sum(names.values()):,} | {min(names.values()):,} |"
            for kind, names in sorted(done.items())
        ),
    ]
    return "\n".join([*lines, *(["", *(f"- {one}" for one in wrong)] if wrong else [])]) + "\n"


def main() -> int:
    """Runs the campaign; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="the other build of the core")
    parser.add_argument("--dots", type=float, default=1e6, help="dot products for each way through the core")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this many")
    parser.add_argument("--units", type=int, default=400, help="random units of each maker; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="ways whose names hold this")
    parser.add_argument(
        "--lacks",
        nargs="*",
        default=[],
        help="fast forms, or 'doubles', that the other build has not: it runs blocks of integers",
    )
    parser.add_argument("--label", default="an earlier build", help="what the report calls the other build")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name, least in (("units", 0), ("dots", 1), ("jobs", 1)):
        if (asked := getattr(options, name)) < least:
            parser.error(f"argument --{name} is {asked:g}, expected {least} or more")
    todo = [job for job in jobs(int(options.dots), options.units, options.seed) if options.only in job[0]]
    done: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    start = time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        of_all = repeat(options.old), repeat(options.lacks)
        for kind, name, dots, found in pool.map(run, *of_all, todo, chunksize=4):
            done[kind][name] += dots
            wrong += found
            for line in found:
                print(line, file=sys.stderr)
            if time.monotonic() - start > options.seconds:
                pool.shutdown(cancel_futures=True)
                break
    text = to_markdown(done, wrong, options)
    options.out.write_text(text, "utf-8") if options.out else print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
