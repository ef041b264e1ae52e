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
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.files.output import write_text
from golden.kernels import torch_ops
from golden.kernels.drawing import drawn
from golden.kernels.torch_attention import QUERIES_MATH
from golden.number.formats import from_float, get_format
from hw_capture.products.record import digest

Bits = npt.NDArray[Any]
EACH, SUMS, ROWS, NORMS = (
    ("exp", "log"),
    ("sum", "mean"),
    ("softmax", "log_softmax"),
    ("layer_norm", "rms_norm"),
)
_SPREAD = {"f32": 9, "f16": 4, "bf16": 9}
"""Exponents of terms: sums cancel, and f16 has room for them."""
_SPECIAL = 0.0005
"""Of operands with `special`, the share of codes drawn from all: infinities, NaNs, subnormal and huge
numbers."""
_MOST = 1 << 21
"""Elements of a call."""
_CANCEL, _SCORES = 3.0, 2.0
"""Standard deviations of the numbers of a norm or a softmax, and of queries and keys: weights of many
sizes."""
_HEADS = (64, 64, 64, 128, 128, 128, 32, 80, 96, 256)


@dataclass(frozen=True)
class Run:
    """One call.

    Attributes:
        op: a function of torch_ops. shape: of x (attention: batch, heads, queries, head).
        options: dim; weight and bias (whether there are any); keys, causal, backend; special.
        seed: of the operands.
    """

    op: str
    fmt: str
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def name(self) -> str:
        """Unique."""
        words = [self.op, self.fmt, "x".join(map(str, self.shape))]
        return "_".join([*words, *(f"{key}={value}" for key, value in self.options.items()), str(self.seed)])

    def json(self) -> dict[str, Any]:
        """As keywords that make it again."""
        return asdict(self)

    @classmethod
    def of(cls, found: dict[str, Any]) -> Run:
        """From `json`."""
        return cls(**found | {"shape": tuple(found["shape"])})

    def operands(self) -> list[Bits | None]:
        """Raw codes, in the order of the arguments; None: an argument that is not given."""
        if self.op == "attention":
            batch, heads, _, head = self.shape
            keys = (batch, heads, self.options["keys"], head)
            return [
                self._normal(name, one) for name, one in zip("qkv", (self.shape, keys, keys), strict=True)
            ]
        if self.op in NORMS:
            rows = [self._normal("x", self.shape)]
            names = ("weight", "bias") if self.op == "layer_norm" else ("weight",)
            given = [self._normal(one, self.shape[-1:]) if self.options.get(one) else None for one in names]
            return [*rows, *given]
        if self.op in ROWS:
            return [self._normal("x", self.shape)]
        form = get_format(self.fmt)
        if self.op in EACH:
            return [self._rng("x").integers(0, 1 << form.storage, self.shape, np.uint64).astype(form.dtype)]
        return [self._special("x", drawn(self._rng("x"), form, self.shape, _SPREAD[self.fmt]))]

    def _rng(self, operand: str) -> np.random.Generator:
        return np.random.default_rng(
            [self.seed, zlib.crc32(self.name.encode()), zlib.crc32(operand.encode())]
        )

    def _normal(self, operand: str, shape: tuple[int, ...]) -> Bits:
        size = _SCORES if self.op == "attention" else _CANCEL
        return self._special(
            operand, from_float(self.fmt, size * self._rng(operand).standard_normal(shape, np.float32))
        )

    def _special(self, operand: str, codes: Bits) -> Bits:
        if not self.options.get("special"):
            return codes
        rng, form = self._rng(operand + " special"), get_format(self.fmt)
        any_code = rng.integers(0, 1 << form.storage, codes.shape, np.uint64).astype(form.dtype)
        return np.where(rng.random(codes.shape) < _SPECIAL, any_code, codes)


def on_cpu(run: Run) -> Bits:
    """Raw codes of the result, by the model."""
    given, options = run.operands(), run.options
    call: Callable[..., Bits] = getattr(torch_ops, run.op)
    if run.op == "attention":
        return call(*given, causal=options["causal"], backend=options["backend"], fmt=run.fmt)
    if run.op in (*NORMS, *EACH):
        return call(*given, fmt=run.fmt)
    dim = options["dim"]
    return call(*given, tuple(dim) if isinstance(dim, list) else dim, fmt=run.fmt)


