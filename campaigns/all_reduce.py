"""All-reduces of NCCL, and layers whose K lies on two GPUs: recorded, and predicted in every bit?

python campaigns/all_reduce.py --record FOLDER
python campaigns/all_reduce.py --keep FOLDER --out FILE.json
python campaigns/all_reduce.py --compare FILE.json [--every 4]

The first needs two GPUs and PyTorch, the others neither. For docs/reports/all-reduce-h200.md.

What a record keeps: digests, and which order each stretch of elements has. Operands are drawn again. Orders
and plans were found on the arrays; `replayed` computes every answer from them and compares the digests.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from all_reduce_ranks import (
    BATCHES,
    HIDDEN,
    INNER,
    LARGE,
    LAYERS,
    MODES,
    PAIR,
    SIZES,
    Mode,
    array_of,
    chain_input,
    chain_weights,
    digest,
    name_of,
    operand,
    record,
)

from golden.errors import OperandError
from golden.files.inputs import read_json
from golden.files.output import write_text
from golden.kernels import all_reduce
from golden.kernels.all_reduce import Order, added
from golden.kernels.candidates import cuts
from golden.kernels.layers import CANCELLING, KINDS, Layer, operands
from golden.kernels.plan import Plan
from golden.kernels.plan_files import gemv, named
from golden.kernels.product import gemm

_PORT = 29500
_SECONDS = 120
"""Of one mode: communicators of eight processes took seven seconds on an H200, imports ten."""
Bits = npt.NDArray[Any]
_TREES_OF_TWO = ((0, 1, (2, 3)), (2, 3, (0, 1)))
"""The trees of two machines with two GPUs each, as NCCL's log has them: a GPU adds what its neighbour sends,
then what the other machine sends."""


@dataclass(frozen=True)
class Replayed:
    """One answer: its name, its elements under all settings, and whether the digest is the predicted one."""

    name: str
    elements: int
    right: bool


def orders(mode: Mode, algorithm: str) -> Sequence[Order]:
    """In which the elements of an array may be added."""
    if algorithm == "Tree" and mode.per_host:
        return _TREES_OF_TWO if mode.per_host > 1 else all_reduce.trees(mode.ranks)
    return [all_reduce.ring(mode.ranks, chunk) for chunk in range(mode.ranks)]


# What is kept -----------------------------------------------------------------------------------------------


def keep(folder: Path, out: Path, seed: int, about: dict[str, str]) -> None:
    """Reads what the processes wrote, finds orders and plans, and writes the record."""
    sums = [one for mode in MODES for one in _sums(folder, mode, seed)]
    given = {"about": about, "seed": seed, "sums": sums, "layers": _layers(folder, seed)}
    given["chain"] = _chain(folder)
    text = json.dumps(given, separators=(",", ":"))
    write_text(out, re.sub(r'(\{"(?:mode|layer|name)")', r"\n\1", text) + "\n")


def _sums(folder: Path, mode: Mode, seed: int) -> Iterator[dict[str, Any]]:
    said = [read_json(folder / f"{mode.name}_rank{rank}.json") for rank in range(mode.ranks)]
    for setting in mode.settings:
        name, arrays = name_of(setting), np.load(folder / f"{mode.name}_{name_of(setting)}.npz")
        for key in (one for one in said[0] if one.startswith(f"{name}/")):
            _, operation, fmt, size = key.split("/")
            if operation == "average" and (setting[0] == "Tree" or int(size) == LARGE):
                continue  # not modelled; no array to find chunks in
            if len({one[key] for one in said}) > 1:
                raise ValueError(f"{mode.name} {key}: two ranks have different bits")
            entry = {
                "mode": mode.name, "setting": name, "operation": operation, "fmt": fmt,
                "size": int(size), "answer": said[0][key],
            }  # fmt: skip
            if _needs_runs(mode, setting, entry):
                d = arrays[f"{operation}.{fmt}.{size}"]
                entry["runs"] = _runs(_terms(mode, entry, seed), d, entry, orders(mode, setting[0]))
            yield entry


def _needs_runs(mode: Mode, setting: tuple[str, str, int], entry: dict[str, Any]) -> bool:
    """Whether NCCL's rule alone does not say here which elements have which order."""
    if entry["operation"] in ("reduce", "reduce_scatter"):
        return False
    if mode.ranks == 2:
        return bool(entry["operation"] == "average")
    one = setting[2] == 1
    return not (one and (setting[0] == "Tree" or entry["size"] == SIZES[0]))


def _runs(held: list[Bits], d: Bits, entry: dict[str, Any], known: Sequence[Order]) -> list[list[int]]:
    """[first element, number of its order] of stretches of d, as long as each order goes; of an array that
    no orders explain, what was found until then."""
    mean = entry["operation"] == "average"
    equal = np.stack([added(held, entry["fmt"], order, mean) == d for order in known])
    found: list[list[int]] = []
    place = 0
    while place < len(d):
        lengths = [len(d) - place if row[place:].all() else int(np.argmin(row[place:])) for row in equal]
        if not max(lengths):
            break
        found.append([place, int(np.argmax(lengths))])
        place += max(lengths)
    return found


