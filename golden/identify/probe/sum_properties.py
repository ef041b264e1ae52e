"""Properties of the sum: bits kept, products of a step, order, exponent floor, bits cut by alignment."""

from __future__ import annotations

from collections.abc import Mapping

from golden.identify.blackbox import sum_order
from golden.identify.diagnose.mutations.words import MODE_NAMES
from golden.identify.probe import probes
from golden.identify.probe.facts import Facts, Finding, gives_floats
from golden.identify.probe.probes import Probe, Shot, Unreachable
from golden.kernels.sum_tree import C, Node, predicted
from golden.model.instruction import Instruction
from golden.program.steps import Align, Normalize, rounding_of

_FUSED = ("fda", "scaled_fda", "gdfs", "fdrda", "gfdrda")
_SUM_FIRST = ("fdrda", "gfdrda", "gps", "exact_dot_add")


def find_f(known: Facts) -> Finding | None:
    """Measures F, the bits kept after alignment."""
    if not gives_floats(known):
        return None
    value, shots = known.kept
    reading = (
        "The last pair is still right, the next bit is lost."
        if value is not None
        else "Even the least product is not lost."
    )
    return Finding(
        _f_text(value),
        shots,
        f"{reading} Each try is X, a small term and -X; a result other than the small term shows a cut.",
    )


def _f_text(value: int | None) -> str:
    return "all" if value is None else str(value)


def declared_f(known: Facts) -> str | None:
    """Reads F, the bits kept after alignment from the spec."""
    if known.algorithm == "exact_dot_add":
        return _f_text(None)
    if "fraction_bits" in known.parameters:
        bits, probe = known.parameters["fraction_bits"], known.probe
        least = max(probe.lowest, probe.d.min_exponent - probe.d.fraction_bits)
        return _f_text(None if probe.top - bits <= least else bits)  # no product is small enough to be lost
    fmt = known.operation.final.format
    return _f_text(fmt.fraction_bits)


def find_products(known: Facts) -> Finding | None:
    """Measures products in one step."""
    if not gives_floats(known):
        return None
    found, shots = known.slices
    size, count = known.ins.k // len(known.probe.slots), len(known.probe.slots)
    first = [shot for shot in shots if "at k = 0 - " in shot.what]
    ends = (first[len(found[0]) - 2 : len(found[0]) - 1] if len(found[0]) > 1 else []) + first[
        len(found[0]) - 1 : len(found[0])
    ]
    reading = (
        "1.5 + ulp comes back where both products are in one step; 1.5 alone where the accumulator "
        "was rounded between them."
    )
    assert sum(map(len, found)) == count
    return Finding(
        _slices_text(known.ins.k, [len(one) * size for one in found]), tuple(ends or first[:1]), reading
    )


def _slices_text(k: int, sizes: list[int]) -> str:
    return f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} ({len(sizes)} steps)"


def declared_products(known: Facts) -> str | None:
    """Reads products in one step from the spec."""
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


def find_order(known: Facts) -> Finding | None:
    """Measures the order of accumulation: the tree that the masks of the dissection show
    (golden/identify/blackbox/sum_order.py), as one of the named orders."""
    if not gives_floats(known):
        return None
    steps = known.slices[0]
    kinds = _named_orders(known.tree, steps, known.kept[0])
    other = "none that masks show" if known.tree is None else known.tree.brackets()
    kind = kinds[0] if kinds else other
    if len(steps[0]) == 1 and "chain" in kinds:
        kind = "chain"
    # Whether products are summed before they meet c shows by products that only together are not lost.
    summed, one = known.measured(probes.summed_first, known.kept[0], len(steps[0]))
    if kind not in _ORDERS and known.rounding[0] == "RU":
        return Finding("not observable", (), "Small terms are not lost where sums are rounded up.")
    text = _order_text(kind, _terms_text(known, len(steps[0])), summed)
    # A few of the masks that the tree was read from, for the page.
    slots = known.probe.slots
    try:
        _, shown = known.measured(sum_order.masks, ((C, slots[0]), slots[:2], (slots[0], slots[-1])))
        reading = (
            "The number of small terms left shows which were added after X and -X had cancelled; all "
            f"{(len(slots) + 1) * len(slots)} pairs of places were tried, three are shown here."
        )
    except Unreachable:
        shown, reading = (), "No term can be lost: even the least product is kept next to the largest."
    reading += (
        " The last try: small products that are lost one by one, but not together, show whether they are "
        "summed before they meet c."
    )
    return Finding(text, (*shown, *one), reading)


def _named_orders(tree: Node | None, steps: list[tuple[int, ...]], kept: int | None) -> list[str]:
    """The names of the orders with this tree; if nothing is cut and there is only one sum, it is exact."""
    if tree is None:
        return ["exact"] if kept is None and len(steps) == 1 else []
    places = {place: index for index, place in enumerate(one for one in tree.terms if one != C)}

    def sizes(one: Node) -> list[list[int]]:
        found: list[list[int]] = predicted(one.relabelled(places)).tolist()
        return found

    return [kind for kind in _ORDERS if sizes(_tree(kind, steps)) == sizes(tree)]


def _terms_text(known: Facts, slots: int) -> str:
    """The terms of one step: "8 products", or the groups of a block-scaled unit, which are exact sums."""
    return f"{slots} exact group sums" if known.probe.scaled_apart else f"{slots} products"


