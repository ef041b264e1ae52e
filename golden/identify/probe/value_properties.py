"""Properties of results and special values: rounding, zeros, NaNs, overflow, subnormal numbers, ignored
bits, scales; of integers what two bits become, how large sums get, and whether partial sums are clamped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from golden.catalog import architectures
from golden.explain.numbers import hex_text, power_text
from golden.explain.trace import describe_code
from golden.identify.diagnose.mutations.words import MODE_NAMES
from golden.identify.probe import special_probes
from golden.identify.probe.facts import Facts, Finding, gives_floats
from golden.identify.probe.probes import Unreachable
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.steps import Additions, Flush, Fma, Multiply, Round, SpecialValues, Sum, overflow_of


def find_rounding(known: Facts) -> Finding | None:
    """Measures rounding and fraction bits of results."""
    if not gives_floats(known):
        return None
    mode, shots = known.rounding
    bits, one = known.bits
    reading = (
        "u is one last place of the result; the table of the paper (I and II) gives the mode. The "
        "first try gives the bits."
    )
    return Finding(f"{mode}, {bits} bits", (*one, *shots), reading)


def declared_rounding(known: Facts) -> str | None:
    """Reads rounding and fraction bits of results from the spec."""
    mode = known.parameters.get("rounding", known.last.rounding)
    bits = known.parameters.get("result_fraction_bits", known.ins.formats["d"].fraction_bits)
    return f"{MODE_NAMES[mode]}, {bits} bits"


def find_zero(known: Facts) -> Finding | None:
    """Measures which zero results are negative."""
    if not gives_floats(known):
        return None
    found, shots = known.measured(special_probes.zeros)
    return Finding(_zero_text(found), shots, "A negative zero keeps its sign bit.")


def _zero_text(found: Mapping[str, str]) -> str:
    negative = [what for what, value in found.items() if value == "-0"]
    return "always +0" if not negative else f"-0 from {', '.join(negative)}"


def declared_zero(known: Facts) -> str | None:
    """Reads which zero results are negative from the spec."""
    last = known.last
    if isinstance(last, Round) and last.zero == "positive":
        return _zero_text({})
    found, _ = known.measured(special_probes.zeros)
    if isinstance(last, Round) and last.zero == "signed_underflow":
        return _zero_text({what: "-0" for what in found if what == "underflow"})
    cleared = any(
        step.sign == "positive" and "c" in step.of for step in known.steps(Flush)
    )  # a -0 operand, too
    cleared = cleared or any(step.start == "zero" for step in known.steps_anywhere(Fma))
    earlier = (step for step in known.steps_anywhere(Round) if step is not last)
    cleared = cleared or any(step.zero == "positive" for step in earlier)
    twice = known.steps(Round)[:-1]  # of results that are rounded twice
    tiny = isinstance(last, Fma | Round) and all(step.flush == "none" for step in twice)
    kept = ({"all -0"} if not cleared else set()) | ({"underflow"} if tiny else set())
    if last.rounding == "down":  # IEEE 754-2019, 6.3: 1 - 1 is -0, and what underflows is no zero
        kept = kept - {"underflow"} | {"1 - 1"}
    return _zero_text({what: "-0" for what in found if what in kept})


def assumed_zero(ins: Instruction, finding: Finding) -> bool:
    """Whether the chip's file says that the sign of zeros was not recorded for its own sums (IEEE sums have a
    known sign)."""
    notes = " ".join(architectures.get_architecture(ins.architecture).notes)
    return "sign of a zero result" in notes and "not recorded" in notes and "all -0" not in finding.text


def assumed_nan(ins: Instruction, finding: Finding) -> bool:
    """Whether the instruction's source leaves the NaN word open."""
    return "NaN payload unknown" in ins.evidence.source


