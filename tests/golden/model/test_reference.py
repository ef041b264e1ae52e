"""The reference model against an independent oracle in rational numbers (exact.py), one row an algorithm
and its parameters. Instructions of one program for which the table gives the same oracle are run once."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_run import long_after

import golden
from golden import stimuli
from golden.model.instruction import Instruction

Oracle = Callable[..., int]
MMA = "mma.sync.aligned."
PER_KIND = 2
EXAMPLES = 25


cofda, fp8_rewrite = cache(exact.cofda), cache(exact.fp8_rewrite)
"""Equal parameters give the same oracle, so that `runs` knows it."""


def table() -> list[tuple[str, str, Oracle]]:
    """Architecture, instruction, oracle with the parameters that the paper's tables and 2.1.1 give it."""
    rows: list[tuple[str, str, Oracle]] = []

    def hmma(architecture: str, f: int, l16: int, e32: int, e16: int, shapes: tuple[str, ...]) -> None:
        for shape in shapes:
            rows.append(
                (
                    architecture,
                    f"{MMA}{shape}.row.col.f32.f16.f16.f32",
                    cofda("f16", "f16", "f32", "f32", l16, f, e32),
                )
            )
            rows.append(
                (
                    architecture,
                    f"{MMA}{shape}.row.col.f16.f16.f16.f16",
                    cofda("f16", "f16", "f16", "f16", l16, f, e16),
                )
            )

    hmma("volta", 23, 4, -131, -19, ("m8n8k4",))
    rows.append(
        (
            "volta",
            f"{MMA}m8n8k4.row.col.f32.f16.f16.f16",
            cofda("f16", "f16", "f16", "f32", 4, 23, -131),
        )
    )
    hmma("turing", 23, 4, -131, -19, ("m8n8k4",))
    hmma("turing", 24, 8, -132, -20, ("m16n8k8",))
    for architecture in ("ampere", "ada"):
        hmma(architecture, 24, 8, -132, -20, ("m16n8k8", "m16n8k16"))
        rows.append(
            (
                architecture,
                f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32",
                cofda("bf16", "bf16", "f32", "f32", 8, 24, -132),
            )
        )
        for shape in ("m16n8k4", "m16n8k8"):
            rows.append(
                (
                    architecture,
                    f"{MMA}{shape}.row.col.f32.tf32.tf32.f32",
                    cofda("tf32", "tf32", "f32", "f32", 4, 24, -132),
                )
            )
    for architecture in ("hopper", "blackwell", "rtx_blackwell"):
        hmma(architecture, 25, 16, -133, -21, ("m16n8k8", "m16n8k16"))
        rows.append(
            (
                architecture,
                f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32",
                cofda("bf16", "bf16", "f32", "f32", 16, 25, -133),
            )
        )
        rows.append(
            (
                architecture,
                f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32",
                cofda("tf32", "tf32", "f32", "f32", 8, 25, -133),
            )
        )
    return rows + fp8_rows() + scaled_rows() + ieee_rows() + amd_rows() + integer_rows()


def fp8_rows() -> list[tuple[str, str, Oracle]]:
    rows: list[tuple[str, str, Oracle]] = []
    for d, e_zero, kept in (("f32", -133, 13), ("f16", -21, 10)):
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3")):
            mma, wgmma = (
                f"{MMA}m16n8k32.row.col.{d}.{a}.{b}.{d}",
                f"wgmma.mma_async.sync.aligned.m64n8k32.{d}.{a}.{b}",
            )
            rows += [
                ("ada", mma, cofda(a, b, d, d, 16, 13, e_zero, kept)),
                ("hopper", mma, fp8_rewrite(a, b, d)),
                ("blackwell", mma, fp8_rewrite(a, b, d)),
                ("hopper", wgmma, cofda(a, b, d, d, 32, 13, e_zero, kept)),
                ("rtx_blackwell", mma, cofda(a, b, d, d, 32, 25, e_zero)),
            ]
        for a, b in (("e3m2", "e2m1"), ("e2m3", "e5m2")):
            name = f"{MMA}m16n8k32.row.col.kind::f8f6f4.{d}.{a}.{b}.{d}"
            rows.append(("rtx_blackwell", name, cofda(a, b, d, d, 32, 25, e_zero)))
    return rows


