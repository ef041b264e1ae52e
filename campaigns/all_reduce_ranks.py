"""All-reduces of several GPUs, and layers whose K lies on two of them, through torch.distributed and NCCL.

A group of processes records under each algorithm and protocol of NCCL. NCCL takes a process with another
NCCL_HOSTID for one of another machine, so that several processes may share a GPU: the order of a ring or tree
of many machines is seen with few GPUs. NCCL's own log says which algorithm ran, and the ring and the trees.

NVLink multicast stays off (NCCL_NVLS_ENABLE=0): it adds in the switch, in another order.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.kernels.drawing import drawn
from golden.kernels.layers import COLUMNS, KINDS, ROWS, Layer, operands
from golden.number.formats import from_float, get_format
from golden.number.tensor_names import TORCH_NAMES

Bits = npt.NDArray[Any]
FORMATS = ("f16", "bf16", "f32")
SIZES = (5000, 65560)
"""Elements: a small message, of which a chunk ends inside a vector of 16 bytes; a larger one."""
LARGE = 1 << 22
"""Elements of a message that is as large as a layer's; two GPUs only, as a digest."""
SPREAD = 4
"""Exponents of terms, so near to each other that sums cancel and each order has its own bits."""
ANY_CODES = 1024
"""Of an operand, the first elements are drawn from all codes: infinities, NaNs, subnormal numbers."""


@dataclass(frozen=True)
class Mode:
    """Processes and the machines that NCCL believes them to be on.

    Attributes:
        ranks: processes, each with GPU rank mod 2.
        per_host: ranks that share an NCCL_HOSTID; 0: all, on this machine as it is.
        settings: (algorithm, protocol, channels); "" and 0: NCCL's choice.
    """

    name: str
    ranks: int
    per_host: int
    settings: tuple[tuple[str, str, int], ...]


PAIR = "two"
_PROTOCOLS = ("Simple", "LL", "LL128")
_NET = tuple(
    (algorithm, protocol, channels)
    for channels in (1, 0)
    for algorithm in ("Ring", "Tree")
    for protocol in ("Simple", "LL")
)
MODES = (
    Mode(
        PAIR,
        2,
        0,
        (("", "", 0), *((a, p, 0) for a in ("Ring", "Tree") for p in _PROTOCOLS), ("Ring", "Simple", 1)),
    ),
    Mode("hosts4", 4, 1, _NET),
    Mode("hosts8", 8, 1, _NET),
    Mode("nodes4", 4, 2, _NET),
    Mode("hosts3", 3, 1, _NET[:4]),
)


@lru_cache(maxsize=len(FORMATS) * 3)
def operand(fmt: str, size: int, ranks: int, rank: int, seed: int) -> Bits:
    """Raw codes of one rank."""
    rng, form = np.random.default_rng([seed, FORMATS.index(fmt), size, ranks, rank]), get_format(fmt)
    codes = drawn(rng, form, (size,), SPREAD)
    codes[:ANY_CODES] = rng.integers(0, 1 << form.storage, ANY_CODES, np.uint64).astype(form.dtype)
    return codes


def name_of(setting: tuple[str, str, int]) -> str:
    """In files and keys."""
    algorithm, protocol, channels = setting
    return f"{algorithm or 'default'}-{protocol or 'default'}-{channels}"


OPERATIONS = ("all_reduce", "average", "reduce_scatter", "reduce")
"""The sum; the mean (ReduceOp.AVG); the sum in parts, a rank each, then gathered; the sum for one rank."""
BATCHES = (1, 2, 8, 16, 32, 64, 128, 256, 512, 2048)
"""M of the layers."""
LAYERS = tuple(
    Layer(n, k, fmt, fmt, options=options, of=of)
    for fmt, shapes in (
        (
            "bf16",
            (
                (4096, 4096, "Llama 3.1 8B: o"),
                (4096, 14336, "Llama 3.1 8B: down"),
                (3584, 3584, "Qwen 2.5 7B: o"),
                (3584, 18944, "Qwen 2.5 7B: down"),
                (8192, 28672, "Llama 3.1 70B: down"),
            ),
        ),
        ("f16", ((4096, 4096, "Llama 3.1 8B: o"), (4096, 14336, "Llama 3.1 8B: down"))),
        ("f32", ((4096, 4096, "Llama 3.1 8B: o"), (4096, 14336, "Llama 3.1 8B: down"))),
    )
    for n, k, of in shapes
    for options in ({}, {"split_k": False})
)
"""Row-parallel layers: each rank has half of K. f32 is multiplied as tf32."""
BLOCKS, HIDDEN, INNER, TOKENS = 4, 1024, 4096, 16
"""A chain of layers: x -> relu(x W1) W2, all-reduced, + x; W1 is cut by columns, W2 by rows."""


