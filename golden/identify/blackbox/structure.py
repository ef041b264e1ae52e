"""Changes of what a program adds: terms left out, products that overflow, sums in one's complement, and one
operation as several.
"""

from __future__ import annotations

from collections.abc import Iterator

from golden.identify.blackbox.candidates import Candidate, with_results
from golden.identify.blackbox.step_registers import with_registers
from golden.number.formats import Format, get_format
from golden.number.frozen import replace
from golden.program.compiling import holds
from golden.program.steps import Additions, Multiply, Round, SpecialValues, Step, Sum

Steps = tuple[Step, ...]
_NARROWED, _WHOLE = "narrowed", "whole"
_F32 = get_format("f32")


def uncounted(one: Candidate, name: str, linked: bool = False) -> Candidate | None:
    """A candidate whose sums omit c, or everything except c; its special values and its alignment stay. None
    if that changes nothing or no unit can be it.

    Args:
        linked: in the operations with products that read c or an earlier result in its place.
    """
    seeds = {"c", *(o.to for o in one.operations)} if linked else {"c"}

    def changed(step: Step) -> Step:
        if not isinstance(step, Sum | Additions) or "c" not in step.of or len(step.of) == 1:
            return step
        return with_registers(step, tuple(n for n in step.of if n != "c") if name == "c" else ("c",))

    return one.changed_to(
        o.with_steps(map(changed, o.steps)) if o.seed in seeds and (o.k_index or not linked) else o
        for o in one.operations
    )


def overflowing(one: Candidate) -> Candidate | None:
    """A candidate whose nonzero products are all infinite."""
    factors = (one.takes.formats[name] for name in "ab")
    least = sum(fmt.min_exponent - fmt.fraction_bits for fmt in factors if fmt.is_float)
    return one.with_each_step(
        lambda step: replace(step, overflow_exponent=least) if isinstance(step, Multiply) else step
    )


def converted(one: Candidate) -> Iterator[Candidate]:
    """The same with separate operations that convert c and the result, from and to c's format or f32."""
    inner = dict.fromkeys((one.takes.formats["c"], _F32))
    yield from filter(None, (_converted(one, fmt) for fmt in inner))


def _converted(one: Candidate, inner: Format) -> Candidate | None:
    """A separate operation that converts c before anything reads it, and one that converts the result;
    everything between is in one format."""
    c, d = (one.takes.formats[name] for name in "cd")
    used = {operation.to for operation in one.operations} | {operation.seed for operation in one.operations}
    if not (c.is_float and d.is_float and holds(inner, c)) or used & {_NARROWED, _WHOLE}:
        return None
    *head, last = (replace(o, seed=_NARROWED) if o.seed == "c" else o for o in one.operations)
    alone = replace(last.with_steps(_exact(("c",), inner, "nearest_even")), k_index=(), addends=())
    first = replace(alone, seed="c", out_format=inner, to=_NARROWED)
    end = replace(alone.with_steps(_exact(("c",), d, "nearest_even")), seed=_WHOLE, out_format=d, to="d")
    middle = [*head, replace(last, to=_WHOLE)]
    return one.with_operations((first, *(with_results(o, inner) for o in middle), end))


def _exact(of: tuple[str, ...], fmt: Format, rounding: str, nan: int | None = None) -> Steps:
    """The steps of an exact sum of existing registers, rounded once."""
    last = Round(of=("total",), format=fmt, rounding=rounding, overflow="ieee", zero="signed")
    return (SpecialValues(of=of, nan=nan), Sum(of=of, to="total"), last)