def scaled_rows() -> list[tuple[str, str, Oracle]]:
    scaled, four = "kind::mxf8f6f4.block_scale.scale_vec::1X.", "m16n8k64.row.col.kind::mxf4"
    rows: list[tuple[str, str, Oracle]] = [
        (
            "rtx_blackwell",
            f"{MMA}m16n8k32.row.col.{scaled}f32.{a}.{b}.f32.ue8m0",
            exact.scaled_fda(a, b, 32, 25, -133),
        )
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e2m1"), ("e3m2", "e2m3"))
    ]
    rows.append(
        (
            "rtx_blackwell",
            f"{MMA}{four}.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
            exact.gdfs("ue8m0", 32),
        )
    )
    for scale in ("ue4m3", "ue8m0"):
        name = f"{four}nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.{scale}"
        rows.append(("rtx_blackwell", MMA + name, exact.gdfs(scale, 16)))
    return rows


def ieee_rows() -> list[tuple[str, str, Oracle]]:
    generated = 0xFFF8000000000000
    rows = [
        ("hopper", f"{MMA}m16n8k8.row.col.f64.f64.f64.f64{suffix}", exact.sfma("f64", mode, generated, True))
        for suffix, mode in (("", "nearest_even"), (".rz", "toward_zero"), (".rm", "down"), (".rp", "up"))
    ]
    rows += [("hopper", f"{MMA}m8n8k4.row.col.f32.f16.f16.{c}", exact.m8n8k4_f32(c)) for c in ("f32", "f16")]
    return [*rows, ("hopper", f"{MMA}m8n8k4.row.col.f16.f16.f16.f16", exact.m8n8k4_f16)]


def amd_rows() -> list[tuple[str, str, Oracle]]:
    quiet = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}
    return [
        ("cdna1", "v_mfma_f32_16x16x16f16", exact.chain(exact.exact_dot_add, "f16", "f16", 4)),
        ("cdna1", "v_mfma_f32_16x16x8bf16", exact.chain(exact.exact_dot_add, "bf16", "bf16", 2)),
        ("cdna1", "v_mfma_f32_16x16x4f32", exact.sfma("f32", "nearest_even", quiet["f32"], False)),
        ("cdna2", "v_mfma_f32_16x16x16f16", exact.gps("f16", 4)),
        ("cdna2", "v_mfma_f32_32x32x8bf16_1k", exact.gps("bf16", 4)),
        ("cdna2", "v_mfma_f32_16x16x8bf16", exact.gps("bf16", 2)),
        ("cdna2", "v_mfma_f64_16x16x4f64", exact.sfma("f64", "nearest_even", quiet["f64"], False)),
        ("cdna3", "v_mfma_f32_32x32x8_f16", exact.chain(exact.fdrda, "f16", "f16", 8)),
        ("cdna3", "v_mfma_f32_16x16x16_bf16", exact.chain(exact.fdrda, "bf16", "bf16", 8)),
        ("cdna3", "v_mfma_f32_16x16x8_xf32", exact.chain(exact.fdrda, "tf32", "tf32", 4)),
        ("cdna3", "v_mfma_f32_32x32x16_fp8_bf8", exact.chain(exact.gfdrda, "e4m3fnuz", "e5m2fnuz", 16)),
        ("cdna3", "v_mfma_f32_16x16x32_fp8_fp8", exact.chain(exact.gfdrda, "e4m3fnuz", "e4m3fnuz", 16)),
    ]


def integer_rows() -> list[tuple[str, str, Oracle]]:
    rows: list[tuple[str, str, Oracle]] = []
    for a, b, k in (("s8", "s8", 32), ("u8", "s8", 32), ("s4", "u4", 64), ("u4", "u4", 64)):
        for satfinite in ("", "satfinite."):
            name = f"{MMA}m16n8k{k}.row.col.{satfinite}s32.{a}.{b}.s32"
            rows.append(("ampere", name, exact.integer_dot(a, b, bool(satfinite))))
    rows += [
        ("ampere", f"{MMA}m8n8k128.row.col.s32.b1.b1.s32.{operation}.popc", exact.binary_dot(operation))
        for operation in ("and", "xor")
    ]
    return rows


def runs() -> list[tuple[str, str, Oracle]]:
    """The rows of the table, but only one of the rows that would compare the same two computations."""
    chosen: dict[tuple[Any, ...], tuple[str, str, Oracle]] = {}
    for architecture, name, oracle in table():
        ins = golden.instruction(architecture, name)
        formats = tuple((operand, fmt.name) for operand, fmt in ins.formats.items())
        key = oracle, ins.k, ins.scale_block, formats, repr(ins.program)
        chosen.setdefault(key, (architecture, name, oracle))
    return list(chosen.values())


