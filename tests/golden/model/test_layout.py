"""The C side of the steps is what their classes declare."""

from __future__ import annotations

import ctypes
from dataclasses import replace

from golden.model import layout
from golden.program import keys
from golden.program.steps import Align, Fma


def test_the_header_is_what_the_classes_say() -> None:
    assert layout.HEADER.read_text("utf-8") == layout.header_text(), "run python -m golden.model.layout"


def test_values_stand_at_the_index_of_their_register() -> None:
    step = Align(
        of=("products", "c"),
        fraction_bits=(("products", 24), ("c", 26)),
        rounding="down",
        left_out=(("c", "unshifted"),),
        window=(("c", 9),),
        floor=-126,
        group=None,
    )
    low = layout.lower_step(step)
    assert list(low.of[:2]) == [3, 2] and low.of_count == 2
    assert list(low.fraction_bits[:2]) == [24, 26] and list(low.window[:2]) == [layout.NOT_GIVEN, 9]
    assert list(low.left_out[:2]) == [0, 2] and (low.has_floor, low.floor) == (1, -126)
    assert (low.has_shift_limit, low.group, low.to) == (0, 0, 0)
    assert [*low.roundings[:2]] == [keys.ROUNDING.words.index("down")] * 2
    mixed = layout.lower_step(replace(step, rounding=(("products", "up"), ("c", "down"))))
    assert [*mixed.roundings[:2]] == [keys.ROUNDING.words.index(word) for word in ("up", "down")]


def test_members_of_other_kinds_are_zero() -> None:
    low = layout.lower_step(Fma(to="d", rounding="toward_zero", format=None))  # type: ignore[arg-type]
    used = {"op", "of", "of_count", "to", "quieted"}  # NaNs are quieted unless a step says otherwise
    for name, ctype in layout.StepStruct._fields_:
        value = getattr(low, name)
        if name not in used and not isinstance(value, layout.FormatStruct):
            zero = not any(value) if issubclass(ctype, ctypes.Array) else value == 0
            assert zero, name
