"""The comparison: cells against the papers, witnesses run again by the C core, by the oracle and held
against the vectors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import exact
import numpy as np
import pytest
from long_run import long_after

import golden
from golden.catalog.compared_units import BLOCKS, Block, units
from golden.errors import DocsError
from golden.identify.probe import captured_witness
from golden.identify.probe.properties import PROPERTIES, ProbeError, by_slug, measure
from golden.paths import spec_folder
from golden.program.program import Program
from golden.publish import comparison, forms_page
from golden.vectors.operand_files import from_text

BLOCK = {block.slug: block for block in BLOCKS}
NVIDIA = ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell"]

# MMA-Sim (arXiv 2511.10909) Tables III and IV: F, and the products of one step (half of K where the table has
# a chain).
PAPER = {
    "f16-f32": {
        "volta": (23, 4),
        "turing": (24, 8),
        "ampere": (24, 8),
        "ada": (24, 8),
        "hopper": (25, 16),
        "cdna3": (24, 8),
    },
    "f16-f16": {"volta": (23, 4), "ampere": (24, 8), "blackwell": (25, 16), "rtx_blackwell": (25, 16)},
    "bf16": {"ampere": (24, 8), "hopper": (25, 16), "cdna3": (24, 8)},
    "tf32": {"ampere": (24, 4), "hopper": (25, 8), "cdna3": (24, 4)},
    "fp8": {"ada": (13, 16), "hopper": (13, 32), "rtx_blackwell": (25, 32), "cdna3": (24, 16)},
    "nvfp4": {"blackwell": (35, 64), "rtx_blackwell": (35, 64)},
}
# Exponent floors of its version 2.1.1: e_min of the result, less the 5, 6, 7 or 13 integer bits of the sum.
FLOORS = {
    "f16-f16": {"volta": -14 - 5, "turing": -14 - 6, "ampere": -14 - 6, "hopper": -14 - 7},
    "bf16": {"ampere": -126 - 6, "hopper": -126 - 7},
    "mxfp8": {"blackwell": -126 - 7},
    "mxfp4": {"rtx_blackwell": -126 - 13},
}


def cell(slug: str, block: Block, architecture: str) -> str:
    finding = measure(by_slug()[slug], units(block)[architecture])
    assert finding is not None
    return finding.text


def test_f_and_products_are_those_of_the_paper() -> None:
    for slug, row in PAPER.items():
        for architecture, (f, products) in row.items():
            assert cell("fraction-bits", BLOCK[slug], architecture) == str(f), (slug, architecture)
            assert cell("products", BLOCK[slug], architecture).split()[0] == str(products), (
                slug,
                architecture,
            )


def test_floors_are_those_of_the_corrected_paper() -> None:
    for slug, row in FLOORS.items():
        for architecture, floor in row.items():
            assert cell("exponent-floor", BLOCK[slug], architecture) == str(floor), (slug, architecture)


def test_other_cells_of_the_papers() -> None:
    """Sections IV-B to IV-H and VI: flushing on CDNA2, rounding down on CDNA3, NaN words of NVIDIA, 13
    bits of FP8."""
    f16 = BLOCK["f16-f32"]
    assert [cell("subnormal-operands", f16, name) for name in ("cdna1", "cdna2", "cdna3")] == [
        "kept",
        "flushed to 0",
        "kept",
    ]
    assert cell("cut-bits", f16, "cdna3") == "c RD; products RZ"
    assert "even against odd k RD" in cell("cut-bits", BLOCK["fp8"], "cdna3")
    assert {cell("nan-word", f16, name) for name in NVIDIA} == {"0x7fffffff"}
    assert {cell("rounding", BLOCK["f16-f16"], name) for name in NVIDIA} == {"RNE, 10 bits"}
    assert cell("rounding", BLOCK["fp8"], "ada") == cell("rounding", BLOCK["fp8"], "hopper") == "RZ, 13 bits"
    assert cell("rounding", f16, "cdna3") == "RNE, 23 bits"
    assert cell("order", f16, "cdna2") == "tree of 4 products, then c"
    assert cell("order", BLOCK["f64"], "ampere") == "chain of FMA from c"
    assert cell("inner-overflow", BLOCK["bf16"], "cdna3") == "products"
    assert cell("inner-overflow", BLOCK["bf16"], "hopper") == "no"
    assert {cell("ignored-bits", BLOCK["tf32"], name) for name in units(BLOCK["tf32"])} == {
        "ignored: a NaN becomes Inf"
    }
    assert cell("nan-payload", BLOCK["f64"], "hopper") == "handed on, quieted"


def wrapped(total: int) -> int:
    return (total + 2**31) % 2**32 - 2**31


def test_cells_of_integers_are_python_s() -> None:
    """The PTX ISA: two's complement operands, exact sums, one wrap or clamp; popc of the bits that xor or
    and leaves."""
    for slug, low in (("s8", -128), ("s8-satfinite", -128), ("s4", -8), ("s4-satfinite", -8)):
        for architecture, ins in units(BLOCK[slug]).items():
            high = -low - 1
            assert (
                cell("integer-range", BLOCK[slug], architecture)
                == f"{ins.k * low * high:,} to {ins.k * low * low:,}"
            )
            saturated = slug.endswith("satfinite")
            assert cell("overflow", BLOCK[slug], architecture) == ("saturates" if saturated else "wraps")
            if saturated:
                assert cell("inner-overflow", BLOCK[slug], architecture) == "no"
            a = np.full(ins.k, low & (2 ** ins.formats["a"].bits - 1), np.uint8)
            total = 2**31 - 1 + ins.k * low * low
            answer = int(ins.dot(a, a, np.uint32(2**31 - 1)).astype(np.int32))
            assert answer == (2**31 - 1 if saturated else wrapped(total))
    for operation, count in (("xor", lambda x, y: x ^ y), ("and", lambda x, y: x & y)):
        for architecture, ins in units(BLOCK[f"b1-{operation}"]).items():
            a, b = np.random.default_rng(1).integers(0, 2, (2, ins.k), dtype=np.uint8)
            assert cell("bit-operation", BLOCK[f"b1-{operation}"], architecture) == operation
            assert cell("integer-range", BLOCK[f"b1-{operation}"], architecture) == f"0 to {ins.k}"
            assert int(ins.dot(a, b, np.uint32(0))) == sum(map(count, a.tolist(), b.tolist()))
    assert mark("bit-operation", "b1-and", "hopper") == mark("integer-range", "s8", "hopper") == "C"
    assert mark("inner-overflow", "s8-satfinite", "hopper") == "C"


# Sparse, wmma, emulated -------------------------------------------------------------------------------------


def every_form() -> list[forms_page.Form]:
    return [
        form for block in BLOCKS for name in golden.architectures() for form in forms_page.forms(block, name)
    ]


@pytest.mark.long
def test_witnesses_of_other_forms_answer_as_the_page_says() -> None:
    text = forms_page.markdown()
    assert len(re.findall(r"^### ", text, re.M)) == 15
    for form in every_form():
        if form.witness is not None:
            assert form.representative.reference_dot(**form.witness.form) == form.witness.answer
            assert form.witness.answer != form.witness.plain_answer
            if form.witness.plain is not None:
                assert form.plain.reference_dot(**form.witness.plain) == form.witness.plain_answer
    for section in text.split("\n### ")[1:]:
        shown = re.findall(r"^\| `(0x\w+)` \(.*\) \| `(0x\w+)` \(.*\) \|$", section, re.M)
        answered = [int(ins.dot(**operands)) for ins, operands in commands(section)]
        assert answered == [int(code, 16) for pair in shown for code in pair], section.splitlines()[0]


def test_a_form_of_another_program_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse instruction that keeps one bit more gives other results than the dense one."""
    block = BLOCK["f16-f32"]
    real = [ins for ins in forms_page.members(block, "hopper") if ins.sparse]
    changed = [with_step(ins, "align", fraction_bits=(("products", 26), ("c", 26))) for ins in real]
    monkeypatch.setattr(forms_page, "members", lambda one, name: tuple(changed))
    forms_page.forms.cache_clear()
    try:
        found = forms_page.of_kind(block, "hopper", "sparse")
        assert found and all(form.different and form.witness is not None for form in found)
    finally:
        forms_page.forms.cache_clear()