ROWS = runs()
IDS = [f"{architecture}-{name}" for architecture, name, _ in ROWS]


def compare(ins: Instruction, oracle: Oracle, dot: dict[str, list[int]]) -> None:
    operands = {name: np.array(codes, ins.formats[name].dtype) for name, codes in dot.items()}
    got, wanted = ins.reference_dot(**operands), oracle(**dot)
    assert got == wanted, f"{ins!r}: {got:#x}, the oracle says {wanted:#x} for {dot}"


@pytest.mark.parametrize(("architecture", "name", "oracle"), ROWS, ids=IDS)
def test_the_reference_is_the_oracle(architecture: str, name: str, oracle: Oracle) -> None:
    ins = golden.instruction(architecture, name)
    for kind in stimuli.KINDS:
        rng = np.random.default_rng([5, zlib.crc32(f"{architecture} {name} {kind}".encode())])
        operands = stimuli.generate(ins, kind, PER_KIND, rng)
        for i in range(PER_KIND):
            compare(ins, oracle, {key: array[i].tolist() for key, array in operands.items()})


def codes(ins: Instruction, operand: str) -> st.SearchStrategy[int]:
    """Any code, with the format's corners and small numbers near one much more often than chance."""
    fmt = ins.formats[operand]
    corners = st.sampled_from(stimuli.corner_codes(fmt).tolist())
    return st.one_of(st.just(0), corners, st.integers(0, (1 << fmt.bits) - 1))


@st.composite
def dots(draw: Any, ins: Instruction) -> dict[str, Any]:
    """A dot product in which most places may repeat a few values, so that sums cancel and tie."""
    built: dict[str, Any] = {}
    for name in ("a", "b"):
        palette = draw(st.lists(codes(ins, name), min_size=1, max_size=4))
        places = st.lists(st.sampled_from(palette), min_size=ins.k, max_size=ins.k)
        built[name] = draw(places)
    built["c"] = draw(codes(ins, "c"))
    if ins.scale_block:
        count = ins.k // ins.scale_block
        built |= {
            name: draw(st.lists(codes(ins, name), min_size=count, max_size=count))
            for name in ("scale_a", "scale_b")
        }
    return built


SMALL = [row for row in ROWS if golden.instruction(row[0], row[1]).k <= 32]


@pytest.mark.parametrize(
    ("architecture", "name", "oracle"), long_after(12, SMALL, ids=[f"{a}-{n}" for a, n, _ in SMALL])
)
def test_the_reference_is_the_oracle_for_searched_cases(architecture: str, name: str, oracle: Oracle) -> None:
    ins = golden.instruction(architecture, name)

    @settings(max_examples=EXAMPLES)
    @given(dots(ins))
    def searched(dot: dict[str, Any]) -> None:
        compare(ins, oracle, dot)

    searched()


@pytest.mark.parametrize(
    ("architecture", "name", "other"),
    [
        (
            "hopper",
            f"{MMA}m16n8k16.row.col.f32.f16.f16.f32",
            exact.cofda("f16", "f16", "f32", "f32", 16, 24, -133),
        ),
        (
            "hopper",
            f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32",
            exact.cofda("bf16", "bf16", "f32", "f32", 16, 25, -126),
        ),
        (
            "hopper",
            f"{MMA}m16n8k16.row.col.f16.f16.f16.f16",
            exact.cofda("f16", "f16", "f16", "f16", 8, 25, -21),
        ),
        (
            "ampere",
            f"{MMA}m16n8k16.row.col.f32.f16.f16.f32",
            exact.cofda("f16", "f16", "f32", "f32", 16, 24, -132),
        ),
        ("cdna2", "v_mfma_f32_32x32x8bf16_1k", exact.gps("bf16", 2)),
        (
            "hopper",
            f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32",
            exact.cofda("e4m3", "e4m3", "f32", "f32", 32, 25, -133),
        ),
    ],
)
def test_the_comparison_shows_a_wrong_parameter(architecture: str, name: str, other: Oracle) -> None:
    ins, differ = golden.instruction(architecture, name), 0
    for kind in stimuli.KINDS:
        operands = stimuli.generate(ins, kind, 4, np.random.default_rng(13))
        for i in range(4):
            dot = {key: array[i] for key, array in operands.items()}
            differ += ins.reference_dot(**dot) != other(**{key: array.tolist() for key, array in dot.items()})
    assert differ > 0
