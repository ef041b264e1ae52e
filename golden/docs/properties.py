"""The properties that the comparison shows: how each is measured, what the spec says of it, and how it reads.

`measure` runs the probes of one unit; what they find must be what the program's parameters say, or the page cannot be
built. The two come to the number by different ways: the probe from results, `declared` from the YAML's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from golden.docs import probes, special_probes
from golden.docs.errors import DocsError
from golden.docs.numbers import hex_text, power_text
from golden.docs.probes import Shot, Unit, Unreachable
from golden.hypotheses import MODE_NAMES
from golden.instruction import Instruction
from golden.kin import signature
from golden.program import Operation, Step

_FUSED = ("fda", "scaled_fda", "gdfs", "fdrda", "gfdrda")
_SUM_FIRST = ("fdrda", "gfdrda", "gps", "exact_dot_add")


class ProbeError(DocsError):
    """A probe found something else than the spec says."""


@dataclass(frozen=True)
class Finding:
    """What a property is for one unit: the text of its cell, the dot products that show it, how to read them."""

    text: str
    shots: tuple[Shot, ...] = ()
    reading: str = ""


@dataclass
class Facts:
    """Measurements of one unit that several properties build on; each is made when it is asked for."""

    ins: Instruction
    unit: Unit = field(init=False)
    _done: dict[tuple[Any, ...], tuple[Any, tuple[Shot, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.unit = Unit(self.ins)

    @property
    def operation(self) -> Operation:
        """The first operation of the unit's program, for what the spec says."""
        return self.ins.program.operations[0]

    @property
    def algorithm(self) -> str:
        """The algorithm of the first operation."""
        return self.operation.algorithm

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the first operation as the YAML gives them."""
        return dict(self.operation.parameters)

    def steps(self, op: str) -> list[Step]:
        """The steps of one kind of the first operation."""
        return [step for step in self.operation.steps if step.op == op]

    @property
    def last(self) -> Step:
        """The step that makes the result."""
        return self.ins.program.operations[-1].steps[-1]

    @property
    def kept(self) -> tuple[int | None, tuple[Shot, ...]]:
        """F with its shots."""
        return self.measured(probes.kept_bits)

    @property
    def bits(self) -> tuple[int, tuple[Shot, ...]]:
        """Fraction bits of results."""
        return self.measured(probes.result_bits)

    @property
    def slices(self) -> tuple[list[tuple[int, ...]], tuple[Shot, ...]]:
        """Which slots are one step."""
        return self.measured(probes.slices, self.bits[0])

    @property
    def rounding(self) -> tuple[str, tuple[Shot, ...]]:
        """The rounding of results."""
        return self.measured(probes.rounding, self.bits[0])

    def measured(self, probe: Callable[..., Any], *arguments: Any) -> tuple[Any, tuple[Shot, ...]]:
        """Returns what a probe finds with the shots that it fires; a probe with the same arguments runs once."""
        key = (probe, *arguments)
        if key not in self._done:
            self.unit.shots = []
            value = probe(self.unit, *arguments)
            self._done[key] = value, tuple(self.unit.shots)
        return self._done[key]


@dataclass(frozen=True)
class Property:
    """One row of the comparison.

    find: measures; returns None where the property means nothing for the unit. declared: what the spec says, in the words of
    the cell; None where it says nothing that a probe could be held against. against: names of golden/hypotheses.py
    (a regular expression) of the units that have the property otherwise; captured results are searched for what refutes them.
    """

    slug: str
    title: str
    text: str
    find: Callable[[Facts], Finding | None]
    declared: Callable[[Facts], str | None]
    against: str = ""


_facts: dict[tuple[object, ...], Facts] = {}


def facts(ins: Instruction) -> Facts:
    """Returns the measurements of an instruction; those of the same program and formats are shared."""
    parameters = str([operation.parameters for operation in ins.program.operations])
    key = (signature(ins), parameters, tuple(ins.formats.items()), ins.scale_block)
    if key not in _facts:
        _facts[key] = Facts(ins)
    return _facts[key]


def measure(chosen: Property, ins: Instruction) -> Finding | None:
    """Measures a property of an instruction and holds it against the spec.

    Raises:
        ProbeError: the probe found something else; the message names instruction, property and both.
    """
    known = facts(ins)
    finding = chosen.find(known)
    declared = None if finding is None else chosen.declared(known)
    if finding is not None and declared is not None and finding.text != declared:
        raise ProbeError(
            f"{ins.architecture}:{ins.name}: {chosen.title.lower()}: the probe found '{finding.text}', the spec says '{declared}'"
        )
    return finding


# Floating point or not ---------------------------------------------------------------------------------------------------


def _float(known: Facts) -> bool:
    return known.ins.formats["d"].is_float


# Accumulation ------------------------------------------------------------------------------------------------------------


def _find_f(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    value, shots = known.kept
    reading = (
        "The last pair is still right, the next bit is lost." if value is not None else "Even the least product is not lost."
    )
    return Finding(
        _f_text(value), shots, f"{reading} Each shot is X, a small term and -X; a result other than the small term shows a cut."
    )


def _f_text(value: int | None) -> str:
    return "all" if value is None else str(value)


def _declared_f(known: Facts) -> str | None:
    if known.algorithm == "exact_dot_add":
        return _f_text(None)
    if "fraction_bits" in known.parameters:
        return _f_text(known.parameters["fraction_bits"])
    fmt = known.operation.steps[-1].format or known.ins.formats["d"]
    return _f_text(fmt.fraction_bits)


def _find_products(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    found, shots = known.slices
    size, count = known.ins.k // len(known.unit.slots), len(known.unit.slots)
    first = [shot for shot in shots if "at k = 0 - " in shot.what]
    ends = (first[len(found[0]) - 2 : len(found[0]) - 1] if len(found[0]) > 1 else []) + first[len(found[0]) - 1 : len(found[0])]
    reading = (
        "1.5 + ulp comes back where both products are in one step; 1.5 alone where the accumulator was rounded between them."
    )
    assert sum(map(len, found)) == count
    return Finding(_slices_text(known.ins.k, [len(one) * size for one in found]), tuple(ends or first[:1]), reading)


def _slices_text(k: int, sizes: list[int]) -> str:
    return f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} ({len(sizes)} steps)"


def _declared_products(known: Facts) -> str | None:
    if known.algorithm == "sfma":
        return _slices_text(known.ins.k, [1] * known.ins.k)
    if "group" in known.parameters and known.algorithm == "gps":
        group = int(known.parameters["group"])
        return _slices_text(known.ins.k, [group] * (known.ins.k // group))
    return _slices_text(known.ins.k, [len(operation.k_index) for operation in known.ins.program.operations])


_ORDERS = {
    "fused": "fused sum of {terms} and c",
    "exact": "exact sum of {terms} and c",
    "tree": "tree of {terms}, then c",
    "chain": "chain of FMA from c",
}


def _find_order(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    counts, shots = known.measured(probes.survivors, known.kept[0])
    steps = known.slices[0]
    kinds = [kind for kind in _ORDERS if _predicted(kind, steps, list(counts)) == counts]
    kind = kinds[0] if kinds else f"none that is known ({list(counts.values())[:4]} terms survive)"
    if len(steps[0]) == 1 and "chain" in kinds:
        kind = "chain"
    summed, one = known.measured(probes.summed_first, known.kept[0], len(steps[0]))
    text = _order_text(kind, _terms_text(known, len(steps[0])), summed)
    count = len(known.unit.slots)
    picked = [shots[0], shots[count], shots[2 * count - 2], *one]
    reading = (
        "How many of the small terms are left tells which were added after X and -X had cancelled; "
        f"{len(shots)} pairs of places were tried, three stand here. The last shot: small products that are lost one by one, "
        "but not together, show whether they are summed before they meet c."
    )
    return Finding(text, tuple(picked), reading)


def _terms_text(known: Facts, slots: int) -> str:
    """What one step adds: "8 products", or the groups of a block-scaled unit, which are exact sums."""
    return f"{slots} exact group sums" if known.unit.scaled_apart else f"{slots} products"


def _order_text(kind: str, terms: str, summed: bool) -> str:
    if kind not in _ORDERS:
        return kind
    if kind == "fused" and summed:
        return f"fused sum of {terms}, then c"
    return _ORDERS[kind].format(terms=terms)


def _predicted(kind: str, steps: list[tuple[int, ...]], pairs: list[tuple[int, int]]) -> dict[tuple[int, int], int | None]:
    """How many small terms survive in an order of additions, for X and -X at these pairs of places."""
    return {(first, second): _survive(kind, steps, first, second) for first, second in pairs}


Partial = tuple[int, int]
"""A partial sum: how often X is in it, and how many small terms."""


def _survive(kind: str, steps: list[tuple[int, ...]], first: int, second: int) -> int:
    def leaf(place: int) -> Partial:
        return {first: (1, 0), second: (-1, 0)}.get(place, (0, 1))

    total = leaf(-1)
    for step in steps:
        terms = [leaf(k) for k in step]
        if kind == "fused":
            total = _meet([total, *terms])
        elif kind == "exact":
            large, small = (sum(term[i] for term in (total, *terms)) for i in (0, 1))
            total = (large, 0 if large else small)
        elif kind == "tree":
            while len(terms) > 1:
                terms = [_meet(terms[i : i + 2]) for i in range(0, len(terms), 2)]
            total = _meet([total, terms[0]])
        else:
            for term in terms:
                total = _meet([total, term])
    return total[1]


def _meet(terms: list[Partial]) -> Partial:
    """A sum in which small terms are lost as soon as any X takes part."""
    return sum(large for large, _ in terms), 0 if any(large for large, _ in terms) else sum(small for _, small in terms)


def _declared_order(known: Facts) -> str | None:
    kinds = {"sfma": "chain", "gps": "tree", "exact_dot_add": "exact"} | dict.fromkeys(_FUSED, "fused")
    kind = kinds.get(known.algorithm)
    if kind is None:
        return None
    size = int(known.parameters["group"]) if kind == "tree" else len(known.operation.k_index)
    size = size // int(known.parameters["group"]) if known.algorithm == "gdfs" else size
    return _order_text(kind, _terms_text(known, size), known.algorithm in _SUM_FIRST)


def _find_floor(known: Facts) -> Finding | None:
    if not _float(known) or known.algorithm in ("sfma", "gps"):
        return None
    try:
        last, shots = known.measured(probes.last_weight, known.rounding[0], len(known.slices[0][0]))
    except Unreachable:
        return Finding("not observable", (), f"The least product is 2^{known.unit.lowest}: no operands show the floor.")
    reading = "The last shot but one is the last that makes the least subnormal: its smallest bit is the last one kept."
    return Finding(_floor_text(known, last), shots, reading)


def _floor_text(known: Facts, last: int | None) -> str:
    if last is None:
        return "none"
    if "exponent_floor" in known.parameters and known.kept[0] is not None:
        return f"{last + known.kept[0]}"
    return f"last bit 2^{last}"


def _declared_floor(known: Facts) -> str | None:
    finding = _find_floor(known)
    if finding is not None and not finding.shots:
        return None
    if "exponent_floor" in known.parameters:
        return str(known.parameters["exponent_floor"])
    ends = [
        step.floor - bits
        for step in known.steps("align")
        if step.floor is not None
        for name, bits in step.fraction_bits
        if name == "dot"
    ]
    ends += [
        step.min_exponent - bits
        for step in known.steps("normalize")
        if step.min_exponent is not None
        for _, bits in step.fraction_bits
    ]
    return f"last bit 2^{max(ends)}" if ends else "none"


def _find_cut(known: Facts) -> Finding | None:
    kept = known.kept[0] if _float(known) else None
    if kept is None or known.algorithm in ("sfma", "gps"):
        return None
    first, *others = known.slices[0][0]
    place = {"c": (first, -1), "products": (first, others[-1] if len(others) < 3 else others[1])}
    if len(others) >= 3:
        place["even against odd k"] = (first, others[0])
    found: dict[str, str] = {}
    shots: list[Shot] = []
    for name, pair in place.items():
        found[name], fired = known.measured(probes.cut, kept, pair)
        shots += fired
    return Finding(
        _cut_text(found),
        tuple(shots),
        "X comes back where the small negative term is dropped (RZ), less than X where it is rounded down (RD).",
    )


def _cut_text(found: Mapping[str, str]) -> str:
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    shown = {name: mode for name, mode in found.items() if name != "even against odd k" or mode != found["products"]}
    return "; ".join(f"{name} {mode}" for name, mode in shown.items())


def _declared_cut(known: Facts) -> str | None:
    aligned = known.steps("align")
    modes = {name: step.rounding for step in aligned for name in step.of}
    product = next(step.rounding for step in aligned if set(step.of) & {"products", "groups"})
    found = {"c": MODE_NAMES[modes["c"]], "products": MODE_NAMES[product]}
    if "groups" in modes and known.algorithm == "gfdrda":
        found["even against odd k"] = MODE_NAMES[modes["groups"]]
    return _cut_text(found)


# Results -----------------------------------------------------------------------------------------------------------------


def _find_rounding(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    mode, shots = known.rounding
    bits, one = known.bits
    reading = (
        "u is one last place of the result; the table of the paper (I and II) gives the mode. The first shot gives the bits."
    )
    return Finding(f"{mode}, {bits} bits", (*one, *shots), reading)


def _declared_rounding(known: Facts) -> str | None:
    mode = known.parameters.get("rounding", known.last.rounding)
    bits = known.parameters.get("result_fraction_bits", known.ins.formats["d"].fraction_bits)
    return f"{MODE_NAMES[mode]}, {bits} bits"


def _find_zero(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    found, shots = known.measured(special_probes.zeros)
    return Finding(_zero_text(found), shots, "A negative zero keeps its sign bit.")


def _zero_text(found: Mapping[str, str]) -> str:
    negative = [what for what, value in found.items() if value == "-0"]
    return "always +0" if not negative else f"-0 from {', '.join(negative)}"


def _declared_zero(known: Facts) -> str | None:
    if known.last.op == "round" and known.last.zero == "positive":
        return _zero_text({})
    found, _ = known.measured(special_probes.zeros)
    return _zero_text({what: "-0" for what in found if what == "all -0" or (what == "underflow" and known.last.op == "fma")})


def _find_nan(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    found, shots = known.measured(special_probes.generated_nans)
    return Finding(
        " / ".join(dict.fromkeys(found.values())),
        shots,
        "The word of a NaN that was made from numbers, or of one in an operand where the formats have no infinity.",
    )


def _declared_nan(known: Facts) -> str | None:
    word = known.parameters.get("nan", known.ins.formats["d"].nan)
    return f"0x{word:0{known.ins.formats['d'].bits // 4}x}"


def _find_payload(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    kept, shots = known.measured(special_probes.payload_kept)
    text = "handed on, quieted" if kept else "lost"
    return Finding(text, shots, "A payload that is handed on stands in the low bits of the result.")


def _declared_payload(known: Facts) -> str | None:
    return "handed on, quieted" if any(step.nan_order for step in known.steps("fma")) else "lost"


def _find_overflow(known: Facts) -> Finding | None:
    try:
        found, shots = known.measured(special_probes.overflow)
    except Unreachable:
        return Finding("not observable", (), f"Products reach 2^{known.unit.highest} only: too little beside the largest number.")
    return Finding(found, shots, "The largest number and one place more.")


def _declared_overflow(known: Facts) -> str | None:
    finding = _find_overflow(known)
    if finding is None or not finding.shots:
        return None
    if not _float(known):
        return {"wrap": "wraps", "saturate": "saturates"}[str(known.parameters.get("overflow"))]
    return "+inf"


def _find_inner(known: Facts) -> Finding | None:
    if not _float(known):
        return None
    try:
        found, shots = known.measured(special_probes.inner_overflow)
    except Unreachable:
        return Finding("not observable", (), f"Products reach 2^{known.unit.highest} only.")
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


def _declared_inner(known: Facts) -> str | None:
    finding = _find_inner(known)
    if finding is None or not finding.shots:
        return None
    if known.algorithm in ("sfma", "gps"):
        return None
    return "products" if known.parameters.get("product_overflow") is not None else "no"


def _find_subnormal(name: str) -> Callable[[Facts], Finding | None]:
    def find(known: Facts) -> Finding | None:
        if not _float(known):
            return None
        found, shots = known.measured(special_probes.subnormals, known.bits[0])
        names = list(found)
        if name not in found:
            return Finding("not observable", (), "No operands make one.") if name == "result" else None
        text = found[name]
        return Finding("kept" if text == "kept" else "flushed to 0", (shots[names.index(name)],), "The exact value, or zero.")

    return find


def _declared_subnormal(name: str) -> Callable[[Facts], str | None]:
    def declared(known: Facts) -> str | None:
        finding = _find_subnormal(name)(known)
        if finding is None or not finding.shots:
            return None
        flushed = any(step.op == "flush" and name in step.of for step in known.operation.steps)
        flushed = flushed or (name == "result" and known.last.flush != "none")
        return "flushed to 0" if flushed else "kept"

    return declared


def _find_ignored(known: Facts) -> Finding | None:
    if not known.ins.formats["a"].ignored_low:
        return None
    found, shots = known.measured(special_probes.ignored_bits)
    text = "ignored: a NaN becomes Inf" if list(found.values()) == ["1.0", "+inf"] else "used"
    return Finding(text, shots, "Read as f32, the first a is more than 1 and the second is a NaN.")


def _find_scales(known: Facts) -> Finding | None:
    if known.ins.scale_block is None:
        return None
    found, shots = known.measured(special_probes.scales)
    return Finding(
        _scales_text(found), shots, "The first shot: all data are zero, one scale is the NaN. The others: 1 x 1 with that scale."
    )


def _scales_text(found: Mapping[str, str]) -> str:
    return "; ".join(f"{what} gives {value}" for what, value in found.items())


def _declared_scales(known: Facts) -> str | None:
    fmt, d = known.ins.formats["scale_a"], known.ins.formats["d"]
    values = {hex_text(fmt, fmt.nan or 0): hex_text(d, known.parameters["nan"])}
    for code in special_probes.scale_codes(fmt):
        values[hex_text(fmt, code)] = power_text(fmt.decode(code))
    return _scales_text(values)


def _nothing(known: Facts) -> str | None:
    return None


PROPERTIES = (
    Property(
        "fraction-bits",
        "Fraction bits kept (F)",
        "How many bits below the largest term of a step are kept when the others are shifted to it. IEEE operations keep those "
        "of their format; an exact sum keeps all.",
        _find_f,
        _declared_f,
        r"fraction-bits-(plus|minus)-\d",
    ),
    Property(
        "products",
        "Products in one step",
        "How many products are combined before the accumulator is rounded to the format of the result, and in how many steps "
        "the whole K is done.",
        _find_products,
        _declared_products,
        r"chain-of-\d+(-interleaved)?",
    ),
    Property(
        "order",
        "Order of accumulation",
        "In which order products and c are added, and where they are rounded.",
        _find_order,
        _declared_order,
        r"c-after-sum.*|order-.*|k-reversed|chain-halves-swapped|c-left-out-.*|fma-unfused",
    ),
    Property(
        "exponent-floor",
        "Exponent floor",
        "The least exponent that terms are aligned to. It shows only where every term is tiny and c is zero. Units without a "
        "parameter for it are described by the last bit that they keep.",
        _find_floor,
        _declared_floor,
        r"floor-.*",
    ),
    Property(
        "cut-bits",
        "Bits cut by alignment",
        "How the bits below the kept ones are rounded away when a term is shifted.",
        _find_cut,
        _declared_cut,
        r"align-(down|up|nearest-even|nearest-away)|sticky-added",
    ),
    Property(
        "rounding",
        "Rounding of the result",
        "How the sum is rounded to the result, and how many fraction bits the result has.",
        _find_rounding,
        _declared_rounding,
        r"round-(toward-zero|nearest-even|nearest-away|down|up)|result-bits-\d+",
    ),
    Property(
        "zero-sign",
        "Sign of zero",
        "Whether a result can be -0: from zeros that are all negative, from 1 - 1, from a negative total that underflows.",
        _find_zero,
        _declared_zero,
        r"zero-(signed|signed-underflow|positive)",
    ),
    Property(
        "nan-word", "NaN word", "The bits of a NaN result.", _find_nan, _declared_nan, r"nan-word|zero-times-.*|opposite-.*"
    ),
    Property(
        "nan-payload", "NaN payload", "Whether the payload of a NaN operand reaches the result.", _find_payload, _declared_payload
    ),
    Property(
        "overflow",
        "Overflow of the result",
        "What a result past the largest number becomes.",
        _find_overflow,
        _declared_overflow,
        r"overflow-.*",
    ),
    Property(
        "inner-overflow",
        "Overflow inside a step",
        "Whether products or partial sums past the largest exponent of the result become infinite although they cancel.",
        _find_inner,
        _declared_inner,
    ),
    Property(
        "subnormal-operands",
        "Subnormal a and b",
        "Whether subnormal factors count.",
        _find_subnormal("a"),
        _declared_subnormal("a"),
        r"(operands|ab)-flushed-.*|hidden-bit-set",
    ),
    Property(
        "subnormal-c",
        "Subnormal c",
        "Whether a subnormal c counts.",
        _find_subnormal("c"),
        _declared_subnormal("c"),
        r"c-flushed-.*|hidden-bit-set-c",
    ),
    Property(
        "subnormal-results",
        "Subnormal results",
        "Whether a result in the subnormal range is kept.",
        _find_subnormal("result"),
        _declared_subnormal("result"),
        r"result-flushed-.*|subnormal-carry-lost",
    ),
    Property(
        "ignored-bits",
        "Low bits of tf32",
        "What the 13 low bits of a tf32 operand do.",
        _find_ignored,
        _nothing,
        r"tf32-low-bits",
    ),
    Property(
        "scale-rules",
        "Block scales",
        "What special scales do: the NaN beside data that are all zero, code 0, code 1, and bit 7 of ue4m3.",
        _find_scales,
        _declared_scales,
    ),
)


@lru_cache(maxsize=1)
def by_slug() -> dict[str, Property]:
    """The properties by their slugs."""
    return {one.slug: one for one in PROPERTIES}
