"""Dissection of units with modes, and of units that keep their accumulator: plain Python functions."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after

import golden
from golden.catalog.unit_files import build_instruction
from golden.errors import OperandError
from golden.identify.blackbox.report import Found
from golden.identify.blackbox.sources import open_box, signature_from_options
from golden.unit import FunctionUnit
from golden.yamlfile import parse

BYTES = {"a": "s8", "b": "s8", "c": "s32", "d": "s32"}
SINGLE = dict.fromkeys("abcd", "f32")
ASKS: dict[str, Any] = {"seconds": 300, "asks": 10_000}


def dots(a: Any, b: Any) -> Any:
    return (a.view(np.int8).astype(np.int64) * b.view(np.int8)).sum(axis=1)


def by_mode(a: Any, b: Any, c: Any, mode: Any) -> Any:
    """c + a . b, c - a . b, and the first one clamped."""
    held = c.view(np.int32).astype(np.int64)
    total = held + np.where(mode == 1, -dots(a, b), dots(a, b))
    return np.where(mode == 2, total.clip(-(2**31), 2**31 - 1), total).astype(np.int64).astype(np.uint32)


def added_up(wide: bool, clears: bool = True) -> Any:
    """A product at a time, added in f32; `wide`: what is held is not rounded between."""

    def dot(a: Any, b: Any, clear: Any) -> Any:
        found, held = np.zeros(len(a), np.float32), np.float64(0)
        factors = (codes[:, 0].view(np.float32).astype(np.float64) for codes in (a, b))
        with np.errstate(all="ignore"):
            products = np.prod(list(factors), axis=0)
            products = products if wide else products.astype(np.float32)
            for index, (product, start) in enumerate(zip(products, clear, strict=True)):
                held = (0.0 if start and clears else held) + product
                held = held if wide else np.float64(np.float32(held))
                found[index] = held
        codes = found.view(np.uint32).copy()
        codes[np.isnan(found)] = 0x7FFFFFFF
        return codes

    return dot


def counted(a: Any, b: Any, clear: Any) -> Any:
    """Integers that wrap."""
    found, held = np.zeros(len(a), np.uint32), 0
    for index, (one, start) in enumerate(zip(dots(a, b).tolist(), clear, strict=True)):
        held = (one + (0 if start else held)) % 2**32
        found[index] = held
    return found


def stateful(function: Any, formats: dict[str, str], k: int = 1) -> Found:
    return golden.dissect(FunctionUnit(function, formats, k, "box", state=True), **ASKS)


def test_an_accumulator_is_found_with_its_state(tmp_path: Path) -> None:
    found = stateful(counted, BYTES, 4)
    assert found.explains and found.yaml is not None and "accumulator: state" in found.yaml
    (tmp_path / "unit.yaml").write_text(found.yaml)
    again, rng = golden.load_instruction(tmp_path / "unit.yaml"), np.random.default_rng(4)
    a, b = rng.integers(0, 256, (2, 500, 4)).astype(np.uint8)
    clear = (rng.random(500) < 0.2).astype(np.uint8)
    clear[0] = 1
    assert (again.dot(a, b, clear=clear) == counted(a, b, clear)).all()


def test_an_accumulator_of_floats_is_asked_for_its_rounding() -> None:
    found = stateful(added_up(wide=False), SINGLE)
    assert found.explains and found.order == "(c + 0)"
    assert found.instruction is not None and found.instruction.state


HOW = ("with_products", "alone")
LOADS = [*((load, clear) for load in HOW for clear in HOW), ("none", "alone")]


def loaded(load: str, clear: str, adds: bool = False) -> FunctionUnit:
    """A product of floats at a time on what `load` and `clear` leave; `adds`: what is loaded is added."""
    box = signature_from_options("box", SINGLE, 1, None, None, None, True)
    alone = tuple(name for name, how in (("clear", clear), ("load", load)) if how == "alone")

    def dot(a: Any, b: Any, clear: Any, c: Any = None, load: Any = None) -> Any:
        found, held = np.zeros(len(a), np.float32), np.float32(0)
        given = None if c is None else c.view(np.float32)
        with np.errstate(all="ignore"):
            products = a[:, 0].view(np.float32) * b[:, 0].view(np.float32)
            for i, product in enumerate(products):
                mark = "clear" if clear[i] else "load" if load is not None and load[i] else ""
                before = held if mark != "load" or adds else np.float32(0)
                held = np.float32(0) if mark == "clear" else before + given[i] if mark == "load" else held
                found[i] = held = held if mark in alone else held + product
        codes = found.view(np.uint32).copy()
        codes[np.isnan(found)] = 0x7FFFFFFF
        return codes

    return FunctionUnit.like(replace(box, load=load != "none", alone=alone), dot)


@pytest.mark.parametrize(("load", "clear"), long_after(1, LOADS))
def test_a_unit_that_loads_or_clears_alone_is_found(load: str, clear: str) -> None:
    found = golden.dissect(loaded(load, clear), **ASKS)
    assert found.explains and found.yaml is not None and found.compared > 3000
    unit = build_instruction(parse(found.yaml))
    assert (unit.load, set(unit.alone)) == (
        load != "none",
        {name for name, how in (("clear", clear), ("load", load)) if how == "alone"},
    )


@pytest.mark.parametrize("load", long_after(1, HOW))
def test_a_load_that_adds_is_not_explained(load: str) -> None:
    found = golden.dissect(loaded(load, "with_products", adds=True), seconds=3, asks=8_000)
    assert not found.explains


@pytest.mark.parametrize("box", long_after(1, [added_up(wide=True), added_up(wide=False, clears=False)]))
def test_what_is_held_in_addition_to_d_is_not_explained(box: Any) -> None:
    """Digits that d does not show, and a sum that `clear` does not end."""
    found = golden.dissect(FunctionUnit(box, SINGLE, 1, "box", state=True), seconds=3, asks=8_000)
    assert not found.explains


def test_each_mode_is_found_and_what_differs(tmp_path: Path) -> None:
    with pytest.raises(OperandError, match="has its own formats"):
        open_box("hopper:HMMA.16816.F32", modes=3)
    unit = FunctionUnit(by_mode, BYTES, 4, "box", modes=modes_of(3))
    with pytest.raises(OperandError, match="for each of 3 modes"):
        golden.dissect(unit, seconds=300, asks=1_400)
    found = golden.dissect(unit, seconds=300, asks=12_000)
    assert found.explains and list(found.modes) == [0, 1, 2]
    in_turns = found.compared - sum(one.compared for one in found.modes.values())
    assert found.wrong == 0 and in_turns == found.differing["modes in turns"][1] > 500
    assert "negate" in found.report and "saturate instead of wrap" in found.report
    assert found.instruction is not None
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 256, (2, 400, 4)).astype(np.uint8)
    c = (2**31 - rng.integers(-(2**17), 2**17, 400)).astype(np.uint32)
    mode = rng.integers(0, 3, 400).astype(np.uint8)
    assert (found.instruction.dot(a, b, c, mode=mode) == by_mode(a, b, c, mode)).all()
    assert len(found.files(tmp_path / "unit.yaml")) in (1, 3)


def late(a: Any, b: Any, c: Any, mode: Any) -> Any:
    """`by_mode`, but a mode is used from the next dot product on."""
    return by_mode(a, b, c, np.concatenate([mode[:1], mode[:-1]]))


@pytest.mark.long
def test_a_mode_that_comes_late_is_not_explained() -> None:
    unit = FunctionUnit(late, BYTES, 4, "box", modes=modes_of(2))
    found = golden.dissect(unit, seconds=300, asks=20_000)
    assert all(one.explains for one in found.modes.values())
    assert found.wrong and not found.explains
    assert "from one dot product to the next: 0 of" not in found.report


def test_no_mode_is_asked_after_the_time() -> None:
    def slow(a: Any, b: Any, c: Any, mode: Any) -> Any:
        last.append(time.monotonic())
        time.sleep(0.02)
        return by_mode(a, b, c, mode)

    last: list[float] = []
    unit, started = FunctionUnit(slow, BYTES, 4, "box", modes=modes_of(32)), time.monotonic()
    found = golden.dissect(unit, seconds=0.5, asks=32 * 8_000)
    assert not found.explains and all(each < started + 0.6 for each in last)


def modes_of(count: int) -> Any:
    return signature_from_options("box", BYTES, 4, None, None, count).modes
