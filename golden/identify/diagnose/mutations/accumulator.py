"""Faults of a unit that keeps its accumulator: what `clear` and `load` do to it.

They need more than the operands of one dot product: the previous accumulator, and the operands given with
`clear` and `load` (`context_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from golden.identify.diagnose.mutations.mutation import Mutation, Rewire
from golden.identify.diagnose.mutations.ports import without_c
from golden.model.instruction import Instruction
from golden.number.formats import Format, from_float, to_float
from golden.program.signature import Bits, Operands, Signature
from golden.program.state import before


def context_of(takes: Signature, operands: Operands, results: Bits, held: int = 0) -> Operands:
    """The context of the operands of `takes.stateless`: `clear`, and as `held` the result before. If the unit
    loads c, also `load`, the unit's own operands as given_a and so on, and as `late` the accumulator if c
    were loaded one dot product late.

    Args:
        operands, results: in order of time, as the unit takes and gives them.
        held: the first content of the accumulator.
    """
    clear = operands["clear"]
    before_it = before(results, np.zeros_like(clear), held)
    found = {"clear": clear, "held": before_it}
    if takes.load or takes.alone:
        found |= {f"given_{name}": operands[name] for name in "abc" if name in operands}
    if takes.load:
        loaded = np.roll((operands["load"] != 0) & (clear == 0), 1)
        loaded[:1] = False
        late = np.where(loaded, np.roll(operands["c"], 1), before_it)
        found |= {"load": operands["load"], "late": late}
    return found


def context_of_each(takes: Signature, operands: Operands) -> Operands:
    """The result of `context_of` for single dot products that neither clear nor load: `operands` of the
    stateless unit."""
    nothing = np.zeros(len(operands["a"]), np.uint8)
    found = {"clear": nothing, "held": operands["c"]}
    if takes.load or takes.alone:
        found |= {f"given_{name}": operands[name] for name in "abc" if name in operands}
    return found | ({"load": nothing, "late": operands["c"]} if takes.load else {})


def controls(ins: Instruction, there: Collection[str]) -> list[Mutation]:
    """Faults of the operands `clear` and `load` of a unit that keeps its accumulator; they need the context
    that `there` names."""
    faults: dict[str, tuple[str, Rewire]] = {}
    if "clear" in there:
        faults |= _clears("given_a" in there)
    if "load" in there:
        faults |= _loads(ins.formats["c"])
    return [Mutation(slug, text, operands=rewire) for slug, (text, rewire) in faults.items()]


def kept(ins: Instruction, there: Collection[str]) -> list[Mutation]:
    """Registers of a unit without an accumulator that keep what they had for the vector before."""
    d, c = ins.formats["d"], ins.formats["c"]
    if "answered" not in there:
        return []
    found = []
    if not d.is_float:
        mask = d.dtype.type((1 << d.bits) - 1)
        text = "the result before is added to each: an accumulator that is not cleared"
        added = lambda codes, before: (codes + before) & mask  # noqa: E731
        found.append(Mutation("result-before-added", text, kept=added, in_order=True))
    text = "bits that the result before had stay set: a register that is not cleared"
    found.append(Mutation("result-before-ored", text, kept=np.bitwise_or, in_order=True))
    if "c" not in ins.absent and c == d:
        text = "the result before is taken in place of c: an accumulator that keeps what it has"
        found.append(Mutation("c-is-result-before", text, operands=_with_answer_as_c, in_order=True))
    return found


def _with_answer_as_c(operands: Operands) -> Operands:
    return operands | {"c": operands["answered"]}


def _clears(alone: bool) -> dict[str, tuple[str, Rewire]]:
    """`alone`: whether the products that come with it may be left out."""
    held = _then_products(_c_from("held"))
    found: dict[str, tuple[str, Rewire]] = {
        "clear-ignored": ("clear ignored: the accumulator is never cleared", _where("clear", held)),
        "clear-loses-sum": (
            "clear sets the accumulator to zero and loses the products that come with it",
            _where("clear", _no_products),
        ),
        "always-clear": ("nothing kept: every vector starts at zero", without_c),
    }
    if alone:
        found["clear-adds-products"] = (
            "clear sets the accumulator to zero and adds the products that come with it",
            _where("clear", _with_products),
        )
        found["clear-keeps-held"] = (
            "clear leaves out the products that come with it, and does not clear",
            _where("clear", _kept),
        )
    return found


def _loads(fmt: Format) -> dict[str, tuple[str, Rewire]]:
    """What may become of a `load`; `fmt`: the format of c."""
    adds = "load adds c to the accumulator, which it should replace"
    rules: dict[str, tuple[str, Rule]] = {
        "load-ignored": ("load ignored: c is never taken in", _then_products(_c_from("held"))),
        "load-keeps-held": ("load takes in neither c nor the products that come with it", _kept),
        "load-zero": ("load sets the accumulator to zero, not to c", _c_zero),
        "load-adds": (adds, _c_added(fmt)),
        "load-loses-products": (
            "load takes c in after the products, and loses the products that come with it",
            _no_products,
        ),
        "load-adds-products": ("load takes c in and adds the products that come with it", _with_products),
    }
    # Bits of integers whose sums doubles hold.
    exact = 52
    if not fmt.is_float and fmt.integer_bits <= exact:
        rules["load-adds-saturated"] = (f"{adds}, saturated", _c_added(fmt, True))
    found = {slug: (text, _where("load", rule)) for slug, (text, rule) in rules.items()}
    return found | {
        "load-late-by-one": (
            "load takes c in after the sum: the next dot product is the first that has it",
            _loaded_late,
        ),
        "always-load": ("c taken in with every dot product, whatever load says", _always_loaded),
        "clear-and-load-swapped": ("clear and load in each other's place", _swapped),
    }


Rule = Callable[[Operands, Bits], Operands]
"""A change of dot products: of the ones in a mask."""


def _where(control: str, rule: Rule) -> Rewire:
    """The rule where a control is set, and no clear with a load."""

    def rewire(operands: Operands) -> Operands:
        if control not in operands:
            return operands
        here = operands[control] != 0
        return rule(operands, here if control == "clear" else here & (operands["clear"] == 0))

    return rewire


def _then_products(rule: Rule) -> Rule:
    return lambda operands, here: _with_products(rule(operands, here), here)


def _c_from(name: str) -> Rule:
    return lambda operands, here: operands | {"c": np.where(here, operands[name], operands["c"])}


def _kept(operands: Operands, here: Bits) -> Operands:
    return _no_products(_c_from("held")(operands, here), here)


def _c_zero(operands: Operands, here: Bits) -> Operands:
    return operands | {"c": np.where(here, operands["c"].dtype.type(0), operands["c"])}


def _c_added(fmt: Format, saturated: bool = False) -> Rule:
    """c and what was held as one number: rounded to nearest, or of integers wrapped or saturated."""

    def rule(operands: Operands, here: Bits) -> Operands:
        held, c = operands["held"], operands["c"]
        if fmt.is_float:
            with np.errstate(all="ignore"):
                total = from_float(fmt, to_float(fmt, held) + to_float(fmt, c))
        elif saturated:
            total = from_float(fmt, np.clip(to_float(fmt, held) + to_float(fmt, c), fmt.least, fmt.largest))
        else:
            total = (held + c) & fmt.dtype.type((1 << fmt.integer_bits) - 1)
        return operands | {"c": np.where(here, total, c)}

    return rule


def _no_products(operands: Operands, here: Bits) -> Operands:
    factors = {name: operands[name] for name in "ab" if name in operands}
    zeros = {name: np.where(here[:, None], codes.dtype.type(0), codes) for name, codes in factors.items()}
    return operands | zeros


def _with_products(operands: Operands, here: Bits) -> Operands:
    """The products that come with them, also where they should not count."""
    given = {name: operands[f"given_{name}"] for name in "ab" if f"given_{name}" in operands}
    return operands | {name: np.where(here[:, None], codes, operands[name]) for name, codes in given.items()}


def _loaded_late(operands: Operands) -> Operands:
    if "late" not in operands:
        return operands
    here = operands["clear"] == 0
    return _with_products(_c_from("late")(operands, here), here)


def _always_loaded(operands: Operands) -> Operands:
    return _c_from("given_c")(operands, operands["clear"] == 0) if "load" in operands else operands


def _swapped(operands: Operands) -> Operands:
    if "load" not in operands:
        return operands
    load, clear = operands["load"] != 0, operands["clear"] != 0
    return _c_zero(_c_from("given_c")(operands, clear), load & ~clear)
