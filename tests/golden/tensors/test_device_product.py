"""Products as a GPU computes them, without one: the kernel's text run by threads of the CPU, PyTorch's
operations on its tensors; against golden.gemm, bit for bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after

import golden
from golden.errors import MetadataError, OperandError, ShapeError
from golden.kernels import conversion
from golden.kernels.options import leaves
from golden.kernels.plan import Plan

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'mmagold[torch]'")

from golden.tensors import cuda_source, device_product  # noqa: E402
from golden.tensors.device_product import convert_codes, encode, raw  # noqa: E402
from golden.tensors.dtypes import codes, dtype_of, integer_dtype, tensor_of  # noqa: E402

CXX = shutil.which("g++")
FP8 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
SPARSE_SCALED = (
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X."
    "f32.e2m1.e2m1.f32.ue4m3"
)
SHIM = """
#include <pthread.h>
#include <cstdio>
struct dim3_ { unsigned x, y, z; };
static thread_local dim3_ threadIdx, blockIdx;
static dim3_ gridDim;
static pthread_barrier_t barrier;
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)
#define __syncthreads() pthread_barrier_wait(&barrier)
"""
HOST = """
struct call {
    const void *a, *b, *seed, *metadata, *scale_a, *scale_b;
    void *d;
    long long n[13];
    unsigned x, y;
};
static void *run(void *given) {
    const call &c = *(const call *)given;
    threadIdx = {c.x, c.y, 0};
    for (unsigned i = 0; i < gridDim.x * gridDim.y * gridDim.z; i++) {
        blockIdx = {i % gridDim.x, i / gridDim.x % gridDim.y, i / gridDim.x / gridDim.y};
        pthread_barrier_wait(&barrier);
        chain((const code_a *)c.a, (const code_b *)c.b, (const code_c *)c.seed, (code_d *)c.d,
              c.n[0], c.n[1], c.n[2], c.n[3], c.n[4], c.n[5], c.n[6], c.n[7], c.n[8], c.n[9], c.n[10],
              (const unsigned char *)c.metadata, c.n[11], (const unsigned char *)c.scale_a,
              (const unsigned char *)c.scale_b, c.n[12]);
    }
    return nullptr;
}
extern "C" void launch(const void *a, const void *b, const void *seed, void *d, const void *metadata,
                       const void *scale_a, const void *scale_b, const long long *v) {
    static call calls[THREADS * THREADS];
    static pthread_t threads[THREADS * THREADS];
    gridDim = {unsigned((v[2] + TILE - 1) / TILE), unsigned((v[1] + TILE - 1) / TILE), 2};
    if (v[0] < 2) gridDim.z = 1; /* fewer blocks than there are products: each takes several */
    pthread_barrier_init(&barrier, nullptr, THREADS * THREADS);
    for (unsigned i = 0; i < THREADS * THREADS; i++) {
        calls[i] = {a, b, seed, metadata, scale_a, scale_b, d, {}, i % THREADS, i / THREADS};
        for (int j = 0; j < 13; j++) calls[i].n[j] = v[j];
        pthread_create(threads + i, nullptr, run, calls + i);
    }
    for (int i = 0; i < THREADS * THREADS; i++) pthread_join(threads[i], nullptr);
    pthread_barrier_destroy(&barrier);
}
"""
"""Enough of CUDA to run blocks one after the other, each by as many threads as it has."""


class HostChain:
    """The kernel's text, compiled for the CPU."""

    def __init__(self, ins: golden.Instruction, folder: Path) -> None:
        self.ins, source, library = ins, folder / "chain.cc", folder / "chain.so"
        source.write_text("\n".join([SHIM, cuda_source.source(ins), HOST]))
        options = ["-O1", "-w", "-std=gnu++20", "-shared", "-fPIC", "-pthread", "-ffp-contract=off"]
        subprocess.run([CXX, *options, "-frounding-math", str(source), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, a: Any, b: Any, seed: Any, steps: int, extra: dict[str, Any]) -> Any:
        d = torch.full(
            (*a.shape[:2], b.shape[2]), 0x55, dtype=integer_dtype(self.ins.formats["d"].dtype.itemsize)
        )
        seed = None if seed is None else seed.contiguous()
        extra = {
            name: (x.transpose(1, 2) if name == "scale_b" else x).contiguous() for name, x in extra.items()
        }
        found = [extra.get(name) for name in ("metadata", "scale_a", "scale_b")]
        sizes = [a.shape[0], a.shape[1], b.shape[2], b.shape[1], steps, *a.stride(), *b.stride()]
        sizes += [x.shape[-1] if x is not None else 0 for x in found[:2]]
        pointers = [ctypes.c_void_p(x.data_ptr() if x is not None else 0) for x in (a, b, seed, d, *found)]
        self.library.launch(*pointers, (ctypes.c_longlong * len(sizes))(*sizes))
        return d


def gemm_chain(ins: golden.Instruction) -> Any:
    """The same chains by golden.gemm."""
    plan = golden.plan(ins)

    def chain(a: Any, b: Any, seed: Any, steps: int, extra: dict[str, Any]) -> Any:
        assert not extra
        own, more = ins.formats, steps * ins.k - a.shape[2]
        x, y = raw(a).numpy().view(own["a"].dtype), raw(b).numpy().view(own["b"].dtype)
        x = np.pad(x, ((0, 0), (0, 0), (0, more)), constant_values=ins.at_rest("a"))
        y = np.pad(y, ((0, 0), (0, more), (0, 0)), constant_values=ins.at_rest("b"))
        c = None if seed is None else seed.numpy().view(own["c"].dtype)
        d = golden.gemm(x, y, plan if c is None else plan.but(c="seed"), c)
        return raw(torch.from_numpy(d.view(f"i{d.dtype.itemsize}")))

    return chain


def some(fmt: str, shape: tuple[int, ...], seed: int, wild: bool = False) -> np.ndarray:
    form, rng = golden.get_format(fmt), np.random.default_rng(seed)
    if wild or not form.is_float:
        return rng.integers(0, 1 << form.bits, shape, np.uint64).astype(form.dtype)
    return golden.from_float(form, rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape))


