"""What notebooks show: whole HTML, with the numbers of the object, and reprs of one short line."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import golden
from golden.identify.comparing import compare
from golden.publish.notebook import shown
from golden.unit import FunctionUnit

HOPPER, AMPERE = (golden.instruction(name, "HMMA.16816.F32") for name in ("hopper", "ampere"))
VOID = {"br", "hr", "img", "rect", "path", "line", "use", "meta"}


class Whole(HTMLParser):
    """Every element is closed in its turn; nothing is fetched and nothing runs."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe")
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes), attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def card(thing: Any) -> str:
    text = str(thing._repr_html_())
    reader = Whole()
    reader.feed(text)
    reader.close()
    assert reader.open == [] and text.startswith('<div class="mmagold"')
    assert "\n" not in repr(thing) and len(repr(thing)) < 400 and repr(thing).startswith("<")
    return text


def test_an_instruction_shows_steps_and_datapath() -> None:
    text = card(HOPPER)
    assert f"<p>hopper <b><code>{HOPPER.name}</code></b></p>" in text
    assert "fraction bits kept: 25" in text and "captured, recorded on an NVIDIA" in text
    assert text.count("<svg") == 1


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("rtx5090", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
        ("mi100", "v_mfma_f32_32x32x4f16"),
        ("volta", "HMMA.884.F32.F32"),
        ("sapphire_rapids", "tdpbf16ps"),
        ("b200", "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.bf16.bf16"),
    ],
)
def test_every_kind_of_unit_has_a_card(architecture: str, name: str) -> None:
    try:
        ins = golden.instruction(architecture, name)
    except golden.UnknownNameError:
        ins = golden.instructions(architecture)[0]
    assert ins.name in card(ins)
    if ins.fragments is not None:
        assert "<svg" in card(ins.fragments)


def test_a_trace_shows_what_the_terminal_does() -> None:
    a = golden.from_float("f16", [1.5] + [0.0] * 15)
    trace = HOPPER.trace(a, golden.from_float("f16", np.ones(16)), 0)
    words = re.sub(r"<[^>]*>", "", card(trace))
    assert "+1.1000000000000000000000000" in words and "0x3fc00000" in words and "special_values" in words
    assert repr(trace).endswith("d = 0x3fc00000 = 1.5>")


def test_fragments_show_each_operand() -> None:
    text = card(HOPPER.fragments)
    assert text.count("<svg") == 4 and "c: 16 \N{MULTIPLICATION SIGN} 8 in 4 registers of 32 lanes" in text


def test_a_comparison_shows_counts_and_both_traces() -> None:
    result = compare(HOPPER, AMPERE, budget=2000)
    text = card(result)
    assert f"{result.numeric:,} of {result.trials:,} dot products answer differently" in text
    assert text.count("<pre") == 2 and f"{result.numeric:,} of" in repr(result)
    same = compare(HOPPER, HOPPER, budget=500)
    assert "not a proof" in card(same) and "<pre" not in card(same)


def test_text_of_users_is_text() -> None:
    """A name with markup in it stays a name."""
    formats = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}
    unit = FunctionUnit(lambda a, b, c: HOPPER.dot(a, b, c), formats, k=16)
    named = FunctionUnit.__new__(FunctionUnit)
    named.__dict__.update(unit.__dict__)
    object.__setattr__(named, "name", "<script>alert(1)</script>")
    text = card(compare(named, unit, budget=300))
    assert "&lt;script&gt;" in text


def test_what_has_no_card_says_so() -> None:
    with pytest.raises(TypeError, match="nothing draws a Plain"):
        shown(type("Plain", (), {})())
