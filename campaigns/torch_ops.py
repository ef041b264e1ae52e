"""PyTorch's operations around the matrix products, on a GPU and by golden.kernels.torch_ops: equal bits?

python campaigns/torch_ops.py --record FILE.json --seed 7 [--count 40]
python campaigns/torch_ops.py --compare FILE.json [--every 4] [--markdown FILE]

The first needs a GPU and PyTorch, the second neither. A digest of each result is recorded, and which kernels
ran; the operands are drawn again. For docs/reports/torch-h200.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from golden.errors import OperandError
from golden.files.output import write_text
from hw_capture.products.record import digest
from hw_capture.products.torch_runs import Run, calls, on_cpu, on_gpu


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="calls of each operation")
    parser.add_argument("--every", type=int, default=1, help="compare each N-th call")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    if given.record:
        return record(list(calls(given.seed, given.count)), given.record)
    if given.compare:
        return compare(given.compare, given.every, given.markdown)
    parser.error("expected --record or --compare")


def record(runs: list[Run], path: Path) -> int:
    """Calls PyTorch on the GPU."""
    import torch

    entries = []
    for run in runs:
        kernels, d = _profiled(torch, run)
        entries.append(
            {"run": run.json(), "elements": d.size, "kernels": kernels, "answer": digest({"d": d})}
        )
    facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    write_text(path, json.dumps(facts)[:-1] + ', "calls": [\n' + lines + "\n]}\n")
    print(f"{len(entries)} calls recorded")
    return 0


def _profiled(torch: Any, run: Run) -> tuple[list[str], Any]:
    """The names of the kernels that a call ran, without arguments, and its result."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        d = on_gpu(run)
    names = [event.name() for event in seen.profiler.kineto_results.events()]
    kernels = {_short(name) for name in names if not name.startswith(_NOT_KERNELS)}
    return sorted(name for name in kernels if name and " " not in name), d


_NOT_KERNELS = ("Mem", "cuda", "cuLaunch", "cuModule", "Activity")
"""How the names of copies and of calls of the driver begin."""


def _short(name: str) -> str:
    """Without namespaces and arguments."""
    bare = name.removeprefix("void ").replace("(anonymous namespace)", "")
    return bare.partition("(")[0].partition("<")[0].rpartition("::")[2]


def compare(paths: list[Path], every: int, markdown: Path | None) -> int:
    """Recorded calls again on the CPU."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for path in paths:
        for one in json.loads(path.read_text())["calls"][::every]:
            run, start = Run.of(one["run"]), time.process_time()
            backend = run.options.get("backend")
            count = counts.setdefault((f"{run.op} ({backend})" if backend else run.op, run.fmt), Counter())
            try:
                equal = digest({"d": on_cpu(run)}) == one["answer"]
            except OperandError as error:
                count["refused"] += 1
                print(f"refused: {run.name}: {error}")
                continue
            count.update(calls=1, equal=equal, elements=one["elements"])
            if not equal:
                print(f"differs: {run.name} ({time.process_time() - start:.1f} s)", flush=True)
    lines = ["| Operation | Format | Calls | Equal | Elements | Refused |", "|---|---|---:|---:|---:|---:|"]
    for (op, fmt), count in sorted(counts.items()):
        numbers = [f"{count[key]:,}" for key in ("calls", "equal", "elements", "refused")]
        lines.append(f"| {' | '.join([op, fmt, *numbers])} |")
    print("\n".join(lines))
    if markdown:
        write_text(markdown, "\n".join(lines) + "\n")
    return int(any(count["equal"] != count["calls"] for count in counts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
