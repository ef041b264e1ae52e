"""Random custom units: the reference model, the general interpreter and the fast form agree
on every one."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np
import pytest
from kernel_units import kernel_unit
from long_run import long_after
from model_differences import differences
from random_units import accepted, load, random_unit
from tricky_units import EXACT_CASES, TRICKY

from golden import yamlfile
from golden.catalog import unit_files
from golden.errors import CoreError, SpecError


def test_wrapping_a_float_total_is_refused() -> None:
    """The core keeps 100 bits of a wide sum, so the low bits that wrapping keeps could be wrong."""
    with pytest.raises(SpecError, match="overflow 'wrap' is for integer operands"):
        unit_files.build_instruction(yamlfile.parse(TRICKY["wrap after a wide sum"]))


@pytest.mark.parametrize("block", long_after(1, range(20)))
@pytest.mark.parametrize("make", [random_unit, kernel_unit])
def test_models_agree_on_random_units(make: Callable[[random.Random], str], block: int) -> None:
    """The first of the units that a campaign runs by the thousand (docs/reports/random-units.md)."""
    for seed in range(block * 15, block * 15 + 15):
        text, ins = accepted(make, seed)
        found = differences(ins, 6, seed)
        assert not found, "\n".join([f"seed {seed}", *found, text])


def in_child(task: Callable[[], list[str]]) -> list[str]:
    """Runs a task in a child process, so that a crash of the core is a result too."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            message = "\n".join(task())
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        os.write(write_end, message.encode()[:60000])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        message = stream.read().decode()
    _, status = os.waitpid(child, 0)
    return [
        *([message] if message else []),
        *([f"signal {os.WTERMSIG(status)}"] if os.WIFSIGNALED(status) else []),
    ]


def refused_or_agreed(text: str) -> list[str]:
    try:
        ins = load(text)
        _ = ins.engine
    except (SpecError, CoreError):
        return []
    return [message for seed in range(8) for message in differences(ins, 6, seed)]


@pytest.mark.parametrize("name", TRICKY)
def test_tricky_units_are_refused_or_agree(name: str) -> None:
    found = in_child(lambda: refused_or_agreed(TRICKY[name]))
    assert not found, "\n".join([*found[:4], TRICKY[name]])


@pytest.mark.parametrize(("name", "a", "b", "c", "d"), EXACT_CASES)
def test_exact_cases(name: str, a: tuple[int, ...], b: tuple[int, ...], c: int, d: int) -> None:
    ins = load(TRICKY[name])
    operands = (
        np.array(code, ins.formats[operand].dtype) for operand, code in (("a", a), ("b", b), ("c", c))
    )
    x, y, z = operands
    assert ins.reference_dot(x, y, z) == d
    assert int(ins.dot(x, y, z)) == d