def find_nan(known: Facts) -> Finding | None:
    """Measures the word of NaN results."""
    if not gives_floats(known):
        return None
    found, shots = known.measured(special_probes.generated_nans)
    return Finding(
        " / ".join(dict.fromkeys(found.values())),
        shots,
        "The word of a NaN that was made from numbers, or of one in an operand where the formats have no "
        "infinity.",
    )


def declared_nan(known: Facts) -> str | None:
    """Reads the word of NaN results from the spec."""
    word = known.parameters.get("nan")
    if word is None:
        words = [step.nan for step in known.steps(SpecialValues)]
        words += [step.nan for step in known.steps(Fma)]
        words += [step.nan for step in known.steps(Additions)]
        word = next((word for word in words if word is not None), known.ins.formats["d"].nan)
    return None if word is None else f"0x{word:0{known.ins.formats['d'].bits // 4}x}"


def find_payload(known: Facts) -> Finding | None:
    """Measures whether NaN payloads are handed on."""
    if not gives_floats(known):
        return None
    kept, shots = known.measured(special_probes.payload_kept)
    d = known.ins.formats["d"]
    whole = kept and not d.decode(shots[-1].code).payload >> 63  # the last one was signalling
    text = ("handed on as they are" if whole else "handed on, quieted") if kept else "lost"
    return Finding(text, shots, "A payload that is handed on stands in the low bits of the result.")


def declared_payload(known: Facts) -> str | None:
    """Reads whether NaN payloads are handed on from the spec."""
    handed = any(step.nan_order for step in known.steps(Fma)) or any(
        word is None for step in known.steps(SpecialValues) for _, word in step.nans
    )
    quieted = [step.quieted for step in known.steps(Fma)]
    quieted += [step.quieted for step in known.steps(SpecialValues)]
    return ("handed on, quieted" if all(quieted) else "handed on as they are") if handed else "lost"


def find_overflow(known: Facts) -> Finding | None:
    """Measures what overflow gives."""
    if not gives_floats(known):
        found, shots = known.measured(special_probes.integer_overflow)
        return Finding(
            found,
            shots,
            "One past the largest number, and one below the least where products can be negative.",
        )
    try:
        found, shots = known.measured(special_probes.overflow)
    except Unreachable:
        return Finding(
            "not observable",
            (),
            f"Products reach 2^{known.probe.highest} only: too little next to the largest number.",
        )
    return Finding(found, shots, "The largest number and one place more.")


def declared_overflow(known: Facts) -> str | None:
    """Reads what overflow gives from the spec."""
    finding = find_overflow(known)
    if finding is None or not finding.shots:
        return None
    if not gives_floats(known):
        last = known.last
        declared = "wrap" if isinstance(last, Fma) else last.overflow
        return {"wrap": "wraps", "saturate": "saturates"}[str(known.parameters.get("overflow", declared))]
    last = known.last  # IEEE 754-2019, 7.4: roundings that lead away from infinity stop before it
    stops = last.rounding in ("toward_zero", "down") and (isinstance(last, Fma) or last.overflow == "ieee")
    stops = stops and not known.steps(Round)[:-1]  # rounded twice, it is infinite before
    d = known.ins.formats["d"]
    rule = overflow_of(last) if isinstance(last, Round) else "ieee"
    if rule == "nan":
        return hex_text(d, d.largest if last.nan is None else last.nan)
    return describe_code(d, d.largest) if stops or rule == "largest" else "+inf"


def find_inner(known: Facts) -> Finding | None:
    """Measures what overflows inside a step."""
    if not gives_floats(known):
        return find_clamped(known)
    if len(known.probe.slots) < 2:
        return None
    try:
        found, shots = known.measured(special_probes.inner_overflow)
    except Unreachable:
        return Finding("not observable", (), f"Products reach 2^{known.probe.highest} only.")
    held = {
        name: value not in ("+inf", "-inf") and not value.startswith("0x7") and not value.startswith("0xf")
        for name, value in found.items()
    }
    return Finding(
        _inner_text(held),
        shots,
        "What cancels in the same step must not overflow before: a finite result shows that it does not.",
    )