def tensor(fmt: str, bits: np.ndarray) -> Any:
    return tensor_of(bits, golden.get_format(fmt))


PLANS = [
    golden.plan("hopper", "cublas_f16.f16.f16"),
    golden.plan("hopper", "cublas_f16.bf16.bf16", part=128, reduce_format="bf16", reduce="tree"),
    golden.plan("hopper", "cublas_f16.f16.f32", slices=2, tile_k=64, split_k=3, reduce="descending"),
    golden.plan("hopper", "cublas_fp8_precise.e4m3.e4m3.bf16", split_k=2),
    golden.plan("hopper", "triton_dot.e4m3.mma_sync", alpha=0.3, beta=-1.7),
    golden.plan("hopper", "cublas_tf32", part=96),
    golden.plan("hopper", "triton_dot.f32", c="seed"),
    golden.plan("hopper", "cublas_f64", part=128, reduce_format="f32"),
    golden.plan("hopper", "cublas_s8", out="f32", alpha=0.25),
    golden.plan("hopper", FP8, scales="row", bias="columns", out="f16"),
    golden.plan("hopper", FP8, scales="tensor", bias="rows"),
    golden.plan("hopper", "HMMA.16816.F16", a="f32", b="bf16", out="f32"),
    golden.plan("hopper", FP8, promote=128, scales="block"),
    golden.plan("hopper", "cublas_fp8_blocks.128x128"),
    golden.plan("hopper", "cublas_fp8_blocks.1x128"),
    golden.plan("hopper", FP8, promote=128, scales="block", scale_order="a_first"),
    golden.plan("hopper", "HMMA.16816.F32", alpha=1.7, beta=0.3, fma=["c"]),
    golden.plan("hopper", "cublas_f16.f16.f16", parts=[64, 192, 128, 100], reduce="tree"),
    golden.plan("hopper", "cublas_f16.bf16.f32", part=128, reduce=[2, [0, 1]], activation="relu"),
    golden.plan("hopper", "cublas_s8", activation="relu"),
    golden.plan("hopper", "triton_dot.f32.tf32x3"),
    golden.plan("hopper", "triton_dot.f32.bf16x6", split_k=2, out="bf16", bias="rows"),
]


def length(plan: Plan, k: int) -> int:
    """K, or what the plan's own parts make, as many as its order of sums has."""
    options = plan.options
    many = () if isinstance(options.reduce, str) else leaves(options.reduce)
    return len(many) * options.part if many else sum(options.parts or (k,))


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("wild", [False, True])
def test_all_sums_outside_the_chains_are_golden_gemms(plan: Plan, wild: bool) -> None:
    formats, m, n, k = plan.formats, 7, 9, length(plan, 333)
    a, b = some(formats["a"].name, (3, 1, m, k), 1, wild), some(formats["b"].name, (2, k, n), 2, wild)
    more = {name: bits for name, (_, bits) in around(plan, m, n, k, wild).items()}
    tensors = {name: tensor(fmt, bits) for name, (fmt, bits) in around(plan, m, n, k, wild).items()}
    wanted = golden.gemm(a, b, plan, **more)
    given = [tensor(formats[x].name, bits) for x, bits in (("a", a), ("b", b))]
    of_c = tensors.pop("C", None)
    found = device_product.product(*given, plan, gemm_chain(plan.instruction), of_c, tensors)
    assert found.dtype is dtype_of(formats["d"].name)
    assert np.array_equal(codes(found, formats["d"], "D"), wanted)