def _order_text(kind: str, terms: str, summed: bool) -> str:
    if kind not in _ORDERS:
        return kind
    if kind == "fused" and summed:
        return f"fused sum of {terms}, then c"
    return _ORDERS[kind].format(terms=terms)


def _tree(kind: str, steps: list[tuple[int, ...]]) -> Node:
    """The tree of a named order whose steps add these products to what was before, c first."""
    total: int | Node = C
    for step in steps:
        terms: list[int | Node] = list(step)
        if kind in ("fused", "exact"):
            total = Node((total, *terms), kind == "exact")
        elif kind == "tree":
            while len(terms) > 1:
                pairs = (terms[i : i + 2] for i in range(0, len(terms), 2))
                terms = [Node(tuple(pair)) if len(pair) > 1 else pair[0] for pair in pairs]
            total = Node((total, terms[0]))
        else:
            for term in terms:
                total = Node((total, term))
    assert isinstance(total, Node)
    return total


def declared_order(known: Facts) -> str | None:
    """Reads the order of accumulation from the spec."""
    kinds = {"sfma": "chain", "gps": "tree", "exact_dot_add": "exact"} | dict.fromkeys(_FUSED, "fused")
    kind, finding = kinds.get(known.algorithm), find_order(known)
    if kind is None or finding is None or not finding.shots:
        return None
    kind = "exact" if kind == "fused" and known.kept[0] is None else kind  # nothing is cut: `declared_f`
    size = int(known.parameters["group"]) if kind == "tree" else len(known.operation.k_index)
    size = size // int(known.parameters["group"]) if known.algorithm == "gdfs" else size
    return _order_text(kind, _terms_text(known, size), known.algorithm in _SUM_FIRST)


def find_floor(known: Facts) -> Finding | None:
    """Measures the exponent floor."""
    if not gives_floats(known) or known.algorithm in ("sfma", "gps"):
        return None
    try:
        last, shots = known.measured(probes.last_weight, known.rounding[0], len(known.slices[0][0]))
    except Unreachable:
        return _unseen_floor(known)
    reading = (
        "The last try but one is the last that makes the least subnormal: its smallest bit is the "
        "last one kept."
    )
    return Finding(_floor_text(known, last), shots, reading)


def _unseen_floor(known: Facts) -> Finding:
    reading = f"The least product is 2^{known.probe.lowest}: no operands show the floor."
    value = known.parameters.get("exponent_floor")
    if value is not None:
        reading += f" The spec says {value}; every value below gives the same results."
    return Finding("not observable", (), reading, value is not None)


def floor_hidden(ins: Instruction, floor: int, kept: int) -> bool:
    """Whether every lower exponent floor gives the same results.

    A c that is not zero lifts the alignment above the floor anyway; without one the floor cuts below 2^(floor
    - kept), where no product has a bit.
    """
    return all(ins.formats[name].min_exponent >= floor for name in "cd") and Probe(ins).lowest >= floor - kept


def _floor_text(known: Facts, last: int | None) -> str:
    if last is None:
        return "none"
    if "exponent_floor" in known.parameters and known.kept[0] is not None:
        return f"{last + known.kept[0]}"
    return f"last bit 2^{last}"


def declared_floor(known: Facts) -> str | None:
    """Reads the exponent floor from the spec."""
    finding = find_floor(known)
    if finding is not None and not finding.shots:
        return None
    if "exponent_floor" in known.parameters:
        floor, kept = known.parameters["exponent_floor"], known.parameters["fraction_bits"]
        return "none" if floor_hidden(known.ins, floor, kept) else str(floor)
    ends = [
        step.floor - bits
        for step in known.steps(Align)
        if step.floor is not None
        for name, bits in step.fraction_bits
        if name == "dot"
    ]
    ends += [
        step.min_exponent - bits
        for step in known.steps(Normalize)
        if step.min_exponent is not None
        for _, bits in step.fraction_bits
    ]
    return f"last bit 2^{max(ends)}" if ends else "none"


def find_cut(known: Facts) -> Finding | None:
    """Measures the rounding of bits cut by alignment."""
    kept = known.kept[0] if gives_floats(known) else None
    if kept is None or not known.steps(Align):
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
        "X comes back where the small negative term is dropped (RZ), less than X where it is rounded down "
        "(RD).",
    )


def _cut_text(found: Mapping[str, str]) -> str:
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    shown = {
        name: mode
        for name, mode in found.items()
        if name != "even against odd k" or mode != found["products"]
    }
    return "; ".join(f"{name} {mode}" for name, mode in shown.items())


def declared_cut(known: Facts) -> str | None:
    """Reads the rounding of bits cut by alignment from the spec."""
    aligned = known.steps(Align)
    modes = {name: rounding_of(step, name) for step in aligned for name in step.of}
    inner = next(step for step in aligned if set(step.of) & {"products", "groups"})
    product = next(rounding_of(inner, name) for name in inner.of if name in ("products", "groups"))
    found = {"c": MODE_NAMES[modes["c"]], "products": MODE_NAMES[product]}
    if "groups" in modes and known.algorithm == "gfdrda":
        found["even against odd k"] = MODE_NAMES[modes["groups"]]
    return _cut_text(found)