def _inner_text(held: Mapping[str, bool]) -> str:
    if all(held.values()):
        return "no"
    return " and ".join(f"{name}s" for name, fine in held.items() if not fine)


def declared_inner(known: Facts) -> str | None:
    """Reads what overflows inside a step from the spec."""
    finding = find_inner(known)
    if finding is None or not finding.shots:
        return None
    if not gives_floats(known):
        return declared_clamped(known)
    if known.algorithm == "gps" or known.steps(Fma):
        return None
    products, top = known.steps(Multiply), known.ins.formats["d"].max_exponent
    bounded = any(
        step.overflow_exponent is not None or (step.format is not None and step.format.max_exponent <= top)
        for step in products
    )
    chained = any(  # c, a product, the next product, each sum rounded
        step.order == "sequential"
        and step.format.max_exponent <= top
        and "c" in step.of
        and {one.to for one in products} & set(step.of[step.of.index("c") :])
        for step in known.steps(Additions)
    )
    return _inner_text({"sum": not chained, "product": not bounded})


def find_subnormal(name: str) -> Callable[[Facts], Finding | None]:
    """Measures what becomes of subnormal a, c or results."""

    def find(known: Facts) -> Finding | None:
        if not gives_floats(known):
            return None
        found, shots = known.measured(special_probes.subnormals, known.bits[0])
        names = list(found)
        if name not in found:
            return Finding("not observable", (), "No operands make one.") if name == "result" else None
        text = found[name]
        return Finding(
            "kept" if text == "kept" else "flushed to 0",
            (shots[names.index(name)],),
            "The exact value, or zero.",
        )

    return find


def declared_subnormal(name: str) -> Callable[[Facts], str | None]:
    """Reads what becomes of subnormal a, c or results from the spec."""

    def declared(known: Facts) -> str | None:
        finding = find_subnormal(name)(known)
        if finding is None or not finding.shots:
            return None
        flushed = any(name in step.of for step in known.steps_anywhere(Flush))
        ends = (known.last, *known.steps(Round))  # of a result that is rounded twice, both
        flushed = flushed or (name == "result" and any(step.flush != "none" for step in ends))
        return "flushed to 0" if flushed else "kept"

    return declared


def find_ignored(known: Facts) -> Finding | None:
    """Measures what the low bits of tf32 do."""
    if not known.ins.formats["a"].ignored_low:
        return None
    found, shots = known.measured(special_probes.ignored_bits)
    text = "ignored: a NaN becomes Inf" if list(found.values()) == ["1.0", "+inf"] else "used"
    return Finding(text, shots, "Read as f32, the first a is more than 1 and the second is a NaN.")


def find_scales(known: Facts) -> Finding | None:
    """Measures what special scales do."""
    if known.ins.scale_block is None:
        return None
    found, shots = known.measured(special_probes.scales)
    return Finding(
        _scales_text(found),
        shots,
        "The first try: all data are zero, one scale is the NaN. The others: 1 x 1 with that scale.",
    )


def _scales_text(found: Mapping[str, str]) -> str:
    return "; ".join(f"{what} gives {value}" for what, value in found.items())


def declared_scales(known: Facts) -> str | None:
    """Reads what special scales do from the spec."""
    fmt, d = known.ins.formats["scale_a"], known.ins.formats["d"]
    values = {hex_text(fmt, fmt.nan or 0): hex_text(d, known.parameters["nan"])}
    for code in special_probes.scale_codes(fmt):
        values[hex_text(fmt, code)] = power_text(fmt.decode(code))
    return _scales_text(values)


# Integers ---------------------------------------------------------------------------------------------------


def counts_bits(known: Facts) -> bool:
    """Whether a and b are single bits."""
    return not known.ins.formats["a"].is_float and known.ins.formats["a"].bits == 1


def saturates(known: Facts) -> bool:
    """Whether sums stop at the ends of the range; sums that wrap are the same in any order."""
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