# Witnesses --------------------------------------------------------------------------------------------------


def test_every_witness_is_what_the_core_answers() -> None:
    count = 0
    for chosen in PROPERTIES:
        for block in BLOCKS[::5]:
            for case in comparison.cases(chosen, block):
                for architecture in case.architectures:
                    for shot in case.finding.shots:
                        assert int(units(block)[architecture].dot(**shot.operands)) == shot.code, (
                            case.heading,
                            shot.what,
                        )
                        count += 1
    assert count > 150


def commands(text: str) -> list[tuple[golden.Instruction, dict[str, np.ndarray]]]:
    found = []
    for line in re.findall(r"^mmagold explain (.*)$", text, re.M):
        words = line.split()
        given = dict(zip((flag[2:].replace("-", "_") for flag in words[1::2]), words[2::2], strict=True))
        ins = golden.instruction(*words[0].split(":", 1))
        none = {"a": "", "b": "", "c": "0", "metadata": None, "scale_a": None, "scale_b": None}
        found.append((ins, from_text(ins, none | given)))
    return found


@pytest.mark.parametrize(
    "slug",
    long_after(
        3,
        [
            "exponent-floor",
            "scale-rules",
            "integer-range",
            "fraction-bits",
            "zero-sign",
            "overflow",
            "bit-operation",
        ],
    ),
)
def test_commands_of_a_page_give_its_results(slug: str) -> None:
    """The n-th command of a section belongs to the n-th row of the table above it."""
    for section in comparison.property_page(slug).split("\n## ")[2:]:
        probes = section.split("Recorded on ", 1)[0]
        shown = [int(code, 16) for code in re.findall(r"\| `(0x\w+)` \([^|]*\) \|$", probes, re.M)]
        answered = [int(ins.dot(**operands)) for ins, operands in commands(probes)]
        assert answered == shown, section.splitlines()[0]


