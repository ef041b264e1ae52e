"""Architecture pages: the instruction table against the papers' tables, and what changed, answered again
by both cores."""

from __future__ import annotations

import re

import numpy as np
import pytest

import golden
from golden.publish import architecture_page, families, generations
from golden.vectors.operand_files import from_text

# Cells of Tables III and IV of the MMA-Sim paper (arXiv 2511.10909):
# group, algorithm, F. Chains (Co-) are n x.
PUBLISHED = [
    ("volta", "mma_m8n8k4_f16-f32", "FDA", 23),
    ("turing", "mma_f16-f32", "FDA", 24),
    ("ampere", "mma_f16-f32", "2 x FDA of 8 for K = 16", 24),
    ("ampere", "mma_bf16-f32", "2 x FDA of 8 for K = 16", 24),
    ("ampere", "mma_tf32-f32", "FDA over K = 4", 24),
    ("ampere", "mma_f64-f64", "SFMA", None),
    ("ada", "mma_fp8-f32", "2 x FDA of 16 for K = 32", 13),
    ("ada", "mma_fp8-f32", "FDA over K = 16", 13),
    ("hopper", "mma_f16-f16", "FDA over K = 8, 16", 25),
    ("hopper", "wgmma_tf32-f32", "FDA over K = 8", 25),
    ("hopper", "wgmma_fp8-f32", "FDA over K = 32", 13),
    ("blackwell", "tcgen05_f16-f32", "FDA over K = 16", 25),
    ("blackwell", "tcgen05_mxf4-f32", "GDFS", 35),
    ("rtx_blackwell", "mma_fp8-f32", "FDA over K = 16, 32", 25),
    ("rtx_blackwell", "mma_mxf4-f32", "GDFS", 35),
    ("cdna2", "mfma_old-f32-from-f32", "SFMA", None),
    ("cdna3", "mfma-f32-from-f16-bf16", "2 x FDRDA of 8 for K = 16", 24),
    ("cdna3", "mfma_xf32-f32", "2 x FDRDA of 4 for K = 8", 24),
    ("cdna3", "mfma_fp8-f32", "2 x GFDRDA of 16 for K = 32", 24),
]


@pytest.mark.parametrize(("architecture", "slug", "algorithm", "f"), PUBLISHED)
def test_table_is_that_of_the_paper(architecture: str, slug: str, algorithm: str, f: int | None) -> None:
    group = next(group for group in families.groups(architecture) if group.slug == slug)
    parameters = architecture_page.parameter_text(group)
    assert algorithm in architecture_page.algorithm_text(group)
    assert (f"F = {f};" in parameters) if f is not None else "F = " not in parameters


def test_cdna2_groups_of_the_paper() -> None:
    found = {group.slug: architecture_page.parameter_text(group) for group in families.groups("cdna2")}
    assert "group 4" in found["mfma_old-f32-from-f16-bf16"]
    assert "group 2" in found["mfma_old-f32-from-bf16"]


def test_every_group_is_linked_once() -> None:
    rows = [row for section in architecture_page._sections("hopper") for row in section["rows"]]
    assert sorted(re.findall(r"\(site:(instructions/[^)]+)\)", "".join(row[0] for row in rows))) == sorted(
        g.path for g in families.groups("hopper")
    )


def test_generations_follow_the_vendor() -> None:
    before = {name: generations.previous(name) for name in golden.architectures()}
    assert before["volta"] is None and before["cdna1"] is None
    assert (
        before["rtx_blackwell"] == "blackwell" and before["cdna3"] == "cdna2" and before["turing"] == "volta"
    )


@pytest.fixture(scope="module")
def turing() -> str:
    return architecture_page.markdown("turing")


@pytest.fixture(scope="module")
def cdna3() -> str:
    return architecture_page.markdown("cdna3")


def explained(text: str) -> list[tuple[golden.Instruction, dict[str, np.ndarray]]]:
    """The instructions and operands of the commands of a page."""
    found = []
    for line in re.findall(r"^mmagold explain (.*)$", text, re.M):
        words = line.split()
        given = dict(zip((flag[2:].replace("-", "_") for flag in words[1::2]), words[2::2], strict=True))
        ins = golden.instruction(*words[0].split(":", 1))
        operands = {"a": "", "b": "", "c": "0", "metadata": None, "scale_a": None, "scale_b": None} | given
        found.append((ins, from_text(ins, operands)))
    return found