def around(plan: Plan, m: int, n: int, k: int, wild: bool) -> dict[str, tuple[str, np.ndarray]]:
    """C, scales and bias of a plan: format and codes."""
    options, c, d = plan.options, plan.formats["c"].name, plan.formats["d"].name
    sizes: dict[str, tuple[str, tuple[int, ...]]] = {}
    if options.c == "seed" or options.beta != 1:
        sizes["C"] = c, (m, n)
    if options.scales == "block":
        (rows, k_a), (k_b, columns) = options.scale_a_block, options.scale_b_block
        sizes["scale_a"] = "f32", (-(-m // rows), -(-k // k_a))
        sizes["scale_b"] = "f32", (2, -(-k // k_b), -(-n // columns))
    elif options.scales != "none":
        row = options.scales == "row"
        sizes |= {"scale_a": ("f32", (2, m) if row else ()), "scale_b": ("f32", (n,) if row else ())}
    if options.bias != "none":
        sizes["bias"] = d, (m if options.bias == "rows" else n,)
    return {
        name: (fmt, some(fmt, shape, i + 3, wild and name in ("C", "scale_a")))
        for i, (name, (fmt, shape)) in enumerate(sizes.items())
    }


UNITS = [
    ("rtx_blackwell", SPARSE_SCALED),
    ("hopper", "HMMA.16816.F32"),
    ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.u4.s32"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
    ("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    ("hopper", FP8),
    ("hopper", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
    ("cdna1", "v_mfma_f32_16x16x16f16"),
    ("volta", "HMMA.884.F32.F32"),
    ("hopper", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("hopper", "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"),
    ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
    (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e5m2.e2m3.f32.ue8m0",
    ),
]


@pytest.mark.skipif(CXX is None, reason="no C++ compiler")
@pytest.mark.parametrize(("architecture", "name"), long_after(2, UNITS))
def test_the_kernel_is_the_chain(architecture: str, name: str, tmp_path: Path) -> None:
    ins = golden.instruction(architecture, name)
    chain, plan = HostChain(ins, tmp_path), golden.plan(ins)
    formats, chunk = plan.formats, ins.pattern.chunk if ins.pattern else 1
    for seed, (batch, m, n, k) in enumerate(
        [((3,), 5, 70, 3 * ins.k - chunk), ((), 66, 3, ins.k), ((2, 2), 1, 1, chunk)]
    ):
        for wild in (False, True):
            a = some(formats["a"].name, (*batch, m, k * ins.stored_k // ins.k), seed, wild)
            b = some(formats["b"].name, (*batch, n, k), seed + 9, wild).swapaxes(-1, -2)
            more = extra(ins, m, n, k, seed, wild)
            given = [tensor(formats[x].name, bits) for x, bits in (("a", a), ("b", b))]
            of_more = {name: torch.from_numpy(bits) for name, bits in more.items()}
            found = device_product.product(*given, plan, chain, None, of_more)
            assert np.array_equal(codes(found, formats["d"], "D"), golden.gemm(a, b, plan, **more))
    c = some(formats["c"].name, (m, n), 5)
    seeded = plan.but(c="seed")
    found = device_product.product(*given, seeded, chain, tensor(formats["c"].name, c), of_more)
    assert np.array_equal(codes(found, formats["d"], "D"), golden.gemm(a, b, seeded, c, **more))


@pytest.mark.skipif(CXX is None, reason="no C++ compiler")
def test_a_seed_may_be_wider_than_the_result(tmp_path: Path) -> None:
    ins = golden.instruction("hopper", "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32")
    a, b, c = some("f16", (1, 3, 16), 1), some("f16", (1, 16, 4), 2), some("f32", (1, 3, 4), 3)
    given = [raw(tensor(fmt, bits)) for fmt, bits in (("f16", a), ("f16", b), ("f32", c))]
    found = HostChain(ins, tmp_path)(*given, 1, {}).numpy().view(np.uint16)
    assert np.array_equal(found, ins.dot(a[:, :, None], b.swapaxes(1, 2)[:, None], c))


def extra(ins: golden.Instruction, m: int, n: int, k: int, seed: int, wild: bool) -> dict[str, np.ndarray]:
    """Metadata and block scales, within a few binades or (wild) any."""
    rng, found = np.random.default_rng(seed), {}
    if ins.pattern is not None:
        legal = np.array(ins.pattern.legal(ins.ordered_metadata), np.uint8)
        found["metadata"] = rng.choice(legal, (m, k // ins.pattern.chunk))
    if ins.scale_block is not None:
        count = -(-k // ins.scale_block)
        for name, shape in (("scale_a", (m, count)), ("scale_b", (count, n))):
            one, fmt = ins.at_rest(name), ins.formats[name]
            least, most = (0, 1 << fmt.bits) if wild else (one - 4, one + 4)
            found[name] = rng.integers(least, most, shape).astype(fmt.dtype)
    return found


@pytest.mark.parametrize(
    ("source", "target", "rounding"),
    [
        ("f32", "tf32", "nearest_even"),
        ("f32", "tf32", "nearest_away"),
        ("f32", "tf32", "toward_zero"),
        ("f32", "bf16", "toward_zero"),
        ("f32", "bf16", "nearest_even"),
        ("f32", "f16", "nearest_even"),
        ("f32", "e4m3", "nearest_even"),
        ("f32", "e5m2", "nearest_even"),
        ("bf16", "e4m3", "nearest_even"),
        ("e4m3", "f16", "nearest_even"),
        ("f16", "bf16", "toward_zero"),
    ],
)
def test_conversions_are_golden_gemms_up_to_the_word_of_a_nan(
    source: str, target: str, rounding: str
) -> None:
    own, to = golden.get_format(source), golden.get_format(target)
    words = some(source, (60_000,), 6, wild=True)
    if source == "f32":
        edges = np.array(
            [0, 1, 0x1000, 0x7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x477FF000, 0x43E80000], np.uint32
        )
        near = golden.from_float("f32", np.random.default_rng(7).standard_normal(60_000) * 300)
        words = np.concatenate(
            [words, edges, edges | np.uint32(0x80000000), near, near & np.uint32(0xFFFFF000)]
        )
    wanted = conversion.convert_codes(words, own, to, rounding)
    found = convert_codes(raw(tensor(source, words)), own, to, rounding).numpy().view(to.dtype)
    missing = np.isnan(golden.to_float(to, wanted))
    assert np.array_equal(missing, np.isnan(golden.to_float(to, found)))
    assert np.array_equal(found[~missing], wanted[~missing])


@pytest.mark.parametrize("fmt", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("nan", [None, 0x7FFF])
def test_results_are_encoded_as_golden_gemm_does(fmt: str, nan: int | None) -> None:
    values = golden.to_float("f32", some("f32", (60_000,), 8, wild=True)).astype(np.float32)
    form = golden.get_format(fmt)
    found = encode(torch.from_numpy(values), form, nan).numpy().view(form.dtype)
    assert np.array_equal(found, conversion.encode(values, form, nan))


def test_what_only_the_cpu_computes_is_refused() -> None:
    a, b = torch.zeros(2, 128, dtype=torch.float8_e4m3fn), torch.zeros(128, 4, dtype=torch.float8_e4m3fn)
    f64 = golden.plan("hopper", "cublas_f64", part=128, reduce_format="bf16")
    given = torch.zeros(2, 128, dtype=torch.float64), torch.zeros(128, 4, dtype=torch.float64)
    with pytest.raises(OperandError, match="f64 sums rounded to 16 bits run on the CPU alone"):
        device_product.product(*given, f64, gemm_chain(f64.instruction), None, {})
    plain = golden.plan("hopper", FP8)
    with pytest.raises(ShapeError, match="'A' has shape"):
        device_product.product(a, b.t(), plain, gemm_chain(plain.instruction), None, {})
    sparse = golden.plan("hopper", UNITS[2][1])
    a, b = torch.zeros(2, 64, dtype=torch.uint8), torch.zeros(128, 4, dtype=torch.uint8)
    with pytest.raises(OperandError, match=r"'A'\[1, 3\] is 0x21, expected a 4-bit s4 code"):
        wrong = a.clone()
        wrong[1, 3] = 0x21
        nibbles = torch.full((2, 16), 4, dtype=torch.uint8)
        device_product.product(wrong, b, sparse, gemm_chain(sparse.instruction), None, {"metadata": nibbles})
    with pytest.raises(MetadataError, match=r"'metadata'\[1, 0\] is 0x5"):
        nibbles = torch.tensor([[4] * 16, [5] * 16], dtype=torch.uint8)
        device_product.product(a, b, sparse, gemm_chain(sparse.instruction), None, {"metadata": nibbles})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU")
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_gpu_answers_as_the_cpu(plan: Plan) -> None:
    from mmagold.torch import emulated_matmul

    formats, m, n, k = plan.formats, 130, 200, length(plan, 1000)
    for wild in (False, True):
        a, b = (
            tensor(formats[x].name, some(formats[x].name, shape, 1, wild))
            for x, shape in (("a", (2, m, k)), ("b", (k, n)))
        )
        more = {name: tensor(fmt, bits) for name, (fmt, bits) in around(plan, m, n, k, wild).items()}
        wanted = emulated_matmul(a, b, plan, **more)
        found = emulated_matmul(a.cuda(), b.cuda(), plan, **{x: y.cuda() for x, y in more.items()}).cpu()
        assert torch.equal(raw(found), raw(wanted))