# The vectors ------------------------------------------------------------------------------------------------

ORACLES = {
    "f16-f32": lambda f, e: exact.cofda("f16", "f16", "f32", "f32", 16, f, e),
    "f16-f16": lambda f, e: exact.cofda("f16", "f16", "f16", "f16", 16, f, e),
    "bf16": lambda f, e: exact.cofda("bf16", "bf16", "f32", "f32", 16, f, e),
    "tf32": lambda f, e: exact.cofda("tf32", "tf32", "f32", "f32", 8, f, e),
    "fp8": lambda f, e: exact.cofda("e4m3", "e4m3", "f32", "f32", 32, f, e, 13),
}


def places(slug: str, block: str) -> list[captured_witness.Place]:
    found = comparison._evidence(by_slug()[slug], units(BLOCK[block])["hopper"])
    assert found is not None and found.places
    return list(found.places)


@pytest.mark.parametrize("block", ORACLES)
def test_recorded_results_need_the_f_of_the_page(block: str) -> None:
    """The file holds the recorded word; the oracle gives it with Hopper's F alone, and the other words
    with the other F."""
    f, floor = (13 if block == "fp8" else 25), (-21 if block == "f16-f16" else -133)
    seen = 0
    for place in places("fraction-bits", block):
        arrays = np.load(spec_folder().parent / place.file)
        assert int(arrays["d"][place.tile, place.row, place.column]) == place.recorded
        a, b = arrays["a"][place.tile, place.row].tolist(), arrays["b"][place.tile, :, place.column].tolist()
        c = int(arrays["c"][place.tile, place.row, place.column])
        assert ORACLES[block](f, floor)(a, b, c) == place.recorded
        for text, code in place.others:
            other = int(re.match(r"F = (\d+) instead of (\d+)$", text)[1])
            assert ORACLES[block](other, floor)(a, b, c) == code != place.recorded
            seen += 1
    assert seen == 8


def test_recorded_results_show_the_floor_of_bf16() -> None:
    reported = [text for place in places("exponent-floor", "bf16") for text, _ in place.others]
    assert any("-132" in text for text in reported) and any("-134" in text for text in reported)


@pytest.mark.long
def test_marks_claim_no_more_than_the_vectors_show() -> None:
    for chosen in PROPERTIES:
        for block in BLOCKS:
            if "hopper" in units(block):
                ins = units(block)["hopper"]
                found, mark = comparison._evidence(chosen, ins), comparison._mark(chosen, ins)
                assert (mark == "C") == (
                    found is not None and bool(found.places) and not comparison._silent(chosen, ins, found)
                )
    assert comparison._mark(by_slug()["fraction-bits"], units(BLOCK["f16-f32"])["volta"]) == "P"
    assert comparison._mark(by_slug()["nan-payload"], units(BLOCK["f16-f32"])["hopper"]) == "c"


# The page itself --------------------------------------------------------------------------------------------


