"""What the kinds are for units of integers, which have no subnormal numbers, no infinities and no places to
round: there several kinds of one structure come to the same, and have one name together."""

from __future__ import annotations

from collections.abc import Mapping

from golden.program.signature import Signature

INTEGER_KINDS: dict[str, tuple[str, ...]] = {
    "small_numbers": ("narrow",),
    "all_sizes": ("wide",),
    "least_numbers": (
        *("subnormal", "subnormal_product", "subnormal_result", "tiny_zero_c", "floor_edge", "beside_least"),
    ),
    "ends_of_range": ("special_values", "special_each", "special_pairs"),
    "single_bits": (
        *("tie", "half_ulp", "round_up", "below_power", "alignment_one_term", "between_links"),
        *("beside_tie", "split_tie"),
    ),
    "one_product": ("one_hot", "product_tie"),
    "range_boundaries": ("total_boundary", "cut_bits", "product_bits"),
    "all_ones": ("equal_exponents",),
    "large_beside_small": ("alignment_edge",),
    "cancellation": ("cancelling", "cancel_last_bit", "deep_cancellation", "cancelled_groups"),
}
"""The kinds that have another name where all numbers are integers, by that name; the others keep theirs."""
_NAMES = {kind: name for name, kinds in INTEGER_KINDS.items() for kind in kinds}


def has_integers_alone(takes: Signature) -> bool:
    """Whether all operands and results of a unit are integers, in each of its modes."""
    modes = [takes] if takes.modes is None else [takes.of_mode(code) for code, _ in takes.modes.codes()]
    return not any(fmt.is_float for one in modes for fmt in one.own_formats.values())


def kind_name(takes: Signature, kind: str) -> str:
    """What a kind is called in a report on a unit."""
    return _NAMES.get(kind, kind) if has_integers_alone(takes) else kind


def expanded(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights with each name of integers' kinds replaced by the kinds that it means, which share its
    weight."""
    found: dict[str, float] = {}
    for name, weight in weights.items():
        kinds = INTEGER_KINDS.get(name, (name,))
        for kind in kinds:
            found[kind] = found.get(kind, 0.0) + weight / len(kinds)
    return found