def on_gpu(run: Run, device: str = "cuda") -> Bits:
    """Raw codes of the result, by PyTorch."""
    import torch

    from golden.tensors.dtypes import codes, tensor_of

    form = get_format(run.fmt)
    given = [None if one is None else tensor_of(one, form).to(device) for one in run.operands()]
    made = _call(torch, run, given)
    return codes(made.cpu().contiguous(), form, "result")


def _call(torch: Any, run: Run, given: list[Any]) -> Any:
    options, functional = run.options, torch.nn.functional
    if run.op == "attention":
        if options["backend"] == "flash":
            scale = run.shape[-1] ** -0.5
            flash = torch.ops.aten._scaled_dot_product_flash_attention
            pad = -run.shape[-1] % 8  # as scaled_dot_product_attention has it
            given = [functional.pad(one, (0, pad)) for one in given]
            return flash(*given, 0.0, options["causal"], False, scale=scale)[0][..., : run.shape[-1]]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return functional.scaled_dot_product_attention(*given, is_causal=options["causal"])
    if run.op in NORMS:
        x, weight, *bias = given
        length = (run.shape[-1],)
        return getattr(functional, run.op)(x, length, weight, *bias, eps=1e-5)
    dim = options.get("dim")
    return getattr(torch, run.op)(given[0]) if dim is None else getattr(torch, run.op)(given[0], dim)


# Drawn calls ------------------------------------------------------------------------------------------------


def calls(seed: int, count: int) -> Iterator[Run]:
    """`count` calls of each operation, of f32, f16 and bf16 in turn; sizes and options are drawn. A quarter
    has special codes."""
    rng = np.random.default_rng([seed, 5])
    for op in (*EACH, *SUMS, *ROWS, *NORMS, "flash", "math"):
        for number in range(count):
            formats = ("f16", "bf16") if op == "flash" else torch_ops.FORMATS
            fmt = formats[number % len(formats)]
            run = _attention(rng, op, fmt) if op in ("flash", "math") else _drawn(rng, op, fmt)
            special = {"special": True} if number % 4 == 3 else {}
            yield Run(run.op, fmt, run.shape, run.options | special, seed)


def _size(rng: np.random.Generator, most: int) -> int:
    """As many small as large ones; half of them multiples of a power of two."""
    size = int(np.exp(rng.uniform(0, np.log(most))))
    unit = 1 << int(rng.integers(0, 8))
    return max(size // unit * unit, 1) if rng.integers(2) else max(size, 1)


def _drawn(rng: np.random.Generator, op: str, fmt: str) -> Run:
    if op in EACH:
        return Run(op, fmt, (1 << 16,))
    if op in NORMS:
        length = _size(rng, 20_000)
        shape: tuple[int, ...] = (_size(rng, min(64, _MOST // length)), length)
        options: dict[str, Any] = {"weight": bool(rng.integers(2))}
        return Run(op, fmt, shape, options | ({"bias": bool(rng.integers(2))} if op == "layer_norm" else {}))
    rank = int(rng.integers(1, 4))
    dims = list(range(rank))
    while True:
        shape = tuple(_size(rng, 200_000 if rank == 1 else 40_000) for _ in dims)
        if np.prod(shape) <= _MOST:
            break
    dim: Any = -1 if rng.integers(2) else int(rng.integers(rank))
    if op in SUMS and rng.integers(3) == 0:
        dim = (
            None
            if rng.integers(2)
            else sorted(map(int, rng.permutation(rank)[: int(rng.integers(1, rank + 1))]))
        )
    return Run(op, fmt, shape, {"dim": dim})


def _attention(rng: np.random.Generator, backend: str, fmt: str) -> Run:
    head = int(rng.choice(_HEADS))
    while True:
        batch, heads = (int(rng.integers(1, 9)) for _ in range(2))
        queries, keys = _size(rng, 3000), _size(rng, 3000)
        causal = bool(rng.integers(2))
        keys = queries if causal else keys
        if batch * heads * queries * keys <= 1 << 23 and (
            backend == "flash" or (queries >= QUERIES_MATH and batch * heads > 1)
        ):
            break
    options = {"keys": keys, "causal": causal, "backend": backend}
    return Run("attention", fmt, (batch, heads, queries, head), options)


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