def test_all_architectures_are_compared() -> None:
    alone = ["tensix_wormhole", "tensix_blackhole"]  # formats of their own, in which every code is a number
    without_f16 = [
        "cdna4",
        "sapphire_rapids",
        "riscv",
        *alone,
    ]  # unknown on the first, the others have no FP16
    assert list(units(BLOCK["f16-f32"])) == [n for n in golden.architectures() if n not in without_f16]
    assert {name for block in BLOCKS for name in units(block)} == {*golden.architectures()} - {*alone}


# What must not build ----------------------------------------------------------------------------------------


def with_step(ins: golden.Instruction, op: str, **fields: object) -> golden.Instruction:
    """The instruction with other fields in its steps; the parameters still say what the YAML says."""
    operations = [
        replace(one, steps=tuple(replace(step, **fields) if step.op == op else step for step in one.steps))
        for one in ins.program.operations
    ]
    return replace(ins, program=Program(tuple(operations)))


@pytest.mark.parametrize(
    ("slug", "block", "op", "fields"),
    [
        ("fraction-bits", "f16-f32", "align", {"fraction_bits": (("products", 26), ("c", 26))}),
        ("exponent-floor", "bf16", "align", {"floor": -126}),
        ("exponent-floor", "f16-f16", "align", {"floor": None}),
        ("rounding", "f16-f32", "round", {"rounding": "nearest_even"}),
        ("rounding", "fp8", "round", {"result_fraction_bits": 12}),
        ("nan-word", "tf32", "special_values", {"nan": 0x7FC00000}),
        ("overflow", "s8", "round", {"overflow": "saturate"}),
        ("overflow", "s8-satfinite", "round", {"overflow": "wrap"}),
        ("integer-range", "s8", "sum", {"width": 16}),
        ("bit-operation", "b1-and", "multiply", {"operation": "xor"}),
    ],
)
def test_probe_sees_a_changed_program(slug: str, block: str, op: str, fields: dict[str, object]) -> None:
    chosen, ins = by_slug()[slug], units(BLOCK[block])["hopper"]
    assert measure(chosen, ins) is not None
    with pytest.raises(ProbeError, match=re.escape(ins.name) + ".*the probe found"):
        measure(chosen, with_step(ins, op, **fields))


@pytest.mark.parametrize("architecture", ["ampere", "hopper"])
def test_page_with_a_changed_program_does_not_build(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = BLOCK["f16-f32"]
    changed = with_step(units(block)[architecture], "align", fraction_bits=(("products", 26), ("c", 26)))
    monkeypatch.setattr(
        comparison, "units", lambda one: {**units(one), **({architecture: changed} if one is block else {})}
    )
    comparison.cases.cache_clear()
    try:
        with pytest.raises(DocsError, match=f"{architecture}:{re.escape(changed.name)}"):
            comparison.matrix()
    finally:
        comparison.cases.cache_clear()


@pytest.mark.long
def test_spec_that_the_vectors_contradict_does_not_build(tmp_path: Path) -> None:
    """A whole changed copy of spec/ agrees with itself; the recorded results do not agree with it."""
    copy = shutil.copytree(spec_folder(), tmp_path / "spec")
    file = copy / "architectures" / "common" / "nvidia_f25.yaml"
    text = file.read_text()
    file.write_text(
        text.replace(
            "hmma: [{cofda: {products: 16, fraction_bits: 25",
            "hmma: [{cofda: {products: 16, fraction_bits: 26",
        )
    )
    assert file.read_text() != text
    done = subprocess.run(
        [sys.executable, "-c", "from golden.publish import comparison; comparison.matrix()"],
        env={**os.environ, "MMAGOLD_SPEC": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "captured results" in done.stderr and "hopper" in done.stderr


def mark(slug: str, block: str, architecture: str) -> str:
    return comparison._mark(by_slug()[slug], units(BLOCK[block])[architecture])


def test_recorded_tf32_words_hold_no_nan_of_ignored_bits() -> None:
    ins = units(BLOCK["tf32"])["hopper"]
    vector = captured_witness.recorded(ins)
    assert vector is not None
    words = np.concatenate([vector.operands[name].ravel() for name in "ab"])
    assert not (
        ((words & 0x7F80_0000) == 0x7F80_0000) & ((words & 0x007F_E000) == 0) & ((words & 0x1FFF) != 0)
    ).any()
    assert mark("ignored-bits", "tf32", "hopper") == "(C)"
    assert "looked at to see a NaN" in comparison.property_page("ignored-bits")
