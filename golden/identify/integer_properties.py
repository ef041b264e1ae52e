"""Properties of integer units: what two bits become, how large sums of products get, whether a saturating
sum clamps once."""

from __future__ import annotations

from golden.identify import special_probes
from golden.identify.facts import Facts, Finding, gives_floats
from golden.number.formats import Format
from golden.program.steps import Additions, Sum


def counts_bits(known: Facts) -> bool:
    """Whether a and b are single bits."""
    return not known.ins.formats["a"].is_float and known.ins.formats["a"].bits == 1


def saturates(known: Facts) -> bool:
    """Whether sums stop at the ends of the range; those that wrap come out the same in any order."""
    return not gives_floats(known) and bool(known.measured(special_probes.integer_overflow)[0] == "saturates")


def find_bits(known: Facts) -> Finding | None:
    """Measures what two bits become before they are counted."""
    if not counts_bits(known):
        return None
    found, shots = known.measured(special_probes.bit_table)
    return Finding(
        _BITS.get(found, f"counts {found}"),
        shots,
        "The results are one column of the operation's truth table.",
    )


_BITS = {(0, 1, 1, 0): "xor", (0, 0, 0, 1): "and", (0, 1, 1, 1): "or", (1, 0, 0, 1): "xnor"}


def declared_bits(known: Facts) -> str | None:
    """Reads the operation on bits from the spec."""
    return str(known.parameters["operation"])


def find_range(known: Facts) -> Finding | None:
    """Measures the least and the largest sum of all products."""
    if gives_floats(known):
        return None
    (low, high), shots = known.measured(special_probes.integer_range)
    reading = (
        "Every product is the least or the largest that the operands can make: all of them add up, "
        "none is cut."
    )
    return Finding(_range_text(low, high), shots, reading)


def _range_text(low: int, high: int) -> str:
    return f"{low:,} to {high:,}"


def declared_range(known: Facts) -> str | None:
    """Reads the range of sums from the formats."""
    k = known.ins.stored_k
    if counts_bits(known):
        return _range_text(0, k)
    edges = [x * y for x in _edges(known.ins.formats["a"]) for y in _edges(known.ins.formats["b"])]
    low, high = (_as_result(known, k * edge) for edge in (min(edges), max(edges)))
    return _range_text(low, high)


def _as_result(known: Facts, total: int) -> int:
    """A sum as the format of results holds it: two products of s16 reach 2^31, one past the end of s32."""
    low, high = _edges(known.ins.formats["d"])
    if saturates(known):
        return min(max(total, low), high)
    return (total - low) % (high - low + 1) + low


def _edges(fmt: Format) -> tuple[int, int]:
    return (-(1 << (fmt.bits - 1)), (1 << (fmt.bits - 1)) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)


def find_clamped(known: Facts) -> Finding | None:
    """Measures whether partial sums past the range are clamped."""
    if not saturates(known):
        return None
    held, shots = known.measured(special_probes.integer_cancelling)
    if held is None:
        return Finding("not observable", (), "No product is negative: no sum comes back into the range.")
    reading = "A sum that clamps before its last product would end one short."
    return Finding("no" if held else "partial sums", shots, reading)


def declared_clamped(known: Facts) -> str | None:
    """Reads from the spec whether partial sums are clamped: only a sum of several steps does."""
    program = known.ins.program
    return "no" if len(program.steps_of(Sum)) == 1 and not program.steps_of(Additions) else "partial sums"