def _layers(folder: Path, seed: int) -> list[dict[str, Any]]:
    arrays = [np.load(folder / f"layers_rank{rank}.npz") for rank in range(2)]
    said = [read_json(folder / f"{PAIR}_rank{rank}.json") for rank in range(2)]
    found = []
    for layer in LAYERS:
        entry: dict[str, Any] = {"layer": layer.name, "of": layer.of, "answers": []}
        halves = _halves(layer, seed)
        likely = list(_usual(layer))
        for m in BATCHES:
            names = {kind: f"{layer.name}/{kind}/{m}" for kind in KINDS}
            own = {kind: [one[array_of(f"{names[kind]}/own")] for one in arrays] for kind in KINDS}
            plan = next((one for one in likely if _gives(one, halves, own)), None)
            likely.sort(key=lambda one: one is not plan)
            shown = [one[f"{name}/same"] for one in said for name in names.values()]
            entry["answers"].append(
                {
                    "m": m,
                    "plan": _options(plan),
                    "own": {kind: [digest(codes) for codes in own[kind]] for kind in KINDS},
                    "sum": {kind: digest(arrays[0][array_of(f"{names[kind]}/sum")]) for kind in KINDS},
                    "same": all(shown),
                    "elements": said[0][f"{names[CANCELLING]}/elements"],
                }
            )
        found.append(entry)
    return found


