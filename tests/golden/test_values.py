"""One declaration of keys: reader, JSON Schema and page agree, key by key, for every kind of YAML."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from golden import yamlfile
from golden.catalog.json_schema import HEAD, file_schema, keys_table
from golden.errors import SpecError
from golden.program.keys import mapping_of
from golden.program.steps import KINDS
from golden.publish import schema
from golden.values import (
    WORD,
    Choice,
    Either,
    Flag,
    Integer,
    Key,
    Line,
    Many,
    Mapping,
    Number,
    Table,
    Text,
    Value,
    Variants,
)
from golden.yamlfile import Section
from rtl_tb.dut.keys import DUT
from rtl_tb.regress.plan import REGRESS

FILES = {name: mapping for name, (_, mapping) in schema.SCHEMAS.items()} | {"dut": DUT, "regress": REGRESS}
DEFINITIONS = file_schema("all", FILES["unit"])["$defs"]


def inside(value: Value) -> Iterator[Any]:
    """Values that a declaration takes, its bounds among them."""
    match value:
        case Integer(low=low, high=high):
            yield from (-7, 0) if low is None or high is None else (low, high)
        case Number(low=low):
            yield from (low or 0, 0.5)
        case Flag():
            yield True
        case Choice():
            yield from (value.all[0], value.all[-1])
        case Line():
            yield "dot 4"
        case Text(pattern=pattern):
            yield "logic" if pattern else "any text"
        case Many(one=one, least=least, alone=alone):
            items = list(inside(one))
            if not items and least:  # the walk visits the keys of a mapping one by one
                return
            found = items[:1] if least <= 1 else [items[i % len(items)] for i in range(least)]
            if not value.different or len(found) == len({*map(str, found)}):
                yield found
            yield from [found[::-1]] if least > 1 and not value.different else []
            yield from [items[0]] if alone else []
        case Either(kinds=kinds):
            for kind in kinds:
                yield from inside(kind)


def outside(value: Value) -> Iterator[Any]:
    """Values that it refuses, the neighbours of its bounds among them."""
    match value:
        case Integer(low=low, high=high):
            yield from ("3", 1.5, True)
            yield from () if low is None or high is None else (low - 1, high + 1)
        case Number(low=low):
            yield from ("3", True, math.inf)
            yield from () if low is None else (low - 1,)
        case Flag():
            yield from ("true", 1)
        case Choice():
            yield from ("no such word", -1, [])
        case Line():
            yield from (1, "", "x" * 300)
        case Text(pattern=pattern):
            yield 1
            yield from ["7 of 9"] if pattern else []
        case Many(one=one, least=least, most=most, different=different):
            item = next(inside(one), None)
            yield from [[]] if least else []
            yield from [] if most is None or item is None else [[item] * (most + 1)]
            yield from [[item, item]] if different and item is not None else []
            yield from ([wrong] for wrong in outside(one))


def declared(mapping: Mapping | Variants, name: str) -> Iterator[tuple[str, Key]]:
    """Every key below a mapping, with its path."""
    mappings = mapping.kinds.values() if isinstance(mapping, Variants) else [mapping]
    for one in mappings:
        for key in one.keys:
            yield f"{name}.{key.name}", key
            for value in parts(key.value):
                yield from declared(value, f"{name}.{key.name}")


def parts(value: Value) -> Iterator[Mapping | Variants]:
    """The mappings that a value holds."""
    match value:
        case Mapping() | Variants():
            yield value
        case Either(kinds=kinds):
            for kind in kinds:
                yield from parts(kind)
        case Many(one=one) | Table(one=one):
            yield from parts(one)


KEYS = dict(
    [pair for name, mapping in FILES.items() for pair in declared(mapping, name)]
    + [pair for kind in KINDS for pair in declared(mapping_of(kind), kind.__name__)]
)


def reads(key: Key, value: Any) -> bool:
    section = Section("x.yaml", 1)
    section[key.name] = value
    try:
        section.take_value(key.name, key.value)
    except SpecError as error:
        assert f"key '{key.name}'" in str(error) and str(error).startswith("x.yaml:1: ")
        return False
    return True


def valid(key: Key, value: Any) -> bool:
    document = {"$defs": DEFINITIONS, **key.schema()}
    return bool(jsonschema.Draft202012Validator(document).is_valid(value))


def test_the_walk_finds_the_keys_of_every_kind_of_file() -> None:
    assert len(KEYS) > 150
    for name in ("unit.scale_block", "dut.handshake.latency", "regress.engines.count", "plan.promote"):
        assert name in KEYS
    assert {"families.families.lanes", "architecture.instructions.evidence", "Align.floor"} <= KEYS.keys()


@pytest.mark.parametrize("name", KEYS)
def test_reader_and_editor_agree_on_a_key(name: str) -> None:
    key = KEYS[name]
    for value in inside(key.value):
        assert reads(key, value) and valid(key, value), value
    for value in outside(key.value):
        if isinstance(value, float) and math.isinf(value):  # JSON has none
            assert not reads(key, value)
        elif not isinstance(value, (int, list)) or isinstance(value, bool) or abs(_largest(value)) < 1 << 63:
            assert not reads(key, value), value
            assert not valid(key, value), value
        else:  # beyond 64 bits the reader alone has the bound
            assert not reads(key, value), value


def _largest(value: Any) -> int:
    numbers = value if isinstance(value, list) else [value]
    return max((abs(one) for one in numbers if isinstance(one, int)), default=0)


@pytest.mark.parametrize("name", KEYS)
def test_the_page_says_what_the_reader_takes(name: str) -> None:
    """The row has every word of a choice, both bounds of a range, and the default as YAML reads it back."""
    key = KEYS[name]
    ((shown, takes, default, meaning),) = Mapping((key,)).rows()
    assert (shown, meaning) == (key.name, key.meaning)
    match key.value:
        case Integer(low=int() as low, high=int() as high, what=""):
            assert takes == f"{low} to {high}" or high >= 1 << 64
        case Choice(what=""):
            assert takes == ", ".join(dict.fromkeys(f"`{word}`" for word in key.value.all))
    if default.startswith("`"):
        read = yamlfile.parse(f"{key.name}: {default.strip('`')}")
        if not key.instead:
            assert reads(key, read[key.name]) and read.take_value(key.name, key.value) == key.default


def test_a_row_that_the_declaration_does_not_say_is_noticed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from golden.errors import DocsError

    for page in schema.pages():
        text = (schema.docs_folder() / page).read_text("utf-8")
        (tmp_path / page).write_text(text.replace("0 to 72", "0 to 80"), "utf-8")
    monkeypatch.setattr(schema, "docs_folder", lambda: tmp_path)
    with pytest.raises(DocsError, match=r"spec-schema\.md:\d+: the file says .*0 to 80"):
        schema.check()


def test_keys_that_exclude_or_need_each_other() -> None:
    mapping = Mapping(
        (
            Key("a", Integer(0, 3), "one", None, excludes=("b",)),
            Key("b", Integer(0, 3), "two", None, needs=("c",)),
            Key("c", WORD, "three", None),
            Key("d", Flag(), "four"),
            Key("e", Flag(), "five"),
        ),
        one_of=(("d", "e"),),
    )
    check = jsonschema.Draft202012Validator(mapping.schema())
    for text, said in {
        "a: 1\nb: 2\nc: x\nd: true": "2: key 'a' cannot be used with key 'b'",
        "b: 2\nd: true": "2: key 'b' needs key 'c'",
        "a: 1": "1: expected either 'd' or 'e'",
        "d: true\ne: true": "1: expected either 'd' or 'e'",
        "d: true\nf: 1": "3: unknown key 'f', expected one of a, b, c, d, e",
        "d: true\na: 4": "3: key 'a' is 4, expected an integer from 0 to 3",
    }.items():
        section = yamlfile.parse(f"# first line\n{text}", "x.yaml")
        line = {"1": "2"}.get(said[0], said[0])
        with pytest.raises(SpecError) as caught:
            mapping.read(section)
        assert str(caught.value).startswith(f"x.yaml:{line}: {said[3:]}")
        assert not check.is_valid(dict(section))
    good = yamlfile.parse("b: 2\nc: x\nd: true")
    assert mapping.read(good) == {"a": None, "b": 2, "c": "x", "d": True, "e": None}
    assert check.is_valid(dict(good))
    assert HEAD[0] in keys_table(
        mapping.rows()
    ) and "| `d` | true or false | needed without `e` | four |" in (keys_table(mapping.rows()))
