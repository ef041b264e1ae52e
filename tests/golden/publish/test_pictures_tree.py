"""Summation trees against the models, probed as MMA-Sim probes: which ones does a big number and its
negative swallow?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import svg_reader

import golden
from golden.model.instruction import Instruction
from golden.number.formats import from_float
from golden.program.steps import Part
from golden.publish.families import groups
from golden.publish.pictures import tree
from golden.publish.pictures.tree import Tree

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
            products = [f"#{k}" for k in range(ins.stored_k)]
            passes = len(ins.program.operations) if ins.program.steps_of(Part) else 1
            assert terms == sorted([*products * passes, "c"]), ins.name
            assert tree.abbreviated(whole).terms == whole.terms == passes * ins.stored_k + 1
            root = svg_reader.check(tree.summation_tree(ins, "t"), "t")
            assert svg_reader.overlapping(root) == [], ins.name