@pytest.mark.parametrize("page", ["turing", "cdna3"])
def test_examples_answer_as_the_page_says(page: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(page).split("## What changed", 1)[1]
    answers = [
        int(code, 16)
        for row in re.findall(r"^\| `0x\w+` .*$", text, re.M)
        for code in re.findall(r"`(0x\w+)`", row)
    ]
    found = explained(text)
    assert len(found) == len(answers) >= 2
    assert [int(ins.dot(**operands)) for ins, operands in found] == answers
    assert all(x != y for x, y in zip(answers[::2], answers[1::2], strict=True))


def test_examples_that_stand_for_several() -> None:
    """1 - 2^-25 is cut at F = 24 and kept at F = 25, whatever the types; f16 results have no such bit."""
    pairs = [
        pair
        for pair in generations.changes("ada", "hopper").pairs
        if pair.new.name.startswith("mma.sync.aligned.m16n8k8.")
    ]
    found = {pair.new.name.split("row.col.")[1]: pair for pair in pairs}
    first = found["f32.f16.f16.f32"]
    assert generations.shows(first, found["f32.tf32.tf32.f32"]) and generations.shows(
        first, found["f32.bf16.bf16.f32"]
    )
    assert not generations.shows(first, found["f16.f16.f16.f16"])


def test_names_beside_an_example_answer_alike(cdna3: str) -> None:
    line = next(line for line in cdna3.splitlines() if "The same numbers give the same results on" in line)
    (ins, operands), (_, _) = explained(cdna3[cdna3.index(line) :])[:2]
    answers = re.findall(r"^\| `(0x\w+)` .*\| `(0x\w+)` ", cdna3[cdna3.index(line) :], re.M)[0]
    assert not operands["a"].any() and ins.formats["c"].name == "f32"
    pairs = {pair.new.name: pair for pair in generations.changes("cdna2", "cdna3").pairs}
    for name in re.findall(r"`(v_\w+)`", line):
        for unit, answer in zip((pairs[name].old, pairs[name].new), answers, strict=True):
            zeros = np.zeros(unit.k, unit.formats["a"].dtype)
            assert int(unit.dot(zeros, zeros, operands["c"])) == int(answer, 16)


def test_machine_names_are_folded() -> None:
    shown = {group.slug: architecture_page._machine_names(group) for group in families.groups("hopper")}
    assert shown["wgmma_fp8-f32"] == "`QGMMA.64xNx32.F32.A.B` (N = 8 to 256 by 8)"
    assert shown["mma_f16-f32"] == "`HMMA.1688.F32`, `HMMA.16816.F32`"
    assert shown["mma_fp8-f32"] == "`F2FP` `HMMA` `FADD`"


def test_what_turing_changed(turing: str) -> None:
    """Volta's HMMA keeps 23 bits of 4 products, Turing's 24 of 8;
    m8n8k4 stayed (papers, and version 2.1.1)."""
    assert "**F: 23 became 24**" in turing
    assert "products in one step: 4 became 8" in turing
    same = turing.split("### Same results", 1)[1]
    assert "mma_m8n8k4_f16-f32.md) | 8 |" in same


def test_counts_of_pairs() -> None:
    found = generations.changes("turing", "ampere")
    names = [{ins.name for ins in golden.instructions(name)} for name in ("turing", "ampere")]
    assert {pair.old.name for pair in found.pairs} == names[0] & names[1]
    assert {ins.name for ins in found.added} == names[1] - names[0]
    assert {ins.name for ins in found.gone} == names[0] - names[1]
    assert all("m8n8k4" in pair.new.name for pair in found.pairs if pair.became_emulated)


def test_tally_is_deterministic_and_sees_a_difference() -> None:
    pair = next(
        p
        for p in generations.changes("ada", "hopper").pairs
        if p.new.name.endswith("m16n8k16.row.col.f32.f16.f16.f32")
    )
    first = generations._run(pair, 16)
    assert first == generations._run(pair, 16)
    assert 0 < first.count < first.tried
    assert generations._run(generations.Pair(pair.new, pair.new), 16).count == 0


def test_explaining_parameter_is_the_one_that_matters() -> None:
    """1 - 2^-25: the answers of Ada and Hopper part because of F alone."""
    pair = next(
        p
        for p in generations.changes("ada", "hopper").pairs
        if p.new.name.endswith("m16n8k16.row.col.f32.f16.f16.f32")
    )
    changed = {one.name: (one.old, one.new, one.explains) for one in generations.parameters(pair)}
    assert changed == {
        "F": ("24", "25", True),
        "products in one step": ("8", "16", False),
        "exponent floor": ("-132", "-133", False),
    }


def test_another_sequence_says_its_parameters_too() -> None:
    why = {}
    for slug in ("mma_fp8-f32", "mma_fp8-f16"):
        new = next(group for group in families.groups("hopper") if group.slug == slug).representative
        why[slug] = architecture_page._why(generations.Pair(golden.instruction("ada", new.name), new))
    assert "then ieee add; F: 13 became 25; fraction bits of the result: 13 became 23" in why["mma_fp8-f32"]
    assert why["mma_fp8-f16"].endswith("F: 13 became 25")


@pytest.mark.long
def test_steps_without_an_algorithm_and_unknown_instructions() -> None:
    """AMX's program is written out; RDNA4 lists what nobody knows, and why."""
    page = architecture_page.markdown("sapphire_rapids")
    assert "fma chain of 16 (k = 0, 2, 4, 6, ..) from zero, then fma chain of 16" in page
    unknown = architecture_page.markdown("rdna4").split("## Instructions of unknown arithmetic")[1]
    assert "`v_wmma_f32_16x16x16_fp8_fp8_w32`" in unknown and "nobody has published words" in unknown
    assert "unknown arithmetic" not in architecture_page.markdown("cdna2")