def chain_weights(seed: int, fmt: str = "bf16") -> Iterator[tuple[Bits, Bits]]:
    """For each block raw codes of W1 (HIDDEN, INNER) and W2 (INNER, HIDDEN)."""
    for block in range(BLOCKS):
        rng = np.random.default_rng([seed, 7, block])
        w1 = rng.standard_normal((HIDDEN, INNER), np.float32) / np.float32(HIDDEN**0.5)
        w2 = rng.standard_normal((INNER, HIDDEN), np.float32) / np.float32(INNER**0.5)
        yield from_float(fmt, w1), from_float(fmt, w2)


def chain_input(seed: int, fmt: str = "bf16") -> Bits:
    """Raw codes of x (TOKENS, HIDDEN)."""
    return from_float(fmt, np.random.default_rng([seed, 8]).standard_normal((TOKENS, HIDDEN), np.float32))


def array_of(name: str) -> str:
    """The name of an array in a file."""
    return name.replace("/", "__").replace(" ", "_")


def digest(codes: Bits) -> str:
    """Of raw codes."""
    return hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()[:16]


# One process ------------------------------------------------------------------------------------------------


class Rank:
    """One process of a mode."""

    def __init__(self, mode: Mode, rank: int, port: int, folder: Path, seed: int, device: str = "cuda"):
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.mode, self.rank, self.seed = torch, dist, mode, rank, seed
        self.folder, self.on_gpu = folder, device == "cuda"
        self.device = device
        if self.on_gpu:
            self.device = f"cuda:{rank % torch.cuda.device_count()}"
            torch.cuda.set_device(self.device)
        self.backend = "nccl" if self.on_gpu else "gloo"
        dist.init_process_group(
            self.backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=mode.ranks
        )
        self.begun = time.monotonic()

    def say(self, what: str) -> None:
        """A line with the time."""
        if self.rank == 0:
            print(f"{self.mode.name} {time.monotonic() - self.begun:6.1f} s  {what}", flush=True)

    def group(self, setting: tuple[str, str, int]) -> Any:
        """A communicator with these settings; NCCL reads the environment when it makes one."""
        for name, value in zip(("NCCL_ALGO", "NCCL_PROTO"), setting[:2], strict=True):
            if value:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)
        options = None
        if self.on_gpu:
            options = self.dist.ProcessGroupNCCL.Options()
            if setting[2]:
                options.config.max_ctas = setting[2]
        group = self.dist.new_group(list(range(self.mode.ranks)), backend=self.backend, pg_options=options)
        first = self.torch.zeros(8, device=self.device)
        self.dist.all_reduce(first, group=group)
        first.cpu()
        return group

    def tensor(self, codes: Bits, fmt: str) -> Any:
        """Raw codes as a tensor of their type."""
        bits = np.ascontiguousarray(codes).view(f"i{codes.itemsize}")
        return self.torch.from_numpy(bits.copy()).to(self.device).view(getattr(self.torch, TORCH_NAMES[fmt]))

    def codes(self, tensor: Any) -> Bits:
        """Raw codes of a tensor."""
        size = tensor.element_size()
        found = tensor.contiguous().view(getattr(self.torch, f"int{8 * size}")).cpu().numpy()
        return np.asarray(found).view(f"u{size}")

    def run(self) -> None:
        """Records everything, a file for each setting, and the digests of this rank."""
        said: dict[str, Any] = {}
        groups: dict[str, Any] = {}
        for setting in self.mode.settings:
            name = name_of(setting)
            groups[name] = self.group(setting)
            kept: dict[str, Any] = self.reduced(name, groups[name], said)
            if self.rank == 0:
                np.savez(self.folder / f"{self.mode.name}_{name}.npz", **kept)
            self.write(said)
            self.say(name)
        if self.rank == 0:
            (self.folder / "about.json").write_text(json.dumps(self.about()))
        if self.mode.name == PAIR:
            self.chain(groups, said)
            self.layers(groups, said)
            self.write(said)

    def about(self) -> dict[str, str]:
        """GPU and versions."""
        torch = self.torch
        if not self.on_gpu:
            return {"torch": torch.__version__}
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        return {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "nccl": nccl}

    def write(self, said: dict[str, Any]) -> None:
        """The digests of this rank so far."""
        path = self.folder / f"{self.mode.name}_rank{self.rank}.json"
        path.write_text(json.dumps(said, indent=0))

    def reduced(self, setting: str, group: Any, said: dict[str, Any]) -> dict[str, Any]:
        """Every operation of every format and size."""
        kept = {}
        sizes = (*SIZES, LARGE) if self.mode.name == PAIR else SIZES
        for fmt in FORMATS:
            for size in sizes:
                own = operand(fmt, size, self.mode.ranks, self.rank, self.seed)
                for operation in OPERATIONS[:2] if setting.startswith("Tree") else OPERATIONS:
                    if operation != "all_reduce" and (size == SIZES[1] or self.mode.name == "nodes4"):
                        continue
                    found = self.codes(getattr(self, operation)(self.tensor(own, fmt), group))
                    key = f"{setting}/{operation}/{fmt}/{size}"
                    said[key] = digest(found)
                    if size != LARGE:
                        kept[key.partition("/")[2].replace("/", ".")] = found
        return kept

    def all_reduce(self, x: Any, group: Any) -> Any:
        """The sum."""
        self.dist.all_reduce(x, group=group)
        return x

    def average(self, x: Any, group: Any) -> Any:
        """The mean."""
        if self.on_gpu:
            self.dist.all_reduce(x, op=self.dist.ReduceOp.AVG, group=group)
        return x

    def reduce(self, x: Any, group: Any) -> Any:
        """The sum, in the last rank, given to all."""
        last = self.mode.ranks - 1
        self.dist.reduce(x, last, group=group)
        self.dist.broadcast(x, last, group=group)
        return x

    def reduce_scatter(self, x: Any, group: Any) -> Any:
        """The sum in parts of a rank each, gathered; what is left over stays as it is."""
        each = len(x) // self.mode.ranks
        if not self.on_gpu:
            return x
        part = self.torch.empty(each, dtype=x.dtype, device=x.device)
        whole = x[: each * self.mode.ranks].contiguous()
        self.dist.reduce_scatter_tensor(part, whole, group=group)
        self.dist.all_gather_into_tensor(whole, part, group=group)
        return whole

    # Layers ---------------------------------------------------------------------------------------------

    def layers(self, groups: dict[str, Any], said: dict[str, Any]) -> None:
        """Row-parallel layers: the product of half of K, and its all-reduce under each setting."""
        kept: dict[str, Any] = {}
        torch = self.torch
        matmul = torch.backends.cuda.matmul
        matmul.allow_tf32 = True
        for layer in LAYERS:
            whole = layer.options.get("split_k") is False
            if self.on_gpu:
                torch.backends.cuda.preferred_blas_library("cublaslt" if whole else "default")
                allowed: Any = (False, False) if whole else True
                matmul.allow_fp16_reduced_precision_reduction = allowed
                matmul.allow_bf16_reduced_precision_reduction = allowed
            half = layer.k // 2
            own = slice(self.rank * half, (self.rank + 1) * half)
            for kind in KINDS:
                few = operands(layer, kind, self.seed)
                x = self.tensor(few["a"][:, own], layer.a).repeat(max(BATCHES) // ROWS, 1)
                w = self.tensor(few["b"][own].T, layer.a).repeat(layer.n // COLUMNS, 1)
                for m in BATCHES:
                    y = torch.mm(x[:m], w.t())
                    name = f"{layer.name}/{kind}/{m}"
                    local, alike = self.block(y)
                    kept[f"{name}/own"] = local
                    found = []
                    for group in groups.values():
                        z = y.clone()
                        self.dist.all_reduce(z, group=group)
                        found.append(z)
                    block, alike_too = self.block(found[0])
                    kept[f"{name}/sum"] = block
                    same = all(
                        bool((one.view(torch.int16) == found[0].view(torch.int16)).all()) for one in found
                    )
                    said[f"{name}/same"] = alike and alike_too and same
                    said[f"{name}/elements"] = y.numel()
            self.say(layer.name)
        np.savez(
            self.folder / f"layers_rank{self.rank}.npz",
            **dict[str, Any]((array_of(name), one) for name, one in kept.items()),
        )

    def block(self, y: Any) -> tuple[Bits, bool]:
        """The first rows and columns of y, and whether all others are copies of them."""
        torch = self.torch
        rows = min(len(y), ROWS)
        codes = y.view(torch.int16 if y.element_size() == 2 else torch.int32)
        codes = codes.view(len(y), -1, COLUMNS)
        first = codes[:rows, 0]
        place = torch.arange(len(y), device=y.device) % ROWS
        return self.codes(first), bool((codes == first[place][:, None, :]).all())

    def chain(self, groups: dict[str, Any], said: dict[str, Any]) -> None:
        """Blocks of two layers, one after the other, under each setting."""
        torch = self.torch
        kept: dict[str, Any] = {}
        half = INNER // 2
        own = slice(self.rank * half, (self.rank + 1) * half)
        for setting, group in groups.items():
            x = self.tensor(chain_input(self.seed), "bf16")
            for block, (w1, w2) in enumerate(chain_weights(self.seed)):
                h = torch.relu(torch.mm(x, self.tensor(w1[:, own].T, "bf16").t()))
                y = torch.mm(h, self.tensor(w2[own].T, "bf16").t())
                z = y.clone()
                self.dist.all_reduce(z, group=group)
                x = z + x
                for name, one in (("h", h), ("own", y), ("sum", z), ("x", x)):
                    codes = self.codes(one)
                    said[f"chain/{setting}/{block}/{name}"] = digest(codes)
                    if setting == next(iter(groups)):
                        kept[f"{block}.{name}"] = codes
        np.savez(self.folder / f"chain_rank{self.rank}.npz", **kept)
        self.say("chain")


# All processes ----------------------------------------------------------------------------------------------

ENVIRONMENT = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "NCCL_MNNVL_ENABLE": "0",
}
_OVER_SOCKETS = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}
"""For ranks that NCCL takes to be on several machines."""


