"""Speed of the C core on this machine: dot products (elements of D) a second, latency,
import time and memory.

    python bench/run.py [--json]

Every figure is the best of several repeats, in one thread at the widest instruction set, with operands from a
normal distribution and with random bits (which hold infinities, NaNs and subnormals as often as the format
has them). Each is measured in PROCESSES processes, since it matters, by a quarter and more, where the system
puts the memory of one. AVX2 on a machine with AVX-512 is measured alone and shown as a ratio to it; two
threads take turns with one, on longer calls. The yardstick is Hopper's sum as a plain loop of C
(bench/plain_loop.c), compiled for this machine in the same run and measured in one thread together with every
case: where others use the machine, too, or its clock changes, the ratio says more than the number itself.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import golden
from golden.model.instruction import CUSTOM, Instruction

Bits = npt.NDArray[Any]
DOTS, BLOCK_DOTS, SLOW_DOTS = 1 << 19, 1 << 16, 1 << 13
"""Dot products in a call; fewer for programs that run in blocks of doubles, still fewer for programs in
blocks of integers, or one at a time."""
KINDS = ("normal", "random bits")
ROOT = Path(__file__).resolve().parents[1]
OWN = (*sorted((ROOT / "spec" / "examples").glob("*.yaml")), ROOT / "bench" / "interpreted.yaml")
PLAIN_LOOP = Path(__file__).with_name("plain_loop.c")
PLAIN, PLAIN_DOTS = "plain loop", 1 << 15
CHAIN, CHAIN_CYCLES = 10_000_000, 3
PROCESSES = 2
"""Whose bests count."""
ONE, TWO, AVX2 = "1 thread", "2 threads", "AVX2"
RATIOS = {TWO: 1.8, AVX2: 0.5}
"""The least ratio to one thread of two, and of AVX2 where the machine has AVX-512."""
LONG, LONG_BLOCKS, LONG_SLOW = 1 << 21, 1 << 20, 1 << 16
"""The same of calls that two threads share: they take milliseconds, since who helps begins tens of
microseconds late."""
EXAMPLE_TARGET, INTERPRETED_TARGET = 60.0, 15.0
"""Of a unit of one's own, and of one that has no fast form and that doubles do not hold."""


@dataclass(frozen=True)
class Case:
    """One instruction and the speeds wanted of it on normal data and on random bits, in million dot products
    a second. The architecture of a unit from a file is CUSTOM, and its name the path of the file."""

    label: str
    architecture: str
    name: str
    targets: tuple[float, float]

    def load(self) -> Instruction:
        """The instruction; of a unit with modes the first, and c is an operand."""
        if self.architecture == CUSTOM:
            return golden.load_instruction(ROOT / self.name).plain
        return golden.instruction(self.architecture, self.name)


