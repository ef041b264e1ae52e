"""The C core behind ctypes: any memory layout, batch and environment gives the same bits; bad operands one
error each."""

from __future__ import annotations

import _ctypes
import copy
import ctypes
import hashlib
import os
import pickle
import platform
import re
import shutil
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruction_sets import instruction_sets
from long_run import long_after

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.errors import CoreError, DTypeError, MetadataError, MmagoldError, OperandError, ShapeError
from golden.model import core_build, core_library, engine
from golden.model.instruction import Instruction
from golden.paths import spec_folder

MMA = "mma.sync.aligned."
DENSE = ("hopper", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32")
SPARSE = ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
SCALED = (
    "rtx_blackwell",
    f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
)
INT4 = ("ampere", f"{MMA}m16n8k64.row.col.s32.s4.s4.s32")
SLOW = ("cdna2", "v_mfma_f32_16x16x16f16")
BYTES = ("hopper", "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3")
DOWN = ("cdna3", "v_mfma_f32_4x4x4_16b_f16")
DOUBLE = ("hopper", f"{MMA}m8n8k4.row.col.f64.f64.f64.f64")
ALL = (DENSE, SPARSE, SCALED, INT4, SLOW, DOUBLE, BYTES, DOWN)


def operands_of(ins: Instruction, batch: tuple[int, ...], seed: int = 1) -> dict[str, Any]:
    """Random matrices with the given leading dimensions."""
    rng, size = np.random.default_rng(seed), int(np.prod(batch))
    rows, columns = (stimuli.generate(ins, "narrow", size * count, rng) for count in (ins.m, ins.n))
    built = {
        name: rows[name].reshape(*batch, ins.m, rows[name].shape[-1])
        for name in ("a", "metadata", "scale_a")
        if name in rows
    }
    for name in ("b", "scale_b"):
        if name in columns:
            built[name] = np.ascontiguousarray(
                columns[name].reshape(*batch, ins.n, columns[name].shape[-1]).swapaxes(-1, -2)
            )
    built["c"] = stimuli.generate(ins, "narrow", size * ins.m * ins.n, rng)["c"].reshape(*batch, ins.m, ins.n)
    return built


@pytest.fixture(params=ALL, ids=lambda item: f"{item[0]}-{item[1][:40]}")
def ins(request: pytest.FixtureRequest) -> Instruction:
    return golden.instruction(*request.param)


@pytest.fixture
def dense() -> Instruction:
    return golden.instruction(*DENSE)


# Memory layouts ---------------------------------------------------------------------------------------------


def fortran(array: Any) -> Any:
    return np.asfortranarray(array)


def reversed_rows(array: Any) -> Any:
    return np.ascontiguousarray(array[..., ::-1, ::-1])[..., ::-1, ::-1]


def every_third(array: Any) -> Any:
    wide = np.full((*array.shape[:-1], array.shape[-1] * 3), 0xFF, array.dtype)
    wide[..., ::3] = array
    return wide[..., ::3]


def read_only(array: Any) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def unaligned(array: Any) -> Any:
    """The same numbers one byte off their alignment."""
    raw = np.empty(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def transposed_batch(array: Any) -> Any:
    return np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1)


LAYOUTS = (fortran, reversed_rows, every_third, read_only, unaligned, transposed_batch)


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout_does_not_matter(
    ins: Instruction, layout: Any, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    operands = operands_of(ins, (3, 2))
    wanted = ins(**operands)
    moved = {name: layout(array) for name, array in operands.items()}
    before = {name: array.tobytes() for name, array in moved.items()}
    assert np.array_equal(ins(**moved), wanted)
    assert {name: array.tobytes() for name, array in moved.items()} == before
    for name in operands:
        assert np.array_equal(ins(**{**operands, name: moved[name]}), wanted), name


@pytest.mark.parametrize("simd", instruction_sets())
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layout_of_dots_does_not_matter(
    ins: Instruction, layout: Any, simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of dot products that leaves the last lanes empty; rows in one piece, and rows that are not."""
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    operands = stimuli.generate(ins, "narrow", 39, np.random.default_rng(5))
    operands = {name: array.reshape(3, 13, *array.shape[1:]) for name, array in operands.items()}
    order = ("a", "b", "c", "metadata", "scale_a", "scale_b")
    wanted = ins.engine.dots(*(operands.get(name) for name in order), general=True)
    assert np.array_equal(ins.dot(**operands), wanted)
    moved = {name: layout(array) for name, array in operands.items()}
    assert np.array_equal(ins.dot(**moved), wanted)
    flat = {name: array.reshape(39, *array.shape[2:]) for name, array in operands.items()}
    assert np.array_equal(ins.dot(**flat), wanted.reshape(39))


def test_operands_that_lie_as_earlier_ones_are_checked_all_the_same(dense: Instruction) -> None:
    first, second = operands_of(dense, ()), operands_of(dense, (), seed=2)
    wanted = [dense(**{name: array[None] for name, array in one.items()})[0] for one in (first, second)]
    for _ in range(3):
        assert np.array_equal(dense(**first), wanted[0])
        assert np.array_equal(dense(**second), wanted[1])
        with pytest.raises(DTypeError, match="'c'"):
            dense(**{**first, "c": first["c"].view(np.int32)})
        with pytest.raises(ShapeError, match="'b'"):
            dense(**{**first, "b": first["b"].T})


def test_a_batch_that_lies_as_an_earlier_one_gives_its_own_results(dense: Instruction) -> None:
    """The same shapes at other addresses, and in other orders."""
    for seed in (1, 2, 3):
        operands = operands_of(dense, (3,), seed)
        wanted = np.stack([dense(**{name: array[i] for name, array in operands.items()}) for i in range(3)])
        for layout in (np.ascontiguousarray, fortran, reversed_rows):
            moved = {name: layout(array) for name, array in operands.items()}
            assert np.array_equal(dense(**moved), wanted), (seed, layout)
            assert np.array_equal(dense(**{**moved, "b": operands["b"]}), wanted), (seed, layout)


def test_results_are_new_writeable_and_contiguous(ins: Instruction) -> None:
    operands = operands_of(ins, (2,))
    result = ins(**operands)
    assert result.flags.c_contiguous and result.flags.writeable and result.dtype == ins.formats["d"].dtype
    assert not any(np.shares_memory(result, array) for array in operands.values())


# Batches ----------------------------------------------------------------------------------------------------


def test_one_matrix_at_a_time_is_the_batch(ins: Instruction) -> None:
    operands = operands_of(ins, (5,))
    wanted = ins(**operands)
    for i in range(5):
        assert np.array_equal(ins(**{name: array[i] for name, array in operands.items()}), wanted[i])
        assert np.array_equal(
            ins(**{name: array[i : i + 1] for name, array in operands.items()}), wanted[i : i + 1]
        )


@pytest.mark.parametrize("general", [False, True])
def test_broadcasting(ins: Instruction, general: bool) -> None:
    operands = operands_of(ins, (3, 1, 2))
    other = operands_of(ins, (4, 1), seed=2)
    mixed = {**operands, "b": other["b"], "c": other["c"][0, 0]}
    full = {name: np.broadcast_to(array, (3, 4, 2, *array.shape[-2:])) for name, array in mixed.items()}
    copied = {name: array.copy() for name, array in full.items()}
    order = ("a", "b", "c", "metadata", "scale_a", "scale_b")
    results = [
        ins.engine.matrices(*(given.get(name) for name in order), general=general)
        for given in (mixed, full, copied)
    ]
    assert all(
        result.shape == (3, 4, 2, ins.m, ins.n) and np.array_equal(result, results[0]) for result in results
    )


@pytest.mark.parametrize("batch", [(0,), (0, 3), (2, 0), (1, 0, 5)])
def test_empty_batches(ins: Instruction, batch: tuple[int, ...]) -> None:
    operands = {
        name: np.empty((*batch, *array.shape), array.dtype) for name, array in operands_of(ins, ()).items()
    }
    assert ins(**operands).shape == (*batch, ins.m, ins.n)
    k = {
        name: array[..., 0, :]
        if name not in ("b", "scale_b", "c")
        else array[..., 0]
        if name != "c"
        else array[..., 0, 0]
        for name, array in operands.items()
    }
    assert ins.dot(**k).shape == batch


@pytest.mark.parametrize("name", [DENSE, SPARSE, SCALED, INT4])
def test_no_stimuli_are_no_results(name: tuple[str, str]) -> None:
    ins = golden.instruction(*name)
    for kind in stimuli.KINDS:
        assert ins.dot(**stimuli.generate(ins, kind, 0, np.random.default_rng(1))).shape == (0,), kind


def test_python_threads_share_one_instruction(dense: Instruction) -> None:
    """Single matrices and batches at once: the core runs without the interpreter's lock."""
    sets = [operands_of(dense, batch, seed) for seed, batch in enumerate([(), (), (50,), (), (3,), ()])]
    wanted = [dense(**operands) for operands in sets]

    def repeat(i: int) -> bool:
        return all(np.array_equal(dense(**sets[i]), wanted[i]) for _ in range(300))

    with ThreadPoolExecutor(len(sets)) as pool:
        assert all(pool.map(repeat, range(len(sets))))


def test_many_batch_dimensions(dense: Instruction) -> None:
    operands = operands_of(dense, (2,) * 6)
    wanted = dense(**{name: array.reshape(64, *array.shape[-2:]) for name, array in operands.items()})
    odd = {**operands, "a": fortran(operands["a"]), "b": operands["b"][..., :1, :, :]}
    odd["b"] = np.broadcast_to(odd["b"], operands["b"].shape)
    assert np.array_equal(dense(**operands).reshape(wanted.shape), wanted)
    assert np.array_equal(
        dense(**odd), dense(**{name: np.ascontiguousarray(array) for name, array in odd.items()})
    )


def test_more_batch_dimensions_than_the_core_takes(dense: Instruction) -> None:
    """Twenty dimensions that cannot be merged (every other one is broadcast)."""
    shape = (2, 1) * 10
    a = np.arange(2**10 * 256, dtype=np.uint64).astype(np.uint16).reshape(*shape, 16, 16)
    operands = operands_of(dense, ())
    result = dense(a, operands["b"], np.broadcast_to(operands["c"], (*(1, 2) * 2, *(1,) * 16, 16, 8)))
    flat = dense(a.reshape(-1, 16, 16), operands["b"], operands["c"])
    assert result.size == 4 * flat.size
    assert np.array_equal(result[:, 0, :, 0].reshape(flat.shape), flat)


def test_a_big_batch_is_its_parts(dense: Instruction) -> None:
    operands = operands_of(dense, (3001,))
    whole = dense(**operands)
    parts = [
        dense(**{name: array[i : i + 97] for name, array in operands.items()}) for i in range(0, 3001, 97)
    ]
    assert np.array_equal(whole, np.concatenate(parts))


@settings(max_examples=60)
@given(st.lists(st.integers(1, 3), max_size=4), st.data())
def test_any_broadcast_is_numpys(batch: list[int], data: st.DataObject) -> None:
    ins = golden.instruction(*INT4)
    operands = operands_of(ins, tuple(batch))
    for name in operands:
        kept = [data.draw(st.booleans()) for _ in batch]
        index = tuple(slice(None) if keep else slice(0, 1) for keep in kept)
        operands[name] = operands[name][index]
    values = {
        name: golden.to_float("s32" if name == "c" else "s4", array) for name, array in operands.items()
    }
    wanted = np.matmul(values["a"], values["b"]) + values["c"]
    assert np.array_equal(golden.to_float("s32", ins(**operands)), wanted)


# Errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"a": np.zeros((16, 8), np.uint16)}, ShapeError, "'a' has shape"),
        ({"b": np.zeros((8, 16), np.uint16)}, ShapeError, "'b' has shape"),
        ({"c": np.zeros(8, np.uint32)}, ShapeError, "'c' has shape"),
        ({"a": np.zeros((16, 16), np.float16)}, DTypeError, "'a' has dtype float16"),
        ({"c": np.zeros((16, 8), np.int32)}, DTypeError, "'c' has dtype int32"),
        ({"a": None}, ShapeError, "'a' is missing"),
        ({"b": np.zeros((16, 8), ">u2")}, DTypeError, "'b' has dtype"),
        ({"metadata": np.zeros((16, 4), np.uint8)}, ShapeError, "'metadata' was given"),
        ({"scale_a": np.zeros((16, 1), np.uint8)}, ShapeError, "'scale_a' was given"),
        ({"a": np.zeros((16, 16), object)}, DTypeError, "'a'"),
        ({"a": [[70000] * 16] * 16}, DTypeError, "'a'"),
        ({"a": [[-1] * 16] * 16}, DTypeError, "'a'"),
        ({"a": "text"}, MmagoldError, "'a'"),
        (
            {"a": np.zeros((3, 16, 16), np.uint16), "b": np.zeros((2, 16, 8), np.uint16)},
            ShapeError,
            "do not broadcast",
        ),
    ],
)
def test_one_clear_error_for_dense_operands(
    dense: Instruction, change: dict[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        dense(**{**operands_of(dense, ()), **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change", "error", "words"),
    [
        (SPARSE, {"metadata": None}, ShapeError, "'metadata' is missing"),
        (SPARSE, {"metadata": np.zeros((16, 8), np.uint8)}, MetadataError, r"\[0, 0\] is 0x0"),
        (SPARSE, {"metadata": np.full((16, 8), 0x1, np.uint8)}, MetadataError, "0x1"),
        (SPARSE, {"metadata": np.full((16, 8), 0x14, np.uint8)}, OperandError, "0x14"),
        (SPARSE, {"metadata": np.full((16, 4), 4, np.uint8)}, ShapeError, "'metadata' has shape"),
        (SPARSE, {"a": np.zeros((16, 32), np.uint16)}, ShapeError, "'a'"),
        (SCALED, {"scale_a": None}, ShapeError, "'scale_a' is missing"),
        (SCALED, {"scale_b": np.zeros((2, 8), np.uint8)}, ShapeError, "'scale_b'"),
        (SCALED, {"a": np.full((16, 64), 16, np.uint8)}, OperandError, r"'a'\[0, 0\] is 0x10"),
        (INT4, {"b": np.full((64, 8), 255, np.uint8)}, OperandError, "'b'"),
    ],
)
def test_one_clear_error_for_metadata_scales_and_codes(
    name: tuple[str, str], change: dict[str, Any], error: type, words: str
) -> None:
    ins = golden.instruction(*name)
    with pytest.raises(error, match=words):
        ins(**{**operands_of(ins, ()), **change})


def test_plain_mma_sp_takes_swapped_indices() -> None:
    plain = golden.instruction("hopper", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    operands = operands_of(golden.instruction(*SPARSE), ())
    swapped = (operands["metadata"] >> 2 | operands["metadata"] << 2) & 15
    pairs = operands["a"].reshape(16, -1, 2)[..., ::-1].reshape(16, 16)
    assert np.array_equal(
        plain(pairs, operands["b"], operands["c"], metadata=swapped.astype(np.uint8)),
        golden.instruction(*SPARSE)(**operands),
    )


def test_lists_of_integers_are_taken(dense: Instruction) -> None:
    operands = operands_of(dense, ())
    assert np.array_equal(
        dense(**{name: array.tolist() for name, array in operands.items()}), dense(**operands)
    )


# Environment ------------------------------------------------------------------------------------------------


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(golden.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("MMAGOLD_") or key == "MMAGOLD_CORE"
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def digest() -> str:
    """SHA-256 of results of each family and pair of formats, and of a batch that several threads share."""
    total = hashlib.sha256()
    for architecture in golden.architectures():
        different = {
            (ins.family, ins.formats["a"], ins.formats["d"]): ins for ins in golden.instructions(architecture)
        }
        for ins in different.values():
            for kind in ("random_bits", "near_overflow"):
                rng = np.random.default_rng(zlib.crc32(ins.name.encode()))
                total.update(ins.dot(**stimuli.generate(ins, kind, 41, rng)).tobytes())
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 16, (700, 16, n), dtype=np.uint16) for n in (16, 8))
    total.update(ins(a, b, np.zeros((16, 8), np.uint32)).tobytes())
    return total.hexdigest()


@pytest.fixture(scope="module")
def one_thread() -> tuple[str, str]:
    """The instruction set in use and the digest of many results, on one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMAGOLD_THREADS", "1")
        return engine.simd(), digest()


@pytest.mark.parametrize("simd", ["avx2", "avx512", "portable"])
def test_every_instruction_set_gives_the_same_bits_on_four_threads(
    one_thread: tuple[str, str], simd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if simd not in instruction_sets():
        pytest.skip(f"this processor has no {simd}")
    monkeypatch.setenv("MMAGOLD_THREADS", "4")
    monkeypatch.setenv("MMAGOLD_SIMD", simd)
    assert (engine.simd(), digest()) == (simd, one_thread[1])


@pytest.mark.parametrize(
    ("wish", "nearest"),
    [
        ("0", "1"),
        ("-1", "1"),
        ("2.5", "2"),
        (" 3", "3"),
        ("many", "[0-9]+"),
        ("", "[0-9]+"),
        ("\u00b2", "[0-9]+"),
        ("0x4", "[0-9]+"),
    ],
)
@pytest.mark.parametrize("batch", [(), (4,)])
def test_a_wrong_thread_count_is_said(
    wish: str, nearest: str, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, dense: Instruction
) -> None:
    monkeypatch.setenv("MMAGOLD_THREADS", wish)
    line = f"^MMAGOLD_THREADS is '{re.escape(wish)}', expected a positive integer; nearest: {nearest}$"
    with pytest.raises(CoreError, match=line):
        dense(**operands_of(dense, batch))


@pytest.mark.parametrize(
    ("wish", "nearest"), [("foo", "portable"), ("", "portable"), ("AVX512", "avx512"), ("avx", "avx2")]
)
@pytest.mark.parametrize("batch", [(), (4,)])
def test_wrong_lane_kernels_are_said(
    wish: str, nearest: str, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, dense: Instruction
) -> None:
    monkeypatch.setenv("MMAGOLD_SIMD", wish)
    with pytest.raises(
        CoreError, match=f"^MMAGOLD_SIMD is '{wish}', expected portable, avx2, avx512; nearest: {nearest}"
    ):
        dense(**operands_of(dense, batch))


def test_lane_kernels_that_the_machine_lacks_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a library that always answers "portable"."""
    narrow = SimpleNamespace(mg_simd=lambda: b"portable")
    monkeypatch.setenv("MMAGOLD_SIMD", "avx2")
    with pytest.raises(
        CoreError, match=r"^MMAGOLD_SIMD is 'avx2', which this machine does not have; nearest: portable$"
    ):
        core_library.check_simd(narrow)  # type: ignore[arg-type]


def test_more_results_than_memory_are_said(dense: Instruction) -> None:
    operands = operands_of(dense, ())
    wide = np.broadcast_to(operands["a"], (1 << 40, *operands["a"].shape))
    with pytest.raises(ShapeError, match="more than fits into memory"):
        dense(wide, operands["b"], operands["c"])
    tall = np.broadcast_to(operands["b"], (1 << 40, 1, *operands["b"].shape))
    with pytest.raises(ShapeError):
        dense(wide, tall, operands["c"])


# The library ------------------------------------------------------------------------------------------------

LOAD = "import golden; golden.instruction('hopper', 'mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64').engine"
LIBRARY = Path(str(engine.library()._name))
DIGEST_OF_CORE = core_build.digest(Path(golden.__file__).parent / "core").encode()


def refusal(library: Path) -> str:
    """The last line of what a process says that loads this library."""
    done = run(LOAD, MMAGOLD_CORE=str(library))
    assert done.returncode
    return done.stderr.splitlines()[-1]


def test_a_missing_core_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "none.so", tmp_path):
        assert (
            f"CoreError: MMAGOLD_CORE is '{path}', expected a build of the C core, a file; nearest: /"
            in refusal(path)
        )


def test_what_is_no_core_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    assert "the C core cannot be loaded" in refusal(tmp_path / "text.so")
    assert "this is no build of the C core; rebuild it with 'pip install -e .'" in refusal(
        Path(_ctypes.__file__)
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            DIGEST_OF_CORE,
            b"0123456789abcdef",
            f"from other sources (0123456789abcdef) than this package has ({DIGEST_OF_CORE.decode()})",
        ),
        (DIGEST_OF_CORE, bytes(16), "from other sources (no digest) than"),
        (b"mg_digest\0", b"mg_digesx\0", "from other sources (an older version) than"),
    ],
)
def test_a_core_of_other_sources_is_refused(old: bytes, new: bytes, said: str, tmp_path: Path) -> None:
    """As after a pull into an editable install: the structs may be the same, and the arithmetic not."""
    built = LIBRARY.read_bytes()
    assert old in built
    (tmp_path / "stale.so").write_bytes(built.replace(old, new))
    line = refusal(tmp_path / "stale.so")
    assert (
        said in line
        and "rebuild it with 'pip install -e .' (or 'python setup.py build_ext --inplace') in the checkout"
        in line
    )


def checkout(folder: Path) -> Path:
    """The package of a checkout that was never built: its sources of the core, and no library."""
    shutil.copytree(Path(golden.__file__).parent / "core", folder / "golden" / "core")
    return folder / "golden"


def test_a_checkout_that_was_not_built_uses_the_installed_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `pip install .`: in the checkout's folder Python finds the sources first. Other sources do not
    count: their bits may differ."""
    package, installed = checkout(tmp_path / "checkout"), checkout(tmp_path / "installed")
    library = installed / LIBRARY.name
    shutil.copy(LIBRARY, library)
    copy = SimpleNamespace(locate_file=lambda name: tmp_path / "installed" / name)
    monkeypatch.setattr(core_library, "_PACKAGE", package)
    monkeypatch.setattr(core_library.metadata, "distributions", lambda name: [copy])
    monkeypatch.setenv("CC", "/nonexistent/cc")
    assert core_library.load()[1] == library
    (installed / "core" / "mg_run.c").write_text("changed")
    with pytest.raises(CoreError, match="the C core is not built"):
        core_library.load()


@pytest.mark.parametrize(("here", "knows"), [(True, ""), (True, "__AVX512F__"), (False, "")])
def test_kernels_of_other_processors_compile_quickly_where_the_makefile_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool, knows: str
) -> None:
    for name in ("mg_run.c", "mg_tile_avx512.c"):
        (tmp_path / name).touch()
    compiler, target = tmp_path / "cc", tmp_path / "core.so"
    compiler.write_text(f"#!/bin/sh\necho '{knows}'\n")
    compiler.chmod(0o755)
    monkeypatch.delenv("CFLAGS", raising=False)
    monkeypatch.setenv(core_build.HERE, "1") if here else monkeypatch.delenv(core_build.HERE, raising=False)
    lines: list[list[str]] = []

    def run(line: list[str]) -> None:
        lines.append(line)
        Path(line[-1]).touch()

    core_build.build([str(compiler)], tmp_path, target, run)
    quick = [line[-3] for line in lines if "-O1" in line]
    assert quick == ([str(tmp_path / "mg_tile_avx512.c")] if here and not knows else [])
    assert target.exists() and len(lines) == 3 and "-O1" not in lines[-1]


def test_a_checkout_that_was_not_built_builds_its_core_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A core of one file, which takes a second: what is built carries the digest of its sources."""
    package = tmp_path / "golden"
    (package / "core").mkdir(parents=True)
    text = "const char *mg_digest(void) { return MG_DIGEST; } void mg_simd(void) {} void mg_run(void) {}"
    (package / "core" / "mg_run.c").write_text(text)
    monkeypatch.setattr(core_library, "_PACKAGE", package)
    monkeypatch.setattr(core_library.metadata, "distributions", lambda name: [])
    monkeypatch.delenv("CC", raising=False)
    assert core_library.load()[1] == package / LIBRARY.name
    assert "builds the C core" in capfd.readouterr().err
    core_library.load()
    assert capfd.readouterr().err == ""
    (package / LIBRARY.name).unlink()
    (package / "core" / "mg_run.c").write_text("int x = ;")
    with pytest.raises(CoreError, match=r"the C core is not built: \w+ failed with exit status 1: .*error"):
        core_library.load()
    assert list(package.glob("lib*")) == []


def test_the_digest_sees_every_file_of_the_core(tmp_path: Path) -> None:
    core = Path(golden.__file__).parent / "core"
    seen = {core_build.digest(core)}
    for path in sorted(core.glob("*.[ch]")):
        copy = tmp_path / path.stem / path.suffix[1:]
        shutil.copytree(core, copy)
        (copy / path.name).write_text((copy / path.name).read_text() + " ")
        seen.add(core_build.digest(copy))
    assert len(seen) == 1 + len(list(core.glob("*.[ch]")))


def test_a_missing_spec_folder_is_said(tmp_path: Path) -> None:
    done = run("import golden; golden.architectures()", MMAGOLD_SPEC=str(tmp_path / "none"))
    line = done.stderr.splitlines()[-1]
    assert (
        done.returncode
        and f"MMAGOLD_SPEC is '{tmp_path / 'none'}', expected a spec folder" in line
        and "; nearest: /" in line
    )


FLUSHING = """
#include <xmmintrin.h>
void set_flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040 | 0x6000); }
unsigned get_flush(void) { return _mm_getcsr() & 0xE040; }
"""
UNDER_FLUSH = """
import ctypes, sys
import numpy as np
import golden
from golden import stimuli
core = ctypes.CDLL(sys.argv[1])
work = []
for architecture, name in NAMES:
    ins = golden.instruction(architecture, name)
    for kind in ("subnormal", "tiny_zero_c", "narrow", "tie"):
        operands = stimuli.generate(ins, kind, 300, np.random.default_rng(7))
        work.append((ins, operands, ins.dot(**operands)))
core.set_flush()
assert core.get_flush() == 0xE040
assert all(np.array_equal(ins.dot(**operands), before) for ins, operands, before in work)
assert core.get_flush() == 0xE040
print("equal", len(work))
"""


@pytest.mark.parametrize("threads", long_after(1, ["3", "1"]))
def test_flush_to_zero_and_rounding_of_the_host_do_not_matter(tmp_path: Path, threads: str) -> None:
    """FTZ, DAZ and round-toward-zero set in the calling thread."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs a C compiler on x86-64")
    source, library = tmp_path / "flush.c", tmp_path / "flush.so"
    source.write_text(FLUSHING)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    code = UNDER_FLUSH.replace("NAMES", repr(ALL)).replace("sys.argv[1]", repr(str(library)))
    done = run(code, MMAGOLD_THREADS=threads)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("equal")


def test_an_instruction_that_has_computed_is_copied_and_sent_to_processes() -> None:
    """The engine holds pointers, which can be neither copied nor pickled: both make their own."""
    used = [
        golden.instruction(*DENSE),
        golden.load_instruction(spec_folder() / "examples" / "fma_modes.yaml"),
    ]
    plan = golden.plan(used[0])
    for ins in used:
        operands = stimuli.generate(ins, "narrow", 50, np.random.default_rng(3))
        expected = ins.dot(**operands)
        for twin in (pickle.loads(pickle.dumps(ins)), copy.deepcopy(ins)):
            assert repr(twin) == repr(ins) and np.array_equal(twin.dot(**operands), expected)
    a = np.arange(64, dtype=np.uint16).reshape(4, 16)
    assert np.array_equal(golden.gemm(a, a.T, pickle.loads(pickle.dumps(plan))), golden.gemm(a, a.T, plan))


def test_the_library_reports_its_instruction_set() -> None:
    assert engine.simd() in ("portable", "avx2", "avx512", "neon")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the word that flushes is that of x86-64")
def test_tables_hold_subnormal_numbers_where_the_caller_flushes_them() -> None:
    """As torch.set_flush_denormal(True) has it: 2**-127 once became zero for as long as an engine lived."""
    text = """
unit: scaled
shape: {k: 1}
formats: {a: ue8m0, b: e5m2, c: f32, d: f32}
program: [{operands: bf16, steps: [
  multiply: {to: products, format: f32, rounding: nearest_even, nan: 0x7FC00000},
  sum: {of: [c, products], to: d, order: sequential, format: f32, rounding: nearest_even, nan: 0x7FC00000}]}]
"""
    ins = build_instruction(yamlfile.parse(text, "scaled.yaml"))
    libm, before, flushing = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    libm.fegetenv(before)
    libm.fegetenv(flushing)
    flushing[7] |= 1 << 15
    libm.fesetenv(flushing)
    try:
        engine = ins.engine
    finally:
        libm.fesetenv(before)
    assert engine.fast
    a, b, c = np.zeros((1, 1), np.uint8), np.full((1, 1), 0x44, np.uint8), np.zeros(1, np.uint32)
    assert ins.dot(a, b, c).tolist() == [0x01000000]
