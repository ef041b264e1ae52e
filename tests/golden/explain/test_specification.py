"""The exported specification: widths against executed extremes and hand calculation, special values
against the fast core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden.explain import specification
from golden.explain.special_values import special_cases, special_values
from golden.program.widths import operation_nodes

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
HMMA = golden.instruction("hopper", "HMMA.16816.F32")
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


def nodes(ins: golden.Instruction, operation: int = 0) -> dict[tuple[str, str], Any]:
    """The last node of each (step, register)."""
    steps = operation_nodes(ins, ins.program.operations[operation])
    return {(step.op, node.register): node for step, written in steps for node in written}


def test_widths_of_hopper() -> None:
    """16 products below 4 and c below 2 make less than 66:
    7 integer bits over 25 fraction bits and a sign."""
    found = nodes(HMMA)
    product = found["multiply", "products"]
    assert (product.integer_bits, product.fraction_bits, product.exponents) == (2, 20, (-28, 30))
    assert found["align", "products"].width == 1 + 2 + 25 and found["align", "c"].width == 1 + 1 + 25
    assert (found["sum", "total"].integer_bits, found["sum", "total"].width) == (7, 33)


@pytest.mark.parametrize(
    ("architecture", "name", "bits"),
    [
        ("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 5),
        ("ampere", "HMMA.16816.F32", 6),
        ("ada", "HMMA.1688.F32.TF32", 5),
        ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", 7),
        ("rtx_blackwell", NVFP4, 13),
    ],
)
def test_sum_register_integer_bits(architecture: str, name: str, bits: int) -> None:
    """Hand calculation; the last two are 32 * 1.875**2 + 2 = 114.5 and 4 * 16 * 36 * 1.875**2 + 2 = 8102."""
    ins = golden.instruction(architecture, name)
    assert nodes(ins)["sum", "total"].integer_bits == bits


@pytest.mark.parametrize("name", ["HMMA.16816.F32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"])
def test_sum_register_is_reached(name: str) -> None:
    """The executed sum of all-ones significands has exactly the integer bits that the analysis gives."""
    ins = golden.instruction("hopper", name)
    fmt = ins.formats["a"]
    full = fmt.bias << fmt.fraction_bits | ((1 << fmt.fraction_bits) - 1)  # 1.11...1
    trace = ins.trace([full] * 16, [full] * 16, 0x407FFFFF - 0x00800000)
    total = next(event.written["total"][0] for event in trace.events if "total" in event.written)
    assert (total.significand >> total.fraction_bits).bit_length() == nodes(ins)["sum", "total"].integer_bits


def test_exact_registers_span_everything() -> None:
    """CDNA1 sums f32 c exactly: from 2**-149 to below 2**128, and 4 f16 products need no carry beyond
    that: 278 bits."""
    total = nodes(golden.instruction("cdna1", "v_mfma_f32_16x16x16f16"))["sum", "total"]
    assert total.fixed and (total.integer_bits, total.fraction_bits, total.width) == (128, 149, 278)
    pair = nodes(golden.load_instruction(EXAMPLES / "exact_pair.yaml"))["sum", "total"]
    assert (pair.integer_bits, pair.fraction_bits) == (257, 2 * 133), "2 * (2**127.99)**2 + 2**128 < 2**257"


def test_integers_and_bits() -> None:
    found = nodes(golden.instruction("ampere", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"))
    assert found["multiply", "products"].integer_bits == 15, "(-128)**2 = 2**14 needs 15 bits of magnitude"
    assert found["sum", "total"].integer_bits == 32, "2**31 + 32 * 2**14"
    binary = nodes(golden.instruction("ampere", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"))
    assert binary["multiply", "products"].width == 1


def test_sticky_and_normalised() -> None:
    sticky = nodes(golden.load_instruction(EXAMPLES / "sticky_rne.yaml"))
    assert sticky["align", "products"].width == 1 + 2 + 26 + 1
    late = nodes(golden.load_instruction(EXAMPLES / "late_c.yaml"))
    assert late["multiply", "products"].integer_bits == 1 and late["multiply", "products"].exponents == (
        -48,
        31,
    )
    assert late["sum", "d"].format.name == "f32"


def representatives() -> list[golden.Instruction]:
    picked: dict[Any, golden.Instruction] = {}
    for arch in golden.architectures():
        for ins in golden.instructions(arch):
            picked.setdefault((arch, ins.family, ins.formats["a"].name, ins.formats["d"].name), ins)
    return list(picked.values()) + [golden.load_instruction(path) for path in sorted(EXAMPLES.glob("*.yaml"))]


def split_row(line: str) -> list[str]:
    return line.replace("\\|", "/").strip().strip("|").split("|")


@pytest.mark.long
def test_every_document_is_well_formed() -> None:
    for ins in representatives():
        text = specification.to_markdown(ins)
        assert text.startswith(f"# {ins.name}\n") and "None" not in text and "{" not in text
        block: list[int] = []
        for line in [*text.splitlines(), ""]:
            if line.startswith("|"):
                block.append(len(split_row(line)))
            else:
                assert len(set(block)) <= 1, ins.name
                block = []
        for section in ("## Formats", "## Computation", "## Special values", "## Evidence and sources"):
            assert text.count(f"\n{section}\n") == 1
        data = specification.specification(ins)
        assert json.loads(json.dumps(data)) == data
        reported = [len(operation["steps"]) for operation in data["operations"]]
        assert reported == [len(operation.steps) for operation in ins.program.operations]


def test_parameters_stand_in_the_text() -> None:
    text = specification.to_markdown(HMMA)
    evidence = f"**{HMMA.evidence.kind}**: {HMMA.evidence.source}"
    for part in (
        "at least -133",
        "fraction bits kept: 25",
        "toward zero",
        "0x7fffffff",
        evidence,
        "HMMA.16816.F32",
    ):
        assert part in text
    chain = specification.to_markdown(golden.instruction("ampere", "HMMA.16816.F32"))
    assert "### Operations 0 to 1: " in chain and "| 0-7 |" in chain and "| 8-15 |" in chain


def table(ins: golden.Instruction) -> dict[str, int]:
    return {row["case"]: int(row["d"], 16) for row in special_values(ins)}


def test_special_values_of_hopper() -> None:
    """What NVIDIA's tensor cores are known to answer."""
    cells = table(HMMA)
    assert cells["a NaN in a"] == cells["inf * 0"] == cells["c = a signalling NaN"] == 0x7FFFFFFF
    assert cells["inf * 1"] == 0x7F800000 and cells["c = -inf, products zero"] == 0xFF800000
    assert cells["1 * 1 + c = -1"] == 0 and cells["(-1) * 1 + c = 0"] == 0xBF800000
    # 16 * 65504**2, below 2**53 and exact in float64, cut to 24 bits
    assert np.array(cells["all a and b largest, c = 0"], np.uint32).view(np.float32) == np.float32(
        16 * 65504.0**2
    )


def test_special_values_of_ieee_tree() -> None:
    """Signs of zero by IEEE 754, computed by NumPy."""
    cells = table(golden.load_instruction(EXAMPLES / "ieee_tree.yaml"))
    assert cells["c = -0, products +0"] == 0 and cells["c = -0, products -0"] == 0x80000000
    with np.errstate(over="ignore"):
        largest = np.float32(np.finfo(np.float32).max)
        assert cells["all a and b largest, c = 0"] == int((largest * largest).view(np.uint32))


def test_special_values_agree_with_the_core() -> None:
    for ins in representatives()[::4]:
        rows = {row["case"]: int(row["d"], 16) for row in special_values(ins)}
        assert rows, ins.name
        for question, operands in special_cases(ins):
            assert int(ins.stateless.dot(**operands)) == rows.pop(question), (ins.name, question)
        assert not rows