CASES = (
    Case("m16n8k16 f32.f16", "hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (500, 400)),
    Case("m16n8k16 f32.f16", "ampere", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (380, 300)),
    Case(
        "wgmma m64n64k32 f32.e4m3",
        "hopper",
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
        (500, 280),
    ),
    Case(
        "m16n8k64 mxf4nvf4 4X",
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        (300, 300),
    ),
    Case("v_mfma_f32_16x16x16_f16", "cdna3", "v_mfma_f32_16x16x16_f16", (350, 250)),
    Case("v_mfma_f32_16x16x16f16", "cdna2", "v_mfma_f32_16x16x16f16", (100, 80)),
    Case("v_mfma_f32_16x16x16f16", "cdna1", "v_mfma_f32_16x16x16f16", (100, 80)),
    Case("DMMA m8n8k4 f64", "ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", (900, 900)),
    Case("m16n8k32 s32.s8", "ampere", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", (1500, 1500)),
    Case("DMMA m8n8k4 f64 .rz", "ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz", (15, 15)),
    *(
        Case(
            file.stem,
            CUSTOM,
            str(file.relative_to(ROOT)),
            (EXAMPLE_TARGET if file.parent.name == "examples" else INTERPRETED_TARGET,) * 2,
        )
        for file in OWN
    ),
)
LATENCY_TARGET, IMPORT_TARGET, MEMORY_TARGET = 8.0, 0.3, 64.0  # microseconds, seconds, MiB


def operands(ins: Instruction, kind: str, batch: int) -> dict[str, Bits]:
    """Operands of `batch` matrices; scales of normal operands are positive."""
    rng = np.random.default_rng(1)
    given: dict[str, Bits] = {}
    for name, shape in ins.operand_shapes(matrices=True).items():
        fmt, size = ins.formats[name], (batch, *shape)
        if kind == "random bits":
            words = np.frombuffer(rng.bytes(fmt.storage // 8 * int(np.prod(size))), fmt.dtype).reshape(size)
            given[name] = words & fmt.dtype.type((1 << fmt.bits) - 1)
        else:
            values = (
                rng.standard_normal(size)
                if fmt.is_float
                else np.clip(32 * rng.standard_normal(size), -128, 127)
            )
            given[name] = golden.from_float(fmt, np.abs(values) if name.startswith("scale") else values)
    return given


def call(ins: Instruction, given: dict[str, Bits]) -> Bits:
    """ins(A, B, C, ...) from a dict."""
    return ins(**given)


def bests(runs: Sequence[Callable[[], object]], least_seconds: float = 0.4) -> list[float]:
    """The shortest time of each, in seconds, after a first run that is not counted. They take turns, so that
    whatever slows this machine down slows all of them."""
    times: list[list[float]] = []
    while len(times) <= 5 or sum(map(sum, times[1:])) < least_seconds:
        times.append([])
        for run in runs:
            start = time.perf_counter()
            run()
            times[-1].append(time.perf_counter() - start)
    return [min(each) for each in zip(*times[1:], strict=True)]


def best(run: Callable[[], object]) -> float:
    """The same of one."""
    return bests([run])[0]


def compiled(folder: str) -> ctypes.CDLL | None:
    """bench/plain_loop.c; None, and the reason is printed, where there is no compiler."""
    compiler = (
        shlex.split(os.environ.get("CC", ""))
        or [name for name in ("gcc", "clang", "cc") if shutil.which(name)][:1]
    )
    library = str(Path(folder, "plain_loop.so"))
    command = [*compiler, "-O3", "-march=native", "-shared", "-fPIC", str(PLAIN_LOOP), "-lm", "-o", library]
    if not compiler or subprocess.run(command, check=False).returncode:
        why = "it does not compile" if compiler else "no C compiler was found"
        print(f"no ratio to the plain loop: {why}", file=sys.stderr)
        return None
    return ctypes.CDLL(library)


def measure_clock() -> float | None:
    """GHz, of the cycles that a chain of multiplications takes; None without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
    return (
        CHAIN_CYCLES * CHAIN / best(lambda: library.chain(ctypes.c_int64(CHAIN))) / 1e9 if library else None
    )


def plain_loop(library: ctypes.CDLL | None) -> Callable[[], object] | None:
    """Runs the plain loop over PLAIN_DOTS dot products. Its results equal the model's."""
    if library is None:
        return None
    ins = CASES[0].load()
    given = operands(ins, KINDS[0], PLAIN_DOTS // (ins.m * ins.n))
    wanted = call(ins, given)
    d = np.empty_like(wanted)
    loop = library.plain_loop

    def run() -> object:
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (given["a"], given["b"], given["c"], d))
        return loop(ctypes.c_int64(len(d)), *pointers)

    run()
    if not np.array_equal(d, wanted):
        raise SystemExit("the plain loop gives other results than the model")
    return run


def batch_of(ins: Instruction, fast: int, in_doubles: int, slow: int) -> int:
    """How many matrices a call needs for this many dot products, by the way that they run."""
    engine: Any = ins.engine_of_one
    dots = fast if engine.fast else in_doubles if engine.in_doubles else slow
    return max(1, dots // (ins.m * ins.n))


def measure_threads() -> dict[str, dict[str, float]]:
    """Million dot products a second of one thread and of two, of every case, on normal data. They take
    turns."""
    figures = {}
    for case in CASES:
        ins = case.load()
        short = operands(ins, KINDS[0], batch_of(ins, DOTS, BLOCK_DOTS, SLOW_DOTS))
        times = batch_of(ins, LONG, LONG_BLOCKS, LONG_SLOW) // len(short["a"])
        # repeated: to draw as many takes minutes
        given = {name: np.concatenate([array] * times) for name, array in short.items()}

        def run(threads: int, ins: Instruction = ins, given: dict[str, Bits] = given) -> object:
            os.environ["MMAGOLD_THREADS"] = str(threads)
            return call(ins, given)

        dots = len(given["a"]) * ins.m * ins.n / 1e6
        seconds = bests([partial(run, 1), partial(run, 2)], least_seconds=1.0)
        figures[f"{case.architecture} {case.label}"] = {
            way: dots / each for way, each in zip((ONE, TWO), seconds, strict=True)
        }
    return figures


def measure_speed() -> dict[str, Any]:
    """Million dot products a second of every case and kind of operand, and of the plain loop, which runs on
    normal data each time."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        plain = plain_loop(compiled(folder))
        for case in CASES:
            ins = case.load()
            batch = batch_of(ins, DOTS, BLOCK_DOTS, SLOW_DOTS)
            found: dict[str, Any] = {PLAIN: {}}
            for kind in KINDS:
                given = operands(ins, kind, batch)
                runs: list[Callable[[], object]] = [lambda ins=ins, given=given: call(ins, given)]  # type: ignore[misc]
                if plain is not None:
                    runs.append(plain)
                seconds, *plain_seconds = bests(runs)
                found[kind] = batch * ins.m * ins.n / seconds / 1e6
                if plain_seconds:
                    found[PLAIN][kind] = PLAIN_DOTS / plain_seconds[0] / 1e6
            figures[f"{case.architecture} {case.label}"] = found
    return figures


def measure_latency() -> float:
    """Microseconds of one call with one 16x8x16 matrix product."""
    ins = CASES[0].load()
    given = {name: array[0] for name, array in operands(ins, "normal", 1).items()}

    def many() -> None:
        for _ in range(500):
            ins(given["a"], given["b"], given["c"])

    return best(many) / 500 * 1e6


def status_kib(field: str) -> int:
    """VmRSS or VmHWM of this process (Linux)."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


def measure_memory() -> float | None:
    """MiB at the peak of one large call, beyond its operands and its result (not resource.getrusage: its
    peak starts at the parent's)."""
    if not Path("/proc/self/status").exists():
        return None
    ins, batch = CASES[0].load(), 1 << 16
    call(ins, operands(ins, "normal", 1))
    given = {}
    for name, shape in ins.operand_shapes(matrices=True).items():
        given[name] = np.empty((batch, *shape), ins.formats[name].dtype)
        given[name][:] = 0x3C00  # no temporary arrays, so that the peak before the call is what is in use
    before = status_kib("VmRSS")
    d = call(ins, given)
    return (status_kib("VmHWM") - before) / 1024 - d.nbytes / 2**20


def output(command: list[str], **variables: str) -> str:
    """What a command prints; its errors go to this terminal."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | variables
    ).stdout


def measure_import() -> float:
    """Seconds that `import golden` takes in a new process, NumPy included."""
    code = "import time; start = time.perf_counter(); import golden; print(time.perf_counter() - start)"
    return min(float(output([sys.executable, "-c", code])) for _ in range(7))


def measure(what: str, threads: int = 1, **variables: str) -> Any:
    """One of the measurements above in a process of its own with that many threads."""
    command = [sys.executable, __file__, "--measure", what]
    return json.loads(output(command, MMAGOLD_THREADS=str(threads), **variables))


def best_of(several: Sequence[Any]) -> Any:
    """The largest of each figure of several measurements, dicts of the same shape."""
    if isinstance(several[0], dict):
        return {name: best_of([one[name] for one in several]) for name in several[0]}
    return max(several)


def measure_often(what: str, **variables: str) -> Any:
    """The best of some processes."""
    return best_of([measure(what, 1, **variables) for _ in range(PROCESSES)])


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    from golden.model import engine

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = (line.partition(":") for line in cpuinfo.read_text("utf-8").splitlines())
        model = next((value.strip() for name, _, value in fields if name.strip() == "model name"), model)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model,
        "cores": usable,
        "simd": engine.simd(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "speed": measure_speed,
    "threads": measure_threads,
    "latency": measure_latency,
    "memory": measure_memory,
    "clock": measure_clock,
}


def report() -> dict[str, Any]:
    """Every figure."""
    at = machine()
    speeds, threads = {ONE: measure_often("speed")}, measure_often("threads")
    if at["simd"] == "avx512":
        speeds[AVX2] = measure_often("speed", MMAGOLD_SIMD="avx2")
    cases = [
        {
            "architecture": case.architecture,
            "instruction": case.name,
            "label": case.label,
            "target_mdots": dict(zip(KINDS, case.targets, strict=True)),
            "mdots": {way: figures[f"{case.architecture} {case.label}"] for way, figures in speeds.items()},
            "threads_mdots": threads[f"{case.architecture} {case.label}"],
        }
        for case in CASES
    ]
    return {
        "machine": at,
        "speed": cases,
        "latency_us": {"value": measure("latency"), "target": LATENCY_TARGET},
        "import_s": {"value": measure_import(), "target": IMPORT_TARGET},
        "memory_mib": {"value": measure("memory", 2), "target": MEMORY_TARGET},
        "clock_ghz": measure("clock"),
    }


def _shown(value: float, target: float, text: str) -> str:
    return f"[{'green' if value >= target else 'yellow'}]{text}[/]"


def _row(case: dict[str, Any]) -> list[str]:
    """The cells of one case: what is wanted, what there is, and the ratios to it."""
    mdots, targets = case["mdots"], case["target_mdots"]
    one, threads = mdots[ONE], case["threads_mdots"]
    plain = {kind: one[kind] / loop for kind, loop in one[PLAIN].items()}
    cells = [f"{case['architecture']} {case['label']}", " | ".join(f"{targets[kind]:g}" for kind in KINDS)]
    cells += [_shown(one[kind], targets[kind], f"{one[kind]:.1f}") for kind in KINDS]
    # M dot products a second of the plain loop where the targets were set, a Sapphire Rapids at 3.9 GHz: a
    # target divided by it is what the ratio has to be elsewhere.
    targets_plain = 80.0
    wanted = {kind: targets[kind] / targets_plain for kind in KINDS}
    cells.append(" | ".join(f"{wanted[kind]:.2g}" for kind in KINDS))
    cells.append(" | ".join(_shown(plain[kind], wanted[kind], f"{plain[kind]:.2g}") for kind in plain) or "-")
    ratios = {TWO: threads[TWO] / threads[ONE]}
    if AVX2 in mdots:
        ratios[AVX2] = mdots[AVX2][KINDS[0]] / one[KINDS[0]]
    cells += [
        _shown(ratios[way], least, f"{ratios[way]:.2f}") if way in ratios else "-"
        for way, least in RATIOS.items()
    ]
    return cells


def show(figures: dict[str, Any]) -> None:
    """The figures as one table; green where the target is met."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    at = figures["machine"]
    clock = "" if figures["clock_ghz"] is None else f" at {figures['clock_ghz']:.2f} GHz"
    title = (
        f"{at['cpu']}{clock}, {at['cores']} cores, {at['simd']}, Python {at['python']}, NumPy {at['numpy']}"
    )
    table = Table(box=SIMPLE, title=title)
    table.add_column("M dot products / s", no_wrap=True)
    for head in (
        "target",
        *(kind.removesuffix(" bits") for kind in KINDS),
        "of plain\nloop",
        "there is",
        *RATIOS,
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for case in figures["speed"]:
        table.add_row(*_row(case))
    table.add_section()
    for label, key, unit in (
        ("one small call", "latency_us", "us"),
        ("import golden", "import_s", "s"),
        ("peak extra memory", "memory_mib", "MiB"),
    ):
        value, target = figures[key]["value"], figures[key]["target"]
        text = "-" if value is None else f"[{'green' if value <= target else 'yellow'}]{value:.3g} {unit}[/]"
        table.add_row(label, f"< {target:g} {unit}", text)
    Console(width=None if sys.stdout.isatty() else 132).print(table)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(MEASUREMENTS[arguments.measure]()))
        return
    figures = report()
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        show(figures)


if __name__ == "__main__":
    main()
