"""Faults in reading operands and block scales: formats, subnormal numbers and hidden bits, exponents, and
numbers mistaken for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, low_bits
from golden.identify.diagnose.datapath.signals import OperandSignals, ProductSignals, ScaleSignals
from golden.identify.diagnose.mutations.mutation import (
    Apply,
    Mutation,
    change,
    sets,
    signal,
    with_operations,
    without,
)
from golden.identify.diagnose.mutations.products import offsets
from golden.identify.diagnose.mutations.rounding import flushed
from golden.identify.diagnose.mutations.words import OTHERS
from golden.model.instruction import Instruction
from golden.number.formats import Format, Kind, formats, get_format
from golden.program.program import Operation
from golden.program.steps import Flush, HiddenBit, Step

_operands = partial(signal, "operands")
_scales = partial(signal, "scales")

# The program ------------------------------------------------------------------------------------------------


def program(ins: Instruction) -> Iterator[Mutation]:
    """Changes of `flush` and `hidden_bit`, and operands that are read in another format."""
    yield from _flushes(ins)
    yield from _formats(ins)


def _of_unit(ins: Instruction, names: str) -> str:
    """The given operands that the unit has."""
    return "".join(name for name in names if name not in ins.absent)


def _flushes(ins: Instruction) -> Iterator[Mutation]:
    for rule in ("signed", "positive"):
        for slug, every in (("operands", "abc"), ("ab", "ab"), ("c", "c")):
            names, zeros = _of_unit(ins, every), " and zero" if rule == "positive" else ""
            text = f"subnormal{zeros} {', '.join(names)} become {flushed(rule)}"
            apply = _at_the_start(partial(_flushing, names=names, rule=rule))
            yield change(f"{slug}-flushed-{rule}", text, apply)
    yield change("operands-not-flushed", "subnormal operands are not flushed", without(Flush))
    for slug, every in (("", "ab"), ("-abc", "abc"), ("-a", "a"), ("-b", "b"), ("-c", "c")):
        names = _of_unit(ins, every)
        for zeros in ("", "-zeros") if names else ():
            text = f"subnormal {', '.join(names)} get the hidden bit" + ", zeros too" * bool(zeros)
            apply = _at_the_start(partial(_with_hidden_bit, names=names, zeros=bool(zeros)))
            yield change(f"hidden-bit-set{slug}{zeros}", text, apply)


def _at_the_start(rule: Callable[[Instruction, Operation], tuple[Step, ...]]) -> Apply:
    """Puts the steps that a rule returns at the start of every operation."""
    return lambda ins: with_operations(ins, [o.with_steps(rule(ins, o)) for o in ins.program.operations])


def _flushing(ins: Instruction, operation: Operation, names: str, rule: str) -> tuple[Step, ...]:
    """Flushes operands by a rule, instead of the present treatment."""
    of = tuple(name for name in names if name == "c" or operation.k_index)
    if not of or not operation.seed_format.is_float:
        return operation.steps
    kept = (
        replace(s, of=tuple(n for n in s.of if n not in of)) if isinstance(s, Flush) else s
        for s in operation.steps
    )
    return (Flush(of=of, sign=rule), *(s for s in kept if s.of))


def _with_hidden_bit(ins: Instruction, operation: Operation, names: str, zeros: bool) -> tuple[Step, ...]:
    table = {"a": ins.formats["a"], "b": ins.formats["b"], "c": operation.seed_format}
    of = tuple(
        n for n in names if (n == "c" or operation.k_index) and table[n].is_float and table[n].has_subnormals
    )
    first = (HiddenBit(of=of, zeros="set" if zeros else "kept"),) if of else ()
    return (*first, *operation.steps)


def _formats(ins: Instruction) -> Iterator[Mutation]:
    if "tf32" in (ins.formats["a"].name, ins.formats["b"].name):
        text = "the 13 low bits of tf32 operands are used"
        yield change("tf32-low-bits", text, partial(_read_as, fmt=get_format("f32"), instead_of="tf32"))
    # Codes that are read as another format of the same width.
    for other in (get_format(name) for name in formats()):
        for slug, names in (("a", "a"), ("b", "b"), ("operands", "ab")):
            names = _of_unit(ins, names)
            if names and all(_same_words(ins.formats[name], other) for name in names):
                text = f"{' and '.join(names)} read as {other.name}"
                apply = partial(_read_as, fmt=other, names=tuple(names))
                yield change(f"{slug}-read-as-{other.name}", text, apply, 1.2)
    # Special codes that are taken as numbers.
    for name in "abc":
        fmt = ins.formats[name]
        if fmt.is_float and fmt.specials != "none" and name not in ins.absent and fmt.name != "tf32":
            text = f"infinities and NaNs of {name} are taken as numbers"
            apply = partial(_read_as, fmt=_without_nan(fmt), names=(name,))
            yield change(f"{name}-specials-ignored", text, apply, 1.1)
    if ins.scale_block is not None:
        both = ("scale_a", "scale_b")
        yield change(
            "scale-nan-ignored", "a NaN scale is taken as a number", partial(_without_nans, names=both)
        )
        apply = partial(_read_as, fmt=get_format("e4m3"), names=both, instead_of="ue4m3")
        yield change("scale-sign-used", "bit 7 of the scales is a sign", apply)


def _same_words(fmt: Format, other: Format) -> bool:
    same = (fmt.storage, fmt.bits, fmt.is_float) == (other.storage, other.bits, other.is_float)
    return same and fmt != other


def _without_nans(ins: Instruction, names: tuple[str, ...]) -> Instruction | None:
    return _with_formats(ins, {name: _without_nan(ins.formats[name]) for name in names})


def _read_as(
    ins: Instruction, fmt: Format, names: tuple[str, ...] = ("a", "b"), instead_of: str = ""
) -> Instruction | None:
    """Reads these operands in a format; `instead_of`: only operands that have this one."""
    chosen = (name for name in names if not instead_of or ins.formats[name].name == instead_of)
    return _with_formats(ins, dict.fromkeys(chosen, fmt))


def _with_formats(ins: Instruction, table: dict[str, Format]) -> Instruction | None:
    if not table or all(ins.formats[name] == fmt for name, fmt in table.items()):
        return None
    changed = replace(ins, formats=ins.formats | table)
    return changed if changed.pattern == ins.pattern else None  # metadata mean what the format of a says


def _without_nan(fmt: Format) -> Format:
    return fmt if fmt.specials == "none" else replace(fmt, name=f"{fmt.name}_no_nan", specials="none")


# Signals ----------------------------------------------------------------------------------------------------


def signals(ins: Instruction) -> Iterator[Mutation]:
    """The exponents, hidden bits and kinds of float operands, and block scales."""
    if ins.scale_block is not None:
        yield from _block_scales(ins)
    floats = [n for n in "abc" if n not in ins.absent and ins.formats[n].is_float]
    yield from _exponents(ins, floats)
    yield from _kinds(floats)
    yield from _hidden_bits(floats)
    yield from _subnormals(floats)
    for name in floats:
        if ins.formats[name].infinity is not None:
            text = f"{name} counts as infinite where it is a signalling NaN (its upper fraction bit is 0)"
            rule = partial(_take_for, names=name, mask=_is_signalling, kind=Kind.INFINITY)
            yield _operands(f"{name}-signalling-nan-is-infinite", text, rule)


def _exponents(ins: Instruction, floats: list[str]) -> Iterator[Mutation]:
    """Exponents that are off by a constant: by one, or because of another bias."""
    for name in floats:
        bias = ins.formats[name].bias
        for by in offsets(bias):
            sign, word = ("minus", "small") if by < 0 else ("plus", "large")
            text = f"the exponent of {name} is {abs(by)} too {word} (a bias of {bias - by}, not {bias})"
            rule = partial(_move, name=name, by=by)
            yield _operands(f"{name}-exponent-{sign}-{abs(by)}", text, rule, 1.0 + (name == "b") / 100)


def _move(s: OperandSignals, name: str, by: int) -> None:
    s.move(name, np.full(s.numbers[name].exponent.shape, by))


def _subnormals(floats: list[str]) -> Iterator[Mutation]:
    """Exponents of subnormal numbers."""
    half = "its exponent is read as 0 where 1 is right"
    for name in floats:
        text = f"subnormal {name} counts half ({half})"
        yield _operands(f"{name}-subnormal-half", text, partial(_halve, names=name))
        text = f"the exponent of a subnormal {name} wraps around to the largest"
        # the exponent that wraps has one bit more than a field: a carry beyond it wraps once more; where a
        # sum is cut toward minus infinity, only that of a negative number
        wide = sets(overflows=lambda s: "wide" if s.overflows == "above" else s.overflows)
        also = (("rounding", wide),) if name == "c" else ()
        yield _operands(f"{name}-subnormal-huge", text, partial(_wrap_subnormal, name=name), also=also)
    if "a" in floats and "b" in floats:
        for name, other in OTHERS.items():
            text = f"the exponent of {name} gets the correction for subnormal numbers where {other} is one"
            yield _operands(
                f"{name}-subnormal-by-{other}", text, partial(_correct_by, name=name, other=other)
            )
    for slug, word, names in (("subnormal-half", "operand", "abc"), ("ab-subnormal-half", "factor", "ab")):
        if set(names) <= {*floats}:
            yield _operands(
                slug, f"every subnormal {word} counts half ({half})", partial(_halve, names=names)
            )


def _halve(s: OperandSignals, names: str) -> None:
    for name in names:
        s.move(name, -s.subnormal(name).astype(np.int64))


def _correct_by(s: OperandSignals, name: str, other: str) -> None:
    s.move(name, s.subnormal(other).astype(np.int64) - s.subnormal(name).astype(np.int64))


def _wrap_subnormal(s: OperandSignals, name: str) -> None:
    s.move(name, np.where(s.subnormal(name), (2 << s.formats[name].exponent_bits) - 1, 0))


_Mask = Callable[[OperandSignals, str], Array]
_MISTAKEN: dict[str, tuple[str, _Mask]] = {
    "zero": ("is zero", lambda s, n: s.numbers[n].kind == Kind.ZERO),
    "subnormal": ("is subnormal", lambda s, n: s.subnormal(n)),
    "finite": ("is finite", lambda s, n: s.numbers[n].finite),
    "infinite": ("is infinite", lambda s, n: s.numbers[n].kind == Kind.INFINITY),
    "fraction": ("has a fraction that is not zero", lambda s, n: _fraction(s, n) != 0),
    "no-fraction": ("has a fraction of zero", lambda s, n: _fraction(s, n) == 0),
}
"""Operands that may be mistaken for others."""
_KINDS = {Kind.NAN: ("nan", "NaN"), Kind.INFINITY: ("infinite", "infinite"), Kind.ZERO: ("zero", "zero")}


def _fraction(s: OperandSignals, name: str) -> Array:
    return low_bits(s.numbers[name].significand, np.asarray(s.formats[name].fraction_bits))


def _kinds(floats: list[str]) -> Iterator[Mutation]:
    """Numbers mistaken for special values, or for zeros: of one operand, of both factors, of all."""
    for names in _together(floats):
        every = names if len(names) == 1 else f"each of {', '.join(names)}"
        for slug, (where, mask) in _MISTAKEN.items():
            for kind, (word, text) in _KINDS.items():
                if word != slug:
                    said = f"{every} counts as {text} where it {where}"
                    rule = partial(_take_for, names=names, mask=mask, kind=kind)
                    yield _operands(f"{names}-{slug}-is-{word}", said, rule, 1.15)


def _together(floats: list[str]) -> list[str]:
    """Operands that may share a fault."""
    factors = "".join(name for name in floats if name != "c")
    return list(dict.fromkeys((*floats, factors, "".join(floats)))) if floats else []


def _is_signalling(s: OperandSignals, name: str) -> Array:
    upper = _fraction(s, name) >> (s.formats[name].fraction_bits - 1)
    return np.asarray((s.numbers[name].kind == Kind.NAN) & (upper == 0))


def _take_for(s: OperandSignals, names: str, mask: _Mask, kind: Kind) -> None:
    for name in names:
        numbers, there = s.numbers[name], mask(s, name)
        significand = np.where(there & (kind == Kind.ZERO), 0, numbers.significand)
        kinds = np.where(there, int(kind), numbers.kind)
        s.numbers[name] = replace(numbers, kind=kinds, significand=significand)


def _hidden_bits(floats: list[str]) -> Iterator[Mutation]:
    """The hidden bit missing from normal numbers, or given to the wrong ones; and the exponent field 0 read
    as an ordinary exponent."""
    for names in _together(floats):
        listed, codes = ", ".join(names), (("products", partial(_test_codes, names=names)),)
        for zeros in (False, True):
            text = (
                f"the exponent field 0 of {listed} is read like any other: a subnormal number"
                f"{' and a zero get' if zeros else ' gets'} the hidden bit, at 2 to the minus bias"
            )
            rule, also = partial(_read_as_normal, names=names, zeros=zeros), codes if zeros else ()
            yield _operands(f"{names}-subnormal-as-normal{'-zeros' * zeros}", text, rule, 1.0, also=also)
        text = (
            f"a zero or subnormal {' or '.join(names)} gets the hidden bit (0 times infinity is NaN all the "
            "same)"
        )
        yield _operands(
            f"{names}-zero-with-hidden-bit", text, partial(_set_hidden, names=names), 1.05, also=codes
        )
        text = f"normal numbers of {listed} have no hidden bit"
        for word, more in (("missing", ""), ("inverted", ", and subnormal ones get it")):
            rule = partial(_leave_hidden, names=names, inverted=bool(more))
            yield _operands(f"hidden-bit-{word}-{names}", text + more, rule)


def _read_as_normal(s: OperandSignals, names: str, zeros: bool) -> None:
    below = {name: s.subnormal(name) | ((s.numbers[name].kind == Kind.ZERO) & zeros) for name in names}
    _set_hidden(s, names if zeros else "")
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        significand = np.where(below[name], numbers.significand | bit, numbers.significand)
        s.numbers[name] = replace(numbers, significand=significand)
        s.move(name, -below[name].astype(np.int64))


def _set_hidden(s: OperandSignals, names: str) -> None:
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        there = s.subnormal(name) | (numbers.kind == Kind.ZERO)
        significand = np.where(there, numbers.significand | bit, numbers.significand)
        kind = np.where(there, int(Kind.FINITE), numbers.kind)
        s.numbers[name] = replace(numbers, kind=kind, significand=significand)


def _test_codes(s: ProductSignals, names: str) -> None:
    """0 times infinity is detected from the codes, whatever was read."""
    for name, other in (("a", s.b), ("b", s.a)):
        if name in names:
            s.invalid = s.invalid | ((s.coded[name] == Kind.ZERO) & (other.kind == Kind.INFINITY))


def _leave_hidden(s: OperandSignals, names: str, inverted: bool) -> None:
    for name in names:
        numbers, bit = s.numbers[name], 1 << s.formats[name].fraction_bits
        there = numbers.finite | ((numbers.kind == Kind.ZERO) & inverted)
        has = numbers.significand & bit != 0
        significand = np.where(has, numbers.significand - bit, numbers.significand + bit * inverted)
        kind = np.where(there, np.where(significand != 0, int(Kind.FINITE), int(Kind.ZERO)), numbers.kind)
        significand = np.where(there, significand, numbers.significand)
        s.numbers[name] = replace(numbers, kind=kind, significand=significand)


# Block scales -----------------------------------------------------------------------------------------------


def _block_scales(ins: Instruction) -> Iterator[Mutation]:
    """Block scales with a wrong weight, and block scales of another block."""
    for by, word in ((-1, "half"), (1, "twice"), (-2, "a quarter"), (2, "four times")):
        text = f"the scales of a product count {word} of what they should"
        slug = f"scale-exponent-{'minus' if by < 0 else 'plus'}-{abs(by)}"
        yield _scales(slug, text, partial(_move_scales, name="a", by=by), 1.0)
    for name in "ab":
        if ins.formats[f"scale_{name}"].has_subnormals:
            text = f"subnormal scale_{name} counts half (its exponent is read as 0 where 1 is right)"
            rule = partial(_move_scales, name=name, by=-1, subnormal=True)
            yield _scales(f"scale-{name}-subnormal-half", text, rule)
    blocks = ins.operand_shapes(False)["scale_a"][0]
    for slug, which, order in _orders(blocks):
        for names in ("ab", "a", "b"):
            text = f"{' and '.join(f'scale_{name}' for name in names)} of {which}"
            prefix = "scales" if len(names) > 1 else f"scale-{names}"
            yield _scales(f"{prefix}-{slug}", text, partial(_reorder, names=names, order=order))


def _orders(blocks: int) -> Iterator[tuple[str, str, list[int]]]:
    """For each block the block whose scale it gets."""
    every = range(blocks)
    if blocks < 2:
        return
    yield "reversed", "the blocks in reverse order", list(reversed(every))
    yield "late-by-one-block", "the block before", [(i - 1) % blocks for i in every]
    if blocks > 2:
        yield "early-by-one-block", "the block after", [(i + 1) % blocks for i in every]
    for block in every:
        yield f"of-block-{block}-everywhere", f"block {block} for all blocks", [block] * blocks


def _move_scales(s: ScaleSignals, name: str, by: int, subnormal: bool = False) -> None:
    fmt, scales = (s.format_a, s.a) if name == "a" else (s.format_b, s.b)
    there = scales.significand < 1 << fmt.fraction_bits if subnormal else np.ones_like(scales.finite)
    moved = replace(scales, exponent=scales.exponent + by * there, lsb=scales.lsb + by * there)
    setattr(s, name, moved)


def _reorder(s: ScaleSignals, names: str, order: list[int]) -> None:
    for name in names:
        setattr(s, name, getattr(s, name)[order])