def _options(plan: Plan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    if plan.instruction.is_custom:
        return {"gemv": True}
    return {key: plan.given[key] for key in ("part", "reduce_format") if key in plan.given}


def _chain(folder: Path) -> dict[str, str]:
    """Digests by "block/what/rank", which are the same under every setting."""
    found: dict[str, str] = {}
    for rank in range(2):
        for key, answer in read_json(folder / f"{PAIR}_rank{rank}.json").items():
            if key.startswith("chain/"):
                _, _, block, what = key.split("/")
                if found.setdefault(f"{block}/{what}/{rank}", answer) != answer:
                    raise ValueError(f"{key}: two settings give different bits")
    return found


# Replayed ---------------------------------------------------------------------------------------------------


def replayed(record: Path, every: int = 1) -> Iterator[Replayed]:
    """All answers of a record by their orders and plans; `every`: of the sums, each N-th."""
    given = read_json(record)
    seed, modes = given["seed"], {mode.name: mode for mode in MODES}
    for entry in given["sums"][::every]:
        name = " ".join(str(entry[key]) for key in ("mode", "setting", "operation", "fmt", "size"))
        d = predicted(modes[entry["mode"]], entry, seed)
        yield Replayed(name, d.size, digest(d) == entry["answer"])
    settings = len(next(mode for mode in MODES if mode.name == PAIR).settings)
    layers = {layer.name: layer for layer in LAYERS}
    for entry in given["layers"]:
        yield from _replayed_layer(layers[entry["layer"]], entry, seed, settings)
    yield from _replayed_chain(given["chain"], seed, settings)


@lru_cache(maxsize=4)
def _held(ranks: int, fmt: str, size: int, seed: int) -> list[Bits]:
    return [operand(fmt, size, ranks, rank, seed) for rank in range(ranks)]


def _terms(mode: Mode, entry: dict[str, Any], seed: int) -> list[Bits]:
    return _held(mode.ranks, entry["fmt"], entry["size"], seed)


def predicted(mode: Mode, entry: dict[str, Any], seed: int) -> Bits:
    """The codes of one sum."""
    held, fmt, size, ranks = _terms(mode, entry, seed), entry["fmt"], entry["size"], mode.ranks
    algorithm, _, channels = entry["setting"].split("-")
    known, operation = orders(mode, algorithm), entry["operation"]
    if "runs" in entry:
        starts = [start for start, _ in entry["runs"]]
        pieces = [
            (slice(start, stop), known[which])
            for (start, which), stop in zip(entry["runs"], [*starts[1:], size], strict=True)
        ]
    elif operation == "reduce":
        pieces = [(slice(0, size), all_reduce.ring(ranks, ranks - 1))]
    elif operation == "reduce_scatter":
        each = size // ranks
        pieces = [(slice(c * each, (c + 1) * each), all_reduce.ring(ranks, c)) for c in range(ranks)]
    elif algorithm == "Tree" or channels != "1":
        pieces = [(slice(0, size), known[0])]
    else:
        pieces = list(zip(all_reduce.chunks(size, ranks, fmt), known, strict=True))
    mean = operation == "average"
    return np.concatenate([added([one[at] for one in held], fmt, order, mean) for at, order in pieces])


def _halves(layer: Layer, seed: int) -> dict[str, list[tuple[Bits, Bits]]]:
    """A and B of each rank, by kind."""
    half, found = layer.k // 2, {}
    for kind in KINDS:
        given = operands(layer, kind, seed)
        owns = [slice(rank * half, (rank + 1) * half) for rank in range(2)]
        found[kind] = [(given["a"][:, own], given["b"][own]) for own in owns]
    return found


def _base(layer: Layer) -> Plan:
    name = "cublas_tf32" if layer.a == "f32" else f"cublas_f16.{layer.a}.{layer.d}"
    found = named("hopper", name)
    assert found is not None
    return found


def _usual(layer: Layer) -> Iterator[Plan]:
    base = _base(layer)
    yield base
    for size in cuts(base, layer.k // 2):
        for fmt in (None, layer.d) if layer.a != "f32" else (None,):
            yield base.but(part=size, reduce_format=fmt)
    if layer.a != "f32":
        yield gemv(layer.a, layer.d)


def _gives(plan: Plan, halves: dict[str, list[tuple[Bits, Bits]]], own: dict[str, list[Bits]]) -> bool:
    """Whether a plan gives the products of both ranks: of a few elements first."""
    few = 4
    a, b = halves[CANCELLING][0]
    if not np.array_equal(gemm(a[:1], b[:, :few], plan), own[CANCELLING][0][:1, :few]):
        return False
    return all(
        np.array_equal(gemm(a[: len(d)], b, plan), d)
        for kind in KINDS
        for (a, b), d in zip(halves[kind], own[kind], strict=True)
    )


def _replayed_layer(layer: Layer, entry: dict[str, Any], seed: int, settings: int) -> Iterator[Replayed]:
    halves, made = _halves(layer, seed), {}
    for answer in entry["answers"]:
        options = answer["plan"]
        if options is None:
            continue
        plan = gemv(layer.a, layer.d) if "gemv" in options else _base(layer).but(**options)
        key = json.dumps(options)
        if key not in made:
            made[key] = {kind: [gemm(a, b, plan) for a, b in halves[kind]] for kind in KINDS}
        right = bool(answer["same"])
        for kind in KINDS:
            own = [one[: answer["m"]] for one in made[key][kind]]
            right &= [digest(one) for one in own] == answer["own"][kind]
            right &= digest(added(own, layer.d, (0, 1))) == answer["sum"][kind]
        yield Replayed(f"{layer.name} M={answer['m']}", answer["elements"] * len(KINDS) * settings, right)


def _replayed_chain(given: dict[str, str], seed: int, settings: int) -> Iterator[Replayed]:
    """Every number of the chain from its input alone."""
    second = _base(Layer(HIDDEN, INNER, "bf16", "bf16"))
    first, half = second.but(activation="relu"), INNER // 2
    x = chain_input(seed)
    for block, (w1, w2) in enumerate(chain_weights(seed)):
        owns = [slice(rank * half, (rank + 1) * half) for rank in range(2)]
        inner = [gemm(x, w1[:, own], first) for own in owns]
        outer = [gemm(h, w2[own], second) for h, own in zip(inner, owns, strict=True)]
        total = added(outer, "bf16", (0, 1))
        x = added([total, x], "bf16", (0, 1))
        for rank in range(2):
            found = {"h": inner[rank], "own": outer[rank], "sum": total, "x": x}
            for what, codes in found.items():
                right = digest(codes) == given[f"{block}/{what}/{rank}"]
                yield Replayed(f"chain block {block} {what} rank {rank}", codes.size * settings, right)


# The command ----


def main() -> int:
    """Exit status 1: a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--seed", type=int, default=54)
    parser.add_argument("--every", type=int, default=1, help="compare each N-th sum")
    given = parser.parse_args()
    if given.record:
        return _record(given.record, given.seed)
    if given.keep and given.out:
        keep(given.keep, given.out, given.seed, read_json(given.keep / "about.json"))
        return 0
    if given.compare:
        return _compare(given.compare, given.every)
    parser.error("expected --record, --keep with --out, or --compare")


def _record(folder: Path, seed: int) -> int:
    for number, mode in enumerate(MODES):
        if not record(mode, folder, seed, _PORT + number, _SECONDS):
            raise OperandError(f"{mode.name}: a process failed or took too long; {folder} has its messages")
    return 0


def _compare(path: Path, every: int) -> int:
    elements, answers, wrong = Counter[str](), Counter[str](), 0
    for one in replayed(path, every):
        mode = one.name.split()[0]
        what = mode if mode in {known.name for known in MODES} or mode == "chain" else "layers"
        elements[what] += one.elements
        answers[what] += 1
        if not one.right:
            wrong += 1
            print("differs:", one.name)
    for what in elements:
        print(f"{what}: {answers[what]} answers, {elements[what]:,} elements")
    print(f"{wrong} answers differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
