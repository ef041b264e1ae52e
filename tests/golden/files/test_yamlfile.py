"""Errors of YAML specs name file, line and key; no mutation of a valid unit gives anything but a unit
or a SpecError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction, load_instruction
from golden.errors import SpecError
from golden.paths import spec_folder
from golden.yamlfile import Section, parse

PROGRAM = """\
unit: mine
title: A unit
shape: {k: 8}
formats: {a: f16, b: f16, c: f32, d: f32}
program:
  - fda: {fraction_bits: 25, exponent_floor: -133}
    k: {from: 0, to: 3}
    to: first
  - fda:
      fraction_bits: 24
      rounding: toward_zero
    k: {from: 4, to: 7}
"""
STEPS = """\
unit: steps
shape: {k: 4, m: 2, n: 3}
define_formats:
  mine: {kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 9, specials: none}
formats: {a: mine, b: e4m3, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}
scale_block: 2
steps:
  - multiply: {to: products}
  - scale: {of: products}
  - special_values: {of: [products, c, scales], nan: 0x7FFFFFFF}
  - align: {of: [products, c], fraction_bits: {products: 20, c: 23}, rounding: toward_zero, floor: -133, window: {c: 30}}
  - sum: {of: [products, c], to: total}
  - normalize: {of: total, fraction_bits: 31, rounding: down, min_exponent: -126}
  - round: {of: total, rounding: nearest_even, overflow: infinity, zero: positive}
"""  # noqa: E501
IEEE = """\
unit: chain
shape: {k: 4}
formats: {a: f32, b: f32, c: f32, d: f32}
steps:
  - flush: {of: [a, b, c], sign: positive}
  - multiply: {to: products, format: f32, rounding: nearest_even, flush: signed}
  - sum: {of: [products], to: groups, group: {contiguous: 2}, order: tree, format: f32, rounding: nearest_even}
  - sum: {of: [c, groups], to: d, order: sequential, format: f32, rounding: nearest_even}