def record(mode: Mode, folder: Path, seed: int, port: int, seconds: float, device: str = "cuda") -> bool:
    """Runs all processes of a mode; what they wrote until then stays.

    Returns:
        whether all ended well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes = []
    for rank in range(mode.ranks):
        more = dict(ENVIRONMENT)
        if mode.per_host:
            more |= _OVER_SOCKETS | {"NCCL_HOSTID": f"host{rank // mode.per_host}"}
        if rank == 0:
            log = str(folder / f"{mode.name}_nccl.log")
            more |= {
                "NCCL_DEBUG": "INFO",
                "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING",
                "NCCL_DEBUG_FILE": log,
            }
        command = [sys.executable, __file__]
        command += [mode.name, str(rank), str(port), str(folder), str(seed), device]
        errors = (folder / f"{mode.name}_rank{rank}.err").open("w")
        processes.append(subprocess.Popen(command, env=os.environ | more, stderr=errors))
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(one.poll() is None for one in processes):
        if any(one.poll() for one in processes):
            break
        time.sleep(0.2)
    well = all(one.poll() == 0 for one in processes)
    for one in processes:
        if one.poll() is None:
            one.kill()
        one.wait()
    return well


if __name__ == "__main__":
    name, rank, port, folder, seed, device = sys.argv[1:]
    mode = next(one for one in MODES if one.name == name)
    Rank(mode, int(rank), int(port), Path(folder), int(seed), device).run()
