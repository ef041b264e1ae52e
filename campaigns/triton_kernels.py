"""Kernels in Triton on a GPU, and on a CPU in Triton's interpreter with its arithmetic: are all bits equal?

python campaigns/triton_kernels.py --record FILE.npz --seed 7 [--count 56] [--attention 256] [--sums 90]
    [--jobs 8]
TRITON_INTERPRET=1 python campaigns/triton_kernels.py --compare FILE.npz [...] [--markdown FILE]
python campaigns/triton_kernels.py --digests FILE.npz [...] --out FILE.json

The first needs a GPU, the others none. Only what the GPU wrote and which launch it was are recorded: the
operands are drawn again. The third keeps a digest of each result, for the tests, and --compare takes its file
as well. For docs/reports/triton-h200.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from triton_launches import Run, attentions, launch, products, sums

from golden.files.output import write_text
from hw_capture.products.record import digest

_INSTRUCTIONS = re.compile(r"(?:wgmma\.mma_async|mma\.sync)[\w.:]*")
_COLUMNS = re.compile(r"m64n\d+")
"""The columns of a wgmma change nothing in its arithmetic."""


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+")
    parser.add_argument("--digests", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--every", type=int, default=1, help="compare each N-th launch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=56)
    parser.add_argument("--attention", type=int, default=0, help="queries of each head, a multiple of 128")
    parser.add_argument("--sums", type=int, default=0, help="launches of kernels with tl.sum and no tl.dot")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    if given.record:
        heads = attentions(given.seed, given.attention) if given.attention else ()
        rows = sums(given.seed, given.sums)
        return record([*products(given.seed, given.count), *heads, *rows], given.record, given.jobs)
    if given.compare:
        return compare(given.compare, given.markdown, given.every)
    if given.digests and given.out:
        return keep(given.digests, given.out)
    parser.error("expected --record, --compare, or --digests with --out")


def record(runs: list[Run], path: Path, jobs: int) -> int:
    """Launches on the GPU, each in one of `jobs` processes, because most of the time is the compiler's."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        found = list(pool.imap(_on_gpu, runs, chunksize=1))
    arrays = {
        f"{number}.{name}": bits for number, (made, _) in enumerate(found) for name, bits in made.items()
    }
    facts = {"runs": [run.json() for run in runs], "compiled": [kinds for _, kinds in found], **_versions()}
    np.savez_compressed(path, facts=np.array(json.dumps(facts)), **arrays)
    failed = [(run.name, kinds) for run, (made, kinds) in zip(runs, found, strict=True) if not made]
    for name, said in failed:
        print(f"not launched: {name}: {said}")
    print(f"{len(runs) - len(failed)} launches recorded")
    return 0


def _on_gpu(run: Run) -> tuple[dict[str, Any], list[str]]:
    from triton.runtime.jit import JITFunction

    own, compiled = JITFunction.run, []

    def watched(*args: Any, **kwargs: Any) -> Any:
        compiled.append(own(*args, **kwargs))
        return compiled[-1]

    JITFunction.run = watched
    try:
        made = launch(run, "cuda")
    except Exception as error:  # one launch that a GPU refuses costs no other
        return {}, [f"{type(error).__name__}: {error}"]
    finally:
        JITFunction.run = own
    return made, kinds_of("".join(kernel.asm["ptx"] for kernel in compiled))


def kinds_of(ptx: str) -> list[str]:
    """The matrix instructions of a text in PTX, each once."""
    return sorted({_COLUMNS.sub("m64n128", word) for word in _INSTRUCTIONS.findall(ptx)})


def _versions() -> dict[str, str]:
    import torch
    import triton

    return {"triton": triton.__version__, "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}


def keep(paths: list[Path], out: Path) -> int:
    """Digests of recordings, in one file."""
    entries, versions = [], {}
    for path in paths:
        facts, arrays = _read(path)
        versions = {key: facts[key] for key in ("gpu", "triton", "torch")}
        for number, (run, compiled) in enumerate(zip(facts["runs"], facts["compiled"], strict=True)):
            made = _of(arrays, number)
            if made:
                entries.append({"run": run, "compiled": compiled, "answer": digest(made)})
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    write_text(out, json.dumps(versions)[:-1] + ', "launches": [\n' + lines + "\n]}\n")
    return 0


def compare(paths: list[Path], markdown: Path | None, every: int) -> int:
    """Recorded launches again on the CPU."""
    rows = [row for path in paths for row in _compared(path, every)]
    for row in rows:
        if row["differ"] or row["other instruction"] or row["of the CPU"]:
            print(json.dumps(row))
    text = _table(rows)
    print(text)
    if markdown:
        write_text(markdown, text)
    return int(any(row["differ"] or row["other instruction"] for row in rows))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("facts"))), arrays


def _of(arrays: dict[str, Any], number: int) -> dict[str, Any]:
    """What one launch wrote."""
    return {name.partition(".")[2]: bits for name, bits in arrays.items() if name.startswith(f"{number}.")}


def _compared(path: Path, every: int) -> Iterator[dict[str, Any]]:
    """A recording, or its digests, of which every element counts as different where a digest is."""
    if path.suffix == ".json":
        launches = json.loads(path.read_text())["launches"]
        asked = [(one["run"], one["compiled"], one["answer"]) for one in launches]
    else:
        facts, arrays = _read(path)
        kept = zip(facts["runs"], facts["compiled"], strict=True)
        asked = [(run, kinds, _of(arrays, number)) for number, (run, kinds) in enumerate(kept)]
    for given, compiled, answer in asked[::every]:
        if answer:
            yield _again(Run.of(given), compiled, answer)


def _again(run: Run, compiled: list[str], answer: dict[str, Any] | str) -> dict[str, Any]:
    from mmagold.triton import emulate

    start = time.process_time()
    with emulate("hopper") as chip:
        made = launch(run, "cpu")
    if isinstance(answer, str):
        different = {"d": int(made["d"].size)} if digest(made) != answer else {}
    else:
        counts = {name: int(np.count_nonzero(bits != answer[name])) for name, bits in made.items()}
        different = {name: count for name, count in counts.items() if count}
    kinds = sorted({text.partition(",")[0] for text in chip.dots} - {"fma.f32.f32"})
    return {
        "name": run.name,
        "kernel": run.kernel,
        "types": f"{run.a} {run.b}",
        "elements": int(made["d"].size),
        "differ": different,
        "other instruction": [] if kinds == compiled else [kinds, compiled],
        "of the CPU": dict(chip.cpu),
        "seconds": time.process_time() - start,
    }


def _table(rows: list[dict[str, Any]]) -> str:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        count = counts.setdefault((row["kernel"], row["types"]), Counter())
        count["launches"] += 1
        count["elements"] += row["elements"]
        count["equal"] += not row["differ"]
        count["differ"] += sum(row["differ"].values())
    lines = [
        "| Kernel | Types of A and B | Launches | Equal | Elements | Different |",
        "|---|---|---|---|---|---|",
    ]
    for (kernel, types), count in sorted(counts.items()):
        lines.append(
            f"| {kernel} | {types} | {count['launches']} | {count['equal']} | {count['elements']:,} | "
            f"{count['differ']:,} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