"""  # noqa: E501
UNITS = (PROGRAM, STEPS, IEEE)


# Messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("fraction_bits: 25", "fraction_bit: 25", 6, "fraction_bit"),
        ("fraction_bits: 24", "fraction_bits: many", 10, "'fraction_bits'"),
        (
            "fraction_bits: 24",
            "fraction_bits: 124",
            10,
            "'fraction_bits' is 124, expected an integer from 0 to 72",
        ),
        ("rounding: toward_zero", "rounding: towards_zero", 11, "nearest: toward_zero"),
        ("- fda: {", "- fdb: {", 6, "unknown algorithm 'fdb'"),
        ("d: f32}", "d: f33}", 4, "unknown format 'f33'; nearest: .*f32"),
        ("shape: {k: 8}", "shape: {k: 0}", 3, "'k' is 0, expected an integer from 1"),
        ("shape: {k: 8}", "shape: {k: 010}", 3, "value '010' is octal or of base 60 in YAML 1.1"),
        ("shape: {k: 8}", "shape: {k: 1:30}", 3, "value '1:30' is octal or of base 60 in YAML 1.1"),
        ("shape: {k: 8}", "shape: {k: 2020-01-01}", 3, "'k' is '2020-01-01', expected an integer"),
        ("shape: {k: 8}", "shape: {k: }", 3, "'k' is empty, expected an integer"),
        ("shape: {k: 8}", "shape: {k: 12}", 5, "8 of k = 12"),
        ("to: 3}", "to: 9}", 7, "'to' is 9, expected an integer from 0 to 7"),
        ("title: A unit", "titel: A unit", 2, "unknown key 'titel'"),
        ("unit: mine", "unit: [mine]", 1, "'unit' is a list, expected a string"),
        ("title: A unit", "unit: again", 2, "'unit' appears twice"),
        ("to: first", "too: first", 6, "found fda, too"),
        ("{from: 4", "{form: 4", 12, "form"),
    ],
)
def test_errors_name_file_line_and_key(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert PROGRAM.count(old) == 1
    path = tmp_path / "unit.yaml"
    path.write_text(PROGRAM.replace(old, new))
    with pytest.raises(SpecError, match=words) as caught:
        load_instruction(path)
    assert str(caught.value).startswith(f"{path}:{line}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just text",
        "- a\n- b\n",
        "a: [",
        "a: &x [*x]",
        "a: !!python/object:os.system {}",
        "a: !other 3",
        "\t",
        "a: b: c",
        "? [1]\n: 2\n",
        "1.5: x",
        "true: x",
        "null: x",
        "a: " + "[" * 500 + "]" * 500,
        "%YAML 9.9\n--- a",
        "a: 0x",
        "a: 2001-99-99",
        "---\na: 1\n---\nb: 2\n",
        "a: !!int x",
        "a: \x01",
    ],
)
def test_what_is_no_spec_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"bad\.yaml"):
        load_instruction(path)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        yamlfile.read(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        yamlfile.read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8 text at byte 3"):
        yamlfile.read(tmp_path / "latin.yaml")


def test_taking_values() -> None:
    section = parse("a: 3\nb: [x, y]\nc: {d: true}\ne: ~\n", "f.yaml")
    assert (
        section.take("a", int) == 3
        and section.take_names("b") == ["x", "y"]
        and section.take("e", str, "default") == "default"
    )
    for call, words in (
        (lambda: section.take("c", int), "f.yaml:3: key 'c' is a mapping, expected an integer"),
        (lambda: section["c"].take("d", int), "f.yaml:3: key 'd' is True"),
        (lambda: section.take("f", int), "key 'f' is missing"),
        (lambda: section.take_choice("b", ("x",)), "key 'b' is a list, expected one of x"),
        (lambda: section.take_names("a"), "key 'a' is 3"),
        (lambda: section.take_int("a", 4, 9), "expected an integer from 4 to 9"),
        (lambda: section.take("e", str), "'e' is empty"),
    ):
        with pytest.raises(SpecError, match=words):
            call()
    section.done()
    with pytest.raises(SpecError, match="unknown key 'd'"):
        parse("d: 1").done()


@pytest.mark.long
@pytest.mark.parametrize("number", [1 << 195, (1 << 1024) - 1])
def test_a_constant_of_a_wide_port_is_a_number(number: int) -> None:
    assert parse(f"a: {number:#x}")["a"] == number
    with pytest.raises(SpecError, match="characters, expected at most"):
        parse(f"a: {number}")


def test_every_committed_spec_reads() -> None:
    files = sorted(spec_folder().rglob("*.yaml"))
    assert len(files) > 40
    for path in files:
        assert yamlfile.read(path).lines


# Fuzz -------------------------------------------------------------------------------------------------------


def build_and_run(document: Section) -> None:
    """A unit that builds must also run, and its models agree."""
    ins = build_instruction(document)
    for kind in ("random_bits", "narrow"):
        operands = stimuli.generate(ins, kind, 2, np.random.default_rng(1))
        results = ins.dot(**operands)
        general = ins.engine.dots(
            *(operands.get(name) for name in ("a", "b", "c", "metadata", "scale_a", "scale_b")), general=True
        )
        wanted = [ins.reference_dot(**{name: array[i] for name, array in operands.items()}) for i in range(2)]
        assert results.tolist() == general.tolist() == wanted


def tolerate(text: str) -> bool:
    """True when the text is a working unit; False when it is refused as it should be."""
    try:
        build_and_run(parse(text, "unit.yaml"))
    except SpecError as error:
        assert ".yaml" in str(error) and "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize("text", UNITS)
def test_the_units_to_mutate_work(text: str) -> None:
    assert tolerate(text)


@pytest.mark.parametrize("word", ["toward_zero", "down", "infinity", "nearest_even"])
def test_a_list_is_no_word(word: str) -> None:
    assert STEPS.count(word) == 1
    assert not tolerate(STEPS.replace(word, f"[{word}]"))


@settings(max_examples=80)
@given(st.sampled_from(UNITS), st.data())
def test_mutated_characters(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", *"0179-:{}[],&*!~ \n\tabc.\x00é"]))
            + text[at + data.draw(st.integers(0, 2)) :]
        )
    tolerate(text)


@settings(max_examples=60)
@given(st.sampled_from(UNITS), st.data())
def test_mutated_lines(text: str, data: st.DataObject) -> None:
    lines = text.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 2))):
        source, target = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if data.draw(st.booleans()):
            lines.insert(target, lines[source])
        elif len(lines) > 1:
            del lines[source]
    tolerate("".join(lines))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 80),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(
        [
            "a",
            "c",
            "d",
            "products",
            "total",
            "f16",
            "f32",
            "f64",
            "e4m3",
            "s8",
            "s32",
            "b1",
            "ue8m0",
            "tf32",
            "down",
            "nearest_even",
            "wrap",
            "ieee",
            "saturate",
            "largest",
            "exact",
            "tree",
            "all",
            "none",
            "first",
            "zero",
            "e5m2fnuz",
        ]
    ),
    st.lists(st.sampled_from(["a", "c", "products", "total", 1]), max_size=3),
    st.just({}),
    st.just({"contiguous": 2}),
    st.just({"f32": 7, "f16": 3}),
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += [(node, key), *places(value)]
    return found


def as_section(value: Any) -> Any:
    if isinstance(value, dict):
        section = Section("unit.yaml", 1)
        section.update((key, as_section(item)) for key, item in value.items())
        return section
    return [as_section(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=30)
@given(st.sampled_from(UNITS), st.data())
def test_mutated_values(text: str, data: st.DataObject) -> None:
    document = parse(text, "unit.yaml")
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(document)))
        if data.draw(st.integers(0, 4)) == 0:
            container.pop(key) if isinstance(container, dict) else container.__delitem__(key)
        else:
            container[key] = as_section(data.draw(VALUES))
        if not document:
            return
    try:
        build_and_run(document)
    except SpecError as error:
        assert ".yaml" in str(error) and "\n" not in str(error)


@settings(max_examples=150)
@given(st.text(alphabet=st.sampled_from(" \n:-{}[]ab01,'\"&*!|>#?%@`~"), max_size=60))
def test_any_text(text: str) -> None:
    try:
        parse(text)
    except SpecError:
        return


def test_a_unit_of_the_examples_folder_is_the_instruction_it_copies() -> None:
    for path in sorted((spec_folder() / "examples").glob("*.yaml")):
        try:
            ins = load_instruction(path)
        except SpecError as error:
            pytest.fail(str(error))
        assert golden.formats() and ins.dot(
            **stimuli.generate(ins, "narrow", 3, np.random.default_rng(1))
        ).shape == (3,)


# What a unit may not do: each of these must be refused when it is built, for the core trusts a program that
# was built.


@pytest.mark.parametrize("register", ["scales", "addends"])
@pytest.mark.parametrize("step", ["sum", "align", "normalize"])
def test_a_register_that_the_unit_does_not_have_is_refused(register: str, step: str) -> None:
    body = {
        "sum": f"sum: {{of: [{register}], to: total}}",
        "align": f"align: {{of: [{register}], fraction_bits: 20, rounding: down}}",
        "normalize": f"normalize: {{of: {register}, fraction_bits: 20, rounding: down}}",
    }[step]
    text = IEEE.replace("  - flush", f"  - {body}\n  - flush")
    with pytest.raises(SpecError, match=register):
        build_instruction(parse(text, "unit.yaml"))


def test_two_operations_cannot_write_one_register() -> None:
    with pytest.raises(SpecError, match="first"):
        build_instruction(parse(PROGRAM + "    to: first\n", "unit.yaml"))


@pytest.mark.parametrize(("old", "new"), [("{a: f16, b", "{a: s8, b"), ("a: f16, b: f16", "a: f16, b: s8")])
def test_an_integer_operand_with_a_float_gives_one_answer(old: str, new: str) -> None:
    tolerate(PROGRAM.replace(old, new))


@pytest.mark.parametrize("d", ["e4m3", "e5m2fnuz"])
def test_an_ieee_sum_into_a_narrow_format_gives_one_answer(d: str) -> None:
    tolerate(IEEE.replace("d: f32}", f"d: {d}}}"))
