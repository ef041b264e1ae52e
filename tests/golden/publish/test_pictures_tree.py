"""Summation trees against the models, probed as MMA-Sim probes: which ones does a big number and its
negative swallow?"""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np
import pytest
import svg_reader

import golden
from golden.model.instruction import Instruction
from golden.number.formats import from_float
from golden.paths import spec_folder
from golden.publish.families import groups
from golden.publish.pictures import tree
from golden.publish.pictures.tree import Tree

NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def encode(ins: Instruction, operand: str, value: float) -> int:
    return int(from_float(ins.formats[operand], np.array([value]))[0])


def swallowed(ins: Instruction, big: float, i: int, j: int) -> int:
    """How many of the other terms, all ones, are lost when +big**2 is term i and -big**2 term j;
    term k is c."""
    k = ins.stored_k
    a = [encode(ins, "a", 1.0)] * k
    b = [encode(ins, "b", 1.0)] * k
    c = encode(ins, "c", 1.0)
    for place, sign in ((i, 1.0), (j, -1.0)):
        if place == k:
            c = encode(ins, "c", sign * big * big)
        else:
            a[place], b[place] = encode(ins, "a", sign * big), encode(ins, "b", big)
    d = ins.dot(
        np.array(a, ins.formats["a"].dtype),
        np.array(b, ins.formats["b"].dtype),
        np.array(c, ins.formats["c"].dtype),
    )
    left = ins.formats["d"].decode(int(d)).value
    return k - 1 - int(left)


def together(whole: Tree, first: str, second: str) -> int:
    """Terms of the smallest subtree that holds both leaves, those two left out."""
    for child in whole.children:
        found = leaves(child)
        if first in found and second in found:
            return together(child, first, second)
    return len([leaf for leaf in leaves(whole) if leaf != "0"]) - 2


def leaves(node: Tree) -> list[str]:
    return [leaf for child in node.children for leaf in leaves(child)] if node.children else [node.words]


@pytest.mark.parametrize(
    ("architecture", "name", "big"),
    [
        ("cdna2", "v_mfma_f32_32x32x8bf16_1k", 2.0**40),
        ("cdna2", "v_mfma_f32_32x32x8f16", 2.0**15),
        ("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 2.0**100),
        ("hopper", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 2.0**100),
        ("hopper", HMMA, 2.0**15),
        ("volta", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 2.0**15),
        ("ampere", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 2.0**40),
        ("ada", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", 2.0**40),
        ("ampere", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 2.0**15),
    ],
)
def test_trees_are_those_that_the_models_sum_by(architecture: str, name: str, big: float) -> None:
    ins = golden.instruction(architecture, name)
    whole = tree.of_instruction(ins)
    names = [f"#{k}" for k in range(ins.stored_k)] + ["c"]
    for i, j in combinations(range(len(names)), 2):
        assert swallowed(ins, big, i, j) == together(whole, names[i], names[j]), (names[i], names[j])


def test_the_four_trees_of_figure_1() -> None:
    """(a) DMMA.884 sequential, (b) CDNA2 pairs in groups of four, (c) HMMA.1684 of five terms, (d)
    HMMA.1688: two of five."""
    found = {
        name: shape(tree.of_instruction(golden.instruction(architecture, name)))
        for architecture, name in (
            ("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
            ("cdna2", "v_mfma_f32_32x32x8f16"),
            ("ampere", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"),
            ("ampere", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        )
    }
    assert list(found.values()) == [
        "((((c #0) #1) #2) #3)",
        "((c ((#0 #1) (#2 #3))) ((#4 #5) (#6 #7)))",
        "[c #0 #1 #2 #3]",
        "[[c #0 #1 #2 #3] #4 #5 #6 #7]",
    ]


def shape(node: Tree) -> str:
    """Round brackets: rounded additions; square ones: fused sums."""
    inside = " ".join(shape(child) for child in node.children)
    return node.words if not node.children else f"[{inside}]" if node.fused else f"({inside})"


def test_every_tree_draws_and_no_term_gets_lost() -> None:
    seen = set()
    for architecture in golden.architectures():
        for group in groups(architecture):
            ins = group.representative
            key = repr(ins.program)
            if key in seen:
                continue
            seen.add(key)
            whole = tree.of_instruction(ins)
            terms = sorted(leaf for leaf in leaves(whole))
            assert terms == sorted([f"#{k}" for k in range(ins.stored_k)] + ["c"]), ins.name
            assert tree.abbreviated(whole).terms == whole.terms == ins.stored_k + 1
            root = svg_reader.check(tree.summation_tree(ins, "t"), "t")
            assert svg_reader.overlapping(root) == [], ins.name


def test_a_wide_node_says_how_many_terms_it_has_and_hides() -> None:
    words = svg_reader.words(tree.summation_tree(golden.instruction("hopper", HMMA), "t"))
    assert "17 terms" in words
    drawn = [word for word in words if word.startswith("#")]
    assert words[words.index("…") + 1] == f"+{16 - len(drawn)}" and drawn[0] == "#0" and drawn[-1] == "#15"


def test_long_chains_and_big_trees_are_abbreviated_honestly() -> None:
    chain = tree.of_sum([f"#{k}" for k in range(100)], "sequential")
    short = tree.abbreviated(chain)
    assert short.terms == 100 and len(leaves(short)) < 12
    big = tree.of_sum([f"#{k}" for k in range(4096)], "tree")
    short = tree.abbreviated(big)
    assert short.terms == 4096 and len(leaves(short)) <= 40


def test_the_tree_of_an_example_unit() -> None:
    ins = golden.load_instruction(spec_folder() / "examples" / "ieee_tree.yaml")
    assert shape(tree.of_instruction(ins)) == "((((#0 #1) (#2 #3)) ((#4 #5) (#6 #7))) c)"


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("rtx_blackwell", NVFP4),
        ("hopper", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"),
        ("cdna2", "v_mfma_f32_16x16x16f16"),
        ("cdna3", "v_mfma_f32_16x16x32_fp8_fp8"),
    ],
)
def test_no_line_crosses_a_node_of_another_sum(architecture: str, name: str) -> None:
    """A line touches the boxes and circles of its own ends alone."""
    drawn = tree.summation_tree(golden.instruction(architecture, name))
    lines = [
        [tuple(map(float, pair.split())) for pair in re.split("[ML]", path)[1:]]
        for path in re.findall(r'<path [^>]*d="(M[^"Z]*)"', drawn)
    ]
    boxes = node_boxes(drawn)
    assert len(lines) > 8 and boxes
    for line in lines:
        ends = {line[0], line[-1]}
        for x, y, w, h in boxes:
            if any(x <= px <= x + w and y <= py <= y + h for px, py in ends):
                continue
            for (x0, y0), (x1, y1) in pairwise(line):
                steps = [i / 200 for i in range(201)]
                inside = [
                    t for t in steps if x < x0 + t * (x1 - x0) < x + w and y < y0 + t * (y1 - y0) < y + h
                ]
                assert not inside, (line, (x, y, w, h))


def node_boxes(drawn: str) -> list[tuple[float, float, float, float]]:
    """x, y, width and height of every node of a sum."""
    found = []
    for one in re.findall(r"<(?:rect|circle) [^>]*>", drawn):
        given = {key: float(value) for key, value in re.findall(r' (\w+)="([0-9.]+)"', one)}
        if "r" in given:
            r = given["r"]
            found.append((given["cx"] - r, given["cy"] - r, 2 * r, 2 * r))
        elif "rx" in given:
            found.append((given["x"], given["y"], given["width"], given["height"]))
    return found
