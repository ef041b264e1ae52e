"""The properties of the comparison pages, and the check of measurements against the spec.

`measure` runs the probes of one unit; what they find must be what the program's parameters say, or the page
cannot be built. The two get the value in different ways: the probe from results, `declared` from the YAML's
parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from golden.errors import DocsError
from golden.identify.probe import captured_witness, sum_properties, value_properties
from golden.identify.probe.facts import Facts, Finding, facts, gives_floats
from golden.identify.probe.probes import Unreachable
from golden.model.instruction import Instruction


class ProbeError(DocsError):
    """A probe found something other than the spec."""


def _nothing_unseen(ins: Instruction) -> str:
    return ""


def _nothing_assumed(ins: Instruction, finding: Finding) -> bool:
    return False


@dataclass(frozen=True)
class Property:
    """One row of the comparison.

    Attributes:
        find: measures; returns None if the property has no meaning for the unit.
        declared: the value in the spec, in the words of the cell; None if the spec says nothing that a probe
            can check.
        against: names of golden/identify/diagnose/mutations (a regular expression) of the units with another
            value of the property; captured results are searched for refutations of them.
        unseen: variations that no recorded operands can reveal; "" if there are none.
        assumed: whether the model's value has no source, so that it stands for any.
        fault: the parameter of a campaign's planted fault that changes the property.
        of_sum: whether its probe reads only the sums that PROBED names.
    """

    slug: str
    title: str
    text: str
    find: Callable[[Facts], Finding | None]
    declared: Callable[[Facts], str | None]
    against: str = ""
    unseen: Callable[[Instruction], str] = _nothing_unseen
    assumed: Callable[[Instruction, Finding], bool] = _nothing_assumed
    fault: str = ""
    of_sum: bool = False

    @property
    def name(self) -> str:
        """The title within a sentence."""
        return self.title[0].lower() + self.title[1:] if self.title[1].islower() else self.title


PROBED = ("fda", "scaled_fda", "gdfs", "fdrda", "gfdrda", "gps", "exact_dot_add", "sfma", "ieee_fma_dot")
"""The algorithms whose sums the probes of order, kept bits and rounding measure correctly."""
_OTHER_SUM = Finding(
    "see its steps",
    (),
    "The probes distinguish fused sums, trees and chains of multiply-adds of dense units. This unit adds, "
    "scales or selects in another way; the page of the instruction shows its steps.",
)


_ONE_PRODUCT = Finding("one product", (), "The probes need two products that meet.")
_UNREACHED = Finding("not observable", (), "The operands have no numbers that would show it.")


def measure(chosen: Property, ins: Instruction) -> Finding | None:
    """Measures a property of the model of an instruction and compares it with the spec.

    Raises:
        ProbeError: the probe found something else; the message names instruction, property and both.
    """
    finding, declared = measured(chosen, facts(ins))
    if finding is not None and declared is not None and finding.text != declared:
        raise ProbeError(
            f"{ins.architecture}:{ins.name}: {chosen.name}: the probe found '{finding.text}', the spec says "
            f"'{declared}'"
        )
    return finding


def measured(chosen: Property, known: Facts) -> tuple[Finding | None, str | None]:
    """The finding of a property's probe, None if it has no meaning for the unit; and the value in the spec,
    None if it says nothing that the probe can check."""
    ins = known.ins
    if chosen.of_sum and gives_floats(known) and ins.stored_k == 1:
        return _ONE_PRODUCT, None
    if chosen.of_sum and gives_floats(known) and not (_summed_plainly(known) and _of_one_rule(ins)):
        return _OTHER_SUM, None
    try:
        finding = chosen.find(known)
        return finding, chosen.declared(known) if finding is not None and _of_one_rule(ins) else None
    except Unreachable:
        return _UNREACHED, None


def _summed_plainly(known: Facts) -> bool:
    """Whether the probes of sums are valid: for dense units, every group with a scale of its own."""
    grouped = known.parameters.get("group") if known.algorithm == "gdfs" else None
    own = grouped is None or grouped == known.ins.scale_block
    return known.algorithm in PROBED and known.ins.pattern is None and own


def _of_one_rule(ins: Instruction) -> bool:
    """Whether all operations compute alike, from a c as wide as the result: then what the first says holds
    for the unit. False if some convert c, or add sums of their own at the end."""
    first, *others = ins.program.operations
    formats = ins.formats
    return formats["c"] == formats["d"] and all(one.algorithm == first.algorithm for one in others)


def _nothing(known: Facts) -> str | None:
    return None


PROPERTIES = (
    Property(
        "fraction-bits",
        "Fraction bits kept (F)",
        "How many bits below the largest term of a step are kept when the others are shifted to it. IEEE "
        "operations keep those of their format; an exact sum keeps all.",
        sum_properties.find_f,
        sum_properties.declared_f,
        r"fraction-bits-(plus|minus)-\d",
        fault="fraction_bits",
        of_sum=True,
    ),
    Property(
        "products",
        "Products in one step",
        "How many products are combined before the accumulator is rounded to the format of the result, and "
        "in how many steps the whole K is done.",
        sum_properties.find_products,
        sum_properties.declared_products,
        r"chain-of-\d+(-interleaved)?",
        of_sum=True,
    ),
    Property(
        "order",
        "Order of accumulation",
        "In which order products and c are added, and where they are rounded.",
        sum_properties.find_order,
        sum_properties.declared_order,
        r"c-after-sum.*|order-.*|k-reversed|chain-halves-swapped|c-left-out-.*|fma-unfused",
        of_sum=True,
    ),
    Property(
        "exponent-floor",
        "Exponent floor",
        "The least exponent that terms are aligned to. It shows only where every term is tiny and c is "
        "zero. Units without a parameter for it are described by the last bit that they keep.",
        sum_properties.find_floor,
        sum_properties.declared_floor,
        r"floor-.*",
        fault="floor",
        of_sum=True,
    ),
    Property(
        "cut-bits",
        "Bits cut by alignment",
        "How the bits below the kept ones are rounded away when a term is shifted.",
        sum_properties.find_cut,
        sum_properties.declared_cut,
        r"align-(down|up|nearest-even|nearest-away)|sticky-added",
        of_sum=True,
    ),
    Property(
        "rounding",
        "Rounding of the result",
        "How the sum is rounded to the result, and how many fraction bits the result has.",
        value_properties.find_rounding,
        value_properties.declared_rounding,
        r"round-(toward-zero|nearest-even|nearest-away|down|up)|result-bits-\d+",
        fault="rounding",
        of_sum=True,
    ),
    Property(
        "zero-sign",
        "Sign of zero",
        "Whether a result can be -0: from zeros that are all negative, from 1 - 1, from a negative total "
        "that underflows.",
        value_properties.find_zero,
        value_properties.declared_zero,
        r"zero-(signed|signed-underflow|positive)",
        assumed=value_properties.assumed_zero,
    ),
    Property(
        "nan-word",
        "NaN word",
        "The bits of a NaN result.",
        value_properties.find_nan,
        value_properties.declared_nan,
        r"nan-word|zero-times-.*|opposite-.*",
        assumed=value_properties.assumed_nan,
    ),
    Property(
        "nan-payload",
        "NaN payload",
        "Whether the payload of a NaN operand reaches the result.",
        value_properties.find_payload,
        value_properties.declared_payload,
        assumed=value_properties.assumed_nan,
    ),
    Property(
        "overflow",
        "Overflow of the result",
        "What a result past the largest number becomes.",
        value_properties.find_overflow,
        value_properties.declared_overflow,
        r"overflow-.*",
    ),
    Property(
        "bit-operation",
        "Operation on bits",
        "What two bits of a and b become before the ones are counted (popc).",
        value_properties.find_bits,
        value_properties.declared_bits,
        r"bits-(and|xor)",
    ),
    Property(
        "integer-range",
        "Range of sums of products",
        "The least and the largest sum of all K products of integers, with c = 0: operands are signed in "
        "two's complement, and no product or sum of products is cut.",
        value_properties.find_range,
        value_properties.declared_range,
        r"sum-width-(16|24)|(a|b|operands)-read-as-.*",
    ),
    Property(
        "inner-overflow",
        "Overflow inside a step",
        "Whether products or partial sums past the largest exponent of the result become infinite although "
        "they cancel; of integers that saturate, whether partial sums are clamped. (Sums that wrap come out "
        "the same in any order.)",
        value_properties.find_inner,
        value_properties.declared_inner,
        r"saturate-per-step",
    ),
    Property(
        "subnormal-operands",
        "Subnormal a and b",
        "Whether subnormal factors count.",
        value_properties.find_subnormal("a"),
        value_properties.declared_subnormal("a"),
        r"(operands|ab)-flushed-.*|hidden-bit-set",
    ),
    Property(
        "subnormal-c",
        "Subnormal c",
        "Whether a subnormal c counts.",
        value_properties.find_subnormal("c"),
        value_properties.declared_subnormal("c"),
        r"c-flushed-.*|hidden-bit-set-c",
    ),
    Property(
        "subnormal-results",
        "Subnormal results",
        "Whether a result in the subnormal range is kept.",
        value_properties.find_subnormal("result"),
        value_properties.declared_subnormal("result"),
        r"result-flushed-.*|subnormal-carry-lost",
    ),
    Property(
        "ignored-bits",
        "Low bits of tf32",
        "What the 13 low bits of a tf32 operand do.",
        value_properties.find_ignored,
        _nothing,
        r"tf32-low-bits",
        captured_witness.unseen_tf32_nan,
    ),
    Property(
        "scale-rules",
        "Block scales",
        "What special scales do: the NaN with data that are all zero, code 0, code 1, and bit 7 of ue4m3.",
        value_properties.find_scales,
        value_properties.declared_scales,
    ),
)


@lru_cache(maxsize=1)
def by_slug() -> dict[str, Property]:
    """The properties by their slugs."""
    return {one.slug: one for one in PROPERTIES}
