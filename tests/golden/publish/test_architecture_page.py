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


def test_names_next_to_an_example_answer_alike(cdna3: str) -> None:
    line = next(line for line in cdna3.splitlines() if "The same numbers give the same results on" in line)
    (ins, operands), (_, _) = explained(cdna3[cdna3.index(line) :])[:2]
    answers = re.findall(r"^\| `(0x\w+)` .*\| `(0x\w+)` ", cdna3[cdna3.index(line) :], re.M)[0]
    assert not operands["a"].any() and ins.formats["c"].name == "f32"
    pairs = {pair.new.name: pair for pair in generations.changes("cdna2", "cdna3").pairs}
    for name in re.findall(r"`(v_\w+)`", line):
        for unit, answer in zip((pairs[name].old, pairs[name].new), answers, strict=True):
            zeros = np.zeros(unit.k, unit.formats["a"].dtype)
            assert int(unit.dot(zeros, zeros, operands["c"])) == int(answer, 16)
