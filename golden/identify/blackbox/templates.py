"""Skeletons: programs for each possible tree of the sum, with widths and roundings still to be found.

A skeleton fixes which terms meet in which step, and nothing that a single question could decide. If masks
showed no tree (integers, formats of few binades, units with sticky bits), the orders of all known datapaths
are candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from golden.identify.blackbox.candidates import Candidate, candidate, operation
from golden.identify.blackbox.product_groups import Groups
from golden.kernels.sum_tree import C, Node, terms_of
from golden.number.formats import Format, get_format
from golden.number.frozen import replace
from golden.program.keys import Candidate as Largest
from golden.program.program import Operation
from golden.program.signature import Signature
from golden.program.steps import Additions, Align, Fma, Multiply, Round, Scale, SpecialValues, Step, Sum

START_BITS = 24
"""Fraction bits of alignments in skeletons; fits change them."""
_WIDE_BITS = 32
"""Fraction bits of a second alignment: a sum that was cut once is rarely cut at the same place again."""
_RNE = "nearest_even"
_F64 = get_format("f64")
_MOST_SLICES = 8
"""Slices of a chain, at most."""
Group = tuple[str, int]
Forms = dict[str, list[Step]]
_Forms = Iterator[tuple[str, list[Step]]]
"""Names of one operation, with its steps."""
_Levels = Callable[[int, bool], Forms]


@dataclass(frozen=True)
class _Frame:
    """The properties that all skeletons of one unit share."""

    takes: Signature
    register: Format | None = None

    @property
    def d(self) -> Format:
        """The format of results."""
        return self.takes.formats["d"]

    @property
    def products(self) -> list[Step]:
        """Products, scaled if the unit has scales."""
        scaled: list[Step] = [Scale(of=("products",))] if self.takes.scale_block else []
        return [Multiply(to="products"), *scaled]

    @property
    def either(self) -> list[tuple[str, list[Step]]]:
        """Exact products, and rounded ones if rounding is a separate step."""
        exact = [("products", self.products)]
        if not self.d.is_float or self.takes.scale_block:
            return exact
        return [*exact, ("rounded products", [Multiply(to="products", format=self.inner, rounding=_RNE)])]

    def specials(self, *of: str) -> list[Step]:
        """Infinities and NaNs end the operation."""
        scales = ("scales",) if self.takes.scale_block else ()
        return [SpecialValues(of=(*of, *scales))] if has_special(self.takes) else []

    def last(self, of: str = "total") -> Round:
        """The rounding of the result."""
        kept = "saturate" if self.of_floats else "wrap"  # floats have no exact low bits to wrap
        overflow = "infinity" if self.d.is_float else kept
        return Round(of=(of,), format=self.d, rounding=_RNE, overflow=overflow, zero="positive")

    def adds(self, of: tuple[str, ...], order: str, to: str = "d", group: Group | None = None) -> Additions:
        """Rounded additions to d's format, or to an earlier register in f32."""
        fmt = self.d if to == "d" else self.inner
        overflow = "ieee" if fmt.is_float else "saturate"
        return Additions(order=order, of=of, to=to, group=group, format=fmt, rounding=_RNE, overflow=overflow)

    @property
    def inner(self) -> Format:
        """The format of intermediate results: f32, unless d is a wider float, or all are integers; or the one
        that answers show."""
        if self.register is not None:
            return self.register
        wider = self.d.fraction_bits > 23 if self.d.is_float else not self.of_floats
        return self.d if wider else get_format("f32")

    @property
    def of_floats(self) -> bool:
        """Whether an operand is a float."""
        return any(self.takes.formats[name].is_float for name in "abc")


_GUARD_BITS = range(1, 9)
"""Fraction bits that a register between additions has more than d: a guard bit, up to a byte of them."""


def guarded_formats(takes: Signature) -> list[Format]:
    """Formats of registers that keep more of an intermediate result than d: guard bits, with d's exponents or
    with one exponent bit more at the upper end, so that nothing overflows on the way."""
    d = takes.formats["d"]
    most = 52  # fraction bits of a format of one's own, as of f64
    if not d.is_float or d.specials != "ieee" or d.exponent_bits + d.fraction_bits < 15:
        return []
    return [
        replace(
            d,
            name=f"e{exponent_bits}m{bits}",
            storage=64,
            exponent_bits=exponent_bits,
            fraction_bits=bits,
        )
        for exponent_bits in (d.exponent_bits, d.exponent_bits + 1)
        for bits in (d.fraction_bits + guard for guard in _GUARD_BITS)
        if bits <= most and exponent_bits <= _F64.exponent_bits
    ]


def has_special(takes: Signature) -> bool:
    """Whether an operand can be an infinity or a NaN: some formats have none, and integers have none."""
    operands = (fmt for name, fmt in takes.formats.items() if name != "d")
    return any(fmt.specials != "none" for fmt in operands)


def align(of: Sequence[str], group: Group | None = None, bits: int = START_BITS) -> Align:
    """An alignment that cuts, with a width to begin with."""
    widths = tuple((name, bits) for name in of)
    return Align(of=tuple(of), group=group, fraction_bits=widths, rounding="toward_zero")


# One operation ----------------------------------------------------------------------------------------------


def _flat(f: _Frame, extra: tuple[str, ...] = ("c",)) -> _Forms:
    """All products and c (or earlier results) in one sum: aligned, or exact; c after the products, or with
    them."""
    of = ("products", *extra)
    head = [*f.products, *f.specials(*of)]
    forms = {"one aligned sum": align(of)}
    if f.d.is_float:
        for name, widest in _leading(f, "products", extra):
            forms[f"one aligned sum, {name}"] = replace(align(of), maximum=widest)
    for name, aligned in forms.items():
        yield from _once_and_twice(f, name, [*head, aligned, Sum(of=of, to="total")])
    yield "one exact sum", [*head, Sum(of=of, to="total"), f.last()]
    if f.d.is_float and f.d.fraction_bits < _F64.fraction_bits:  # what a function of doubles gives
        double = replace(f.last(), to="partial", format=_F64)
        yield "one exact sum, rounded in f64", [*head, Sum(of=of, to="total"), double, f.last("partial")]
    if extra == ("c",):
        yield from _late(f)


def _once_and_twice(f: _Frame, name: str, total: list[Step]) -> _Forms:
    """A sum that is rounded once, and one that is first rounded to the inner format."""
    yield name, [*total, f.last()]
    if f.inner != f.d:
        first = replace(f.last(), to="partial", format=f.inner)
        yield f"{name}, rounded to {f.inner.name} first", [*total, first, f.last("partial")]


def _leading(f: _Frame, products: str, others: tuple[str, ...]) -> Iterator[tuple[str, tuple[Largest, ...]]]:
    """Exponents that alignments take from leading bits: of the products, and of the sum, up to two places up
    for its carries; for subnormal numbers also the least exponent."""
    carried = Largest((products,), False, 0, None)
    yield "by leading bits", (carried, Largest((products, *others), True, -2, None))
    least = f.takes.formats["c"].min_exponent if f.takes.formats["c"].is_float else None
    found = (carried, Largest(others, True, -2, least))
    yield "c by its leading bit", found
    if products == "products":
        yield "both by leading bits", (*found, Largest((products,), True, -2, None))


def _late(f: _Frame) -> _Forms:
    """The products are summed first; then c is added. Terms aligned to the leading bit of c are cut in two's
    complement; products are cut likewise before, or by magnitude."""
    head = [*f.products, *f.specials("products", "c")]
    exact: list[Step] = [Sum(of=("products",), to="dot")]
    aligned: list[Step] = [align(("products",)), *exact]
    # Products cut down, and c by its leading bit.
    if f.d.is_float:
        alike: list[Step] = [*head, replace(align(("products",)), rounding="down"), *exact]
        by_leading: list[Step] = [_by_its_leading_bit(f, "dot"), Sum(of=("dot", "c"), to="total")]
        said = "dot product aligned down, then c aligned by its leading bit"
        yield from _once_and_twice(f, said, [*alike, *by_leading])
    # Products cut by magnitude or not at all, then c in each of the ways.
    for name, dot in (("aligned", aligned), ("exact", exact)):
        meet: list[Step] = [align(("dot", "c"), bits=_WIDE_BITS), Sum(of=("dot", "c"), to="total")]
        yield f"{name} dot product, then c aligned", [*head, *dot, *meet, f.last()]
        if f.d.is_float:
            meet = [_by_its_leading_bit(f, "dot"), *meet[1:]]
            said = f"{name} dot product, then c aligned by its leading bit"
            yield from _once_and_twice(f, said, [*head, *dot, *meet])
        rounded = replace(f.last("dot"), to="partial")
        if f.d.is_float:
            yield (
                f"{name} dot product, rounded, plus c",
                [*f.products, *f.specials("products"), *dot, rounded, f.adds(("partial", "c"), "sequential")],
            )


def _by_its_leading_bit(f: _Frame, name: str) -> Align:
    """A sum and c, aligned to the exponent of the sum and the leading bit of c."""
    (_, widest), *_ = [one for one in _leading(f, name, ("c",)) if one[0].startswith("c ")]
    return replace(align((name, "c")), maximum=widest, rounding="down")


def _chains(f: _Frame) -> _Forms:
    """Multiply-adds of IEEE 754, k ascending."""
    yield "chain of fused multiply-adds from c", [Fma(to="d", format=f.d, rounding=_RNE, start="c")]
    for start in ("zero", "product"):
        yield (
            f"chain of fused multiply-adds from {start}, plus c",
            [Fma(to="dot", format=f.inner, rounding=_RNE, start=start), f.adds(("c", "dot"), "sequential")],
        )
    for name, products in f.either:
        yield f"{name} added to c one after the other", [*products, f.adds(("c", "products"), "sequential")]
        for order in ("sequential", "tree"):
            yield (
                f"rounded additions of the {name} ({order}), plus c",
                [*products, f.adds(("products",), order, "dot"), f.adds(("c", "dot"), "sequential")],
            )
            yield (
                f"rounded additions of the {name} and c ({order})",
                [*products, f.adds(("products", "c"), order)],
            )


def _descending(f: _Frame) -> _Forms:
    """Chains that add one product after the other, starting from the last one."""
    yield from ((f"{name}, the last one first", steps) for name, steps in _chains(f) if "tree" not in name)


def _grouped(f: _Frame, group: Group) -> _Forms:
    """Sums of groups, then the sum of the groups and c."""
    # Each way to add a group with each way to add the groups and c. Steps that the loader would refuse
    # together are left out by the caller.
    one, many = ("products",), ("groups",)
    head, bad = list(f.products), f.specials("products", "c")
    inner: dict[str, list[Step]] = {
        "aligned": [*head, *bad, align(one, group), Sum(of=one, to="groups", group=group)],
        "exact": [*head, *bad, Sum(of=one, to="groups", group=group)],
        **{
            f"{order} ({name})": [*products, f.adds(one, order, "groups", group)]
            for name, products in f.either
            for order in ("tree", "sequential")
        },
        "fma": [Fma(to="groups", format=f.inner, rounding=_RNE, start="product", group=group)],
        "fma from zero": [Fma(to="groups", format=f.inner, rounding=_RNE, start="zero", group=group)],
    }
    if f.takes.scale_block and group[0] == "contiguous" and f.takes.scale_block % group[1] == 0:
        scaled = [Multiply(to="products"), *bad, Sum(of=one, to="groups", group=group, exponent=0)]
        inner["exact, then scaled"] = [*scaled, Scale(of=many)]
    outer: dict[str, list[Step]] = {
        "aligned with c": [align(("groups", "c")), Sum(of=("groups", "c"), to="total"), f.last()],
        "aligned, then c": [
            align(many),
            Sum(of=many, to="dot"),
            align(("dot", "c"), bits=_WIDE_BITS),
            Sum(of=("dot", "c"), to="total"),
            f.last(),
        ],
        "added to c one by one": [f.adds(("c", "groups"), "sequential")],
        "added one by one, then c": [f.adds(("groups", "c"), "sequential")],
        "added as a tree, then c": [f.adds(many, "tree", "dot"), f.adds(("c", "dot"), "sequential")],
        "added exactly with c": [Sum(of=("groups", "c"), to="total"), f.last()],
    }
    if f.d.is_float:
        meet: list[Step] = [_by_its_leading_bit(f, "groups"), Sum(of=("groups", "c"), to="total")]
        outer |= dict(_once_and_twice(f, "aligned with c by its leading bit", meet))
    for first, steps in inner.items():
        for second, rest in outer.items():
            yield f"groups ({group[0]} {group[1]}) {first}, {second}", [*steps, *rest]
    if f.d.is_float:  # products cut by magnitude, and sums, which are in two's complement, down
        down = [replace(s, rounding="down") if isinstance(s, Align) else s for s in outer["aligned, then c"]]
        yield f"groups ({group[0]} {group[1]}) aligned, groups down, then c", [*inner["aligned"], *down]


def _narrowed(f: _Frame, steps: list[Step]) -> list[Step]:
    """The same with the last addition in the inner format and one rounding to d after it."""
    last = steps[-1]
    assert isinstance(last, Additions | Fma)
    inner = replace(last, to="total", format=f.inner)
    if isinstance(inner, Additions) and f.inner.is_float:
        inner = replace(inner, overflow="ieee")
    return [*steps[:-1], inner, *f.specials("total"), replace(f.last(), zero="signed")]


# Operations one after the other -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Link:
    """The terms that one level of a chain adds to the previous result."""

    products: tuple[int, ...]
    c: bool


def _links(tree: Node) -> list[_Link] | None:
    """The levels of a tree that is a chain, the first one first; None for other trees."""
    inner = [one for one in tree.children if isinstance(one, Node)]
    if len(inner) > 1:
        return None
    before = _links(inner[0]) if inner else []
    own = [one for one in tree.children if isinstance(one, int)]
    link = _Link(tuple(one for one in own if one != C), C in own)
    return None if before is None else [*before, link]


def _chain(f: _Frame, links: list[_Link], form: str, inner: Format, levels: _Levels) -> Candidate | None:
    """One operation for each level, each from the previous result; `inner`: the format of earlier results,
    `form`: the steps (`_levels`)."""
    operations: list[Operation] = []
    for index, link in enumerate(links):
        last = index == len(links) - 1
        before = operations[-1].to if operations else None
        out, to = (f.d, "d") if last else (inner, f"r{index}")
        # A level without products adds c to the result before it.
        if not link.products:
            if not link.c or before is None:
                return None
            add: list[Step] = [replace(f.adds(("c", "addends"), "sequential"), format=out)]
            operations.append(operation(f.takes, add, (), "c", (before,), out, to))
            continue
        # c meets the earlier result as an addend; without c that result is what the level starts from.
        late = link.c and before is not None
        addends = (before,) if late and before is not None else ()
        bodies = levels(len(link.products), late)
        if form not in bodies:
            return None
        steps = [*bodies[form][:-1], _to(bodies[form][-1], out)]
        seed = "c" if link.c else before or "zero"
        operations.append(operation(f.takes, steps, link.products, seed, addends, out, to))
    return candidate(f.takes, operations, f"chain of {len(links)} operations: {form}")


def _to(step: Step, out: Format) -> Step:
    """The last step of an operation whose result has another format."""
    assert isinstance(step, Additions | Fma | Round)
    return replace(step, format=out)


def _levels(f: _Frame) -> _Levels:
    """Forms of a level, by the number of its products and by whether c meets the previous result in it. Each
    is made once, and all chains are composed of them."""

    @cache
    def made(n: int, late: bool) -> Forms:
        return dict(_flat(f, ("c", "addends"))) if late else _bodies(f, n)

    return made


def _bodies(f: _Frame, n: int) -> Forms:
    """Forms of a level of n products, by name, with all terms fused before one rounding."""
    found = dict(_flat(f))
    for group in _divisions(n):
        found |= {name: steps for name, steps in _grouped(f, group) if "lign" in name}
    return {name: steps for name, steps in found.items() if isinstance(steps[-1], Round)}


_EACH_ROUNDED = "exact, of rounded products"


def _any_tree(f: _Frame, tree: Node, kind: str) -> Candidate | None:
    """One operation for every node, with earlier results as addends."""
    operations: list[Operation] = []

    def enter(node: Node, last: bool) -> str | None:
        # The nodes below come first: their results are addends of this one.
        inner = [enter(one, last=False) for one in node.children if isinstance(one, Node)]
        products = tuple(one for one in node.children if isinstance(one, int) and one != C)
        names = [name for name in inner if name is not None]
        if len(names) != len(inner) or len(names) > 4:
            return None
        with_c = C in node.children
        terms = "groups" if kind == _EACH_ROUNDED else "products"
        # What this operation adds: c, its own products, and the results of the nodes below.
        of = (*(("c",) if with_c else ()), *((terms,) if products else ()), *(("addends",) if names else ()))
        # Only the last result has d's format.
        out = f.d if last else f.inner
        to = "d" if last else f"r{len(operations)}"
        steps: list[Step] = [*(f.products if products else [])]
        # The arithmetic of the node: rounded additions, or one sum, exact or aligned, with one rounding.
        if kind == "rounded":
            steps.append(replace(f.adds(of, "sequential"), format=out))
        else:
            if products and kind == _EACH_ROUNDED:
                steps.append(replace(f.last("products"), to="groups", format=f.inner))
            exact = node.exact or kind in ("exact", _EACH_ROUNDED)
            middle: list[Step] = [] if exact else [align(of)]
            total = replace(f.last(), format=out)
            steps += [*f.specials(*of), *middle, Sum(of=of, to="total"), total]
        seed = "c" if with_c else "zero"
        operations.append(operation(f.takes, steps, products, seed, tuple(names), out, to))
        return to

    return (
        candidate(f.takes, operations, f"an operation for each node, {kind}") if enter(tree, True) else None
    )


# All of them ------------------------------------------------------------------------------------------------


def skeletons(takes: Signature, tree: Node | None, register: Format | None = None) -> list[Candidate]:
    """The candidates for a unit, starting with the ones that the tree suggests; each can be run. `register`:
    those that round intermediate results to this format."""
    f = _Frame(takes, register)
    if not f.d.is_float:
        return list(filter(None, _of_integers(f)))
    made = filter(None, _of_tree(f, tree) if tree is not None else (*_of_none(f), *_unseen(f)))
    # An alignment cuts bits, too: what aligns needs no register of its own.
    return [
        one for one in made if register is None or (_rounds_to(one, register) and not one.steps_of(Align))
    ]


def _rounds_to(one: Candidate, register: Format) -> bool:
    return any(getattr(step, "format", None) == register for step in one.steps)


def of_both_signs(takes: Signature, negative: Sequence[int]) -> list[Candidate]:
    """Candidates for a unit that subtracts these products and adds the others: c and those that it adds come
    first, because the language has one sign for all products of an operation."""
    f, positive = _Frame(takes), [k for k in range(takes.stored_k) if k not in negative]
    if not negative or not positive:
        return []
    # One product is exact in f64; f32 and d are for a unit that rounds what it adds.
    formats = (_F64, f.inner, f.d) if f.d.is_float else (f.inner,)
    of, found = ("products", "c"), list[Candidate | None]()
    subtracted = [replace(s, negate="product") if isinstance(s, Multiply) else s for s in f.products]
    for inner in dict.fromkeys(formats):
        total = replace(f.last(), format=inner, zero="signed" if inner.is_float else "positive")
        for cut, middle in {"exact": [], "aligned": [align(of)] if f.d.is_float else []}.items():
            one_sum: list[Step] = [*f.specials(*of), *middle, Sum(of=of, to="total")]
            first = operation(takes, [*f.products, *one_sum, total], positive, "c", (), inner, "r0")
            last = operation(takes, [*subtracted, *one_sum, f.last()], negative, "r0", (), f.d, "d")
            found.append(candidate(takes, [first, last], f"added products in {inner.name}, others {cut}"))
    return list(filter(None, found))


def grouped(takes: Signature, groups: Groups) -> list[Candidate]:
    """Candidates that sum the products of these groups first, with and without an exponent for a sum that
    cancels, cut as masks showed."""
    f, everything = _Frame(takes), tuple(range(takes.stored_k))
    found: list[Candidate | None] = []
    for group in _divisions(takes.stored_k):
        if sorted(_members(takes.stored_k, group)) == sorted(groups.members):
            found += _both(f, _grouped(f, group), everything)
            for met in (("dot",), ("groups", "dot")):
                found += _both(f, _without_trace(_grouped(f, group), met), everything)

    def measured(step: Step) -> Step:
        if groups.cuts is None or not isinstance(step, Align) or "dot" in step.of:
            return step
        cut = groups.cuts[step.group is None]
        return replace(step, fraction_bits=tuple((name, cut.bits) for name in step.of), rounding=cut.rounding)

    return [one.with_each_step(measured) or one for one in found if one is not None]


def _one(f: _Frame, name: str, steps: list[Step], order: Sequence[int] | None = None) -> Candidate | None:
    k = tuple(range(f.takes.stored_k)) if order is None else tuple(order)
    return candidate(f.takes, [operation(f.takes, steps, k, "c", (), f.d, "d")], name)


def _both(f: _Frame, forms: _Forms, order: Sequence[int]) -> Iterator[Candidate | None]:
    """Each form and, if d is narrower than the inner format, each with one more rounding at the end."""
    for name, steps in forms:
        yield _one(f, name, steps, order)
        if isinstance(steps[-1], Additions | Fma) and f.inner != f.d:
            yield _one(f, f"{name}, then rounded to {f.d.name}", _narrowed(f, steps), order)


def _of_tree(f: _Frame, tree: Node) -> Iterator[Candidate | None]:
    everything = tuple(range(f.takes.stored_k))
    links = _links(tree)
    order = everything if links is None else tuple(k for link in links for k in link.products)
    binary = links is not None and all(len(one.products) + one.c <= 1 for one in links[1:])
    # One sum, or the products first and then c.
    if (links is not None and len(links) == 1) or _products_first(tree):
        yield from _both(f, _flat(f), everything)
        yield from _dot_then_c(f)
    if _products_first(tree):
        yield from _both(f, _without_trace(_late_and_grouped(f), ("dot",)), everything)
        yield from _both(f, _in_fixed_point(_late_and_grouped(f), ("dot",)), everything)
    # Every node adds two terms: rounded additions are the usual reason.
    if tree.binary:
        yield from rounded_trees(f.takes, tree)
    if binary or f.takes.stored_k <= 2 or tree.binary:
        yield from _both(f, _chains(f), order)
    met = ("groups", "dot") if _products_first(tree) else ("groups",)
    # Groups that form nodes of the tree.
    for group in _groups(f, tree):
        yield from _both(f, _grouped(f, group), everything)
        yield from _both(f, _without_trace(_grouped(f, group), met), everything)
    # A chain of operations, level by level.
    if links is not None and len(links) > 1:
        levels = _levels(f)
        for inner in dict.fromkeys((f.d, f.inner)):
            for form in levels(max(len(link.products) for link in links), False):
                yield _chain(f, links, form, inner, levels)
    yield from (_any_tree(f, tree, kind) for kind in ("rounded", "aligned", "exact", _EACH_ROUNDED))
    # Parallel sums, which masks also show for results that are passed on.
    nodes = _parallel(tree)
    if nodes:
        yield from _slices(f, [node.terms for node in nodes], _levels(f))
    if links is not None and len(links) == 1:
        yield from _of_none(f)


def _parallel(tree: Node) -> list[Node]:
    """The nodes of a tree that consists only of two or more parallel sums of products, and c. If many y
    together are not lost next to M, masks show this for results that are passed on."""
    inner = [one for one in tree.children if isinstance(one, Node)]
    if len(inner) == 1 and tree.children == (C, inner[0]):
        return _parallel(inner[0])
    flat = all(isinstance(one, int) for node in inner for one in node.children)
    alone = {one for one in tree.children if isinstance(one, int)} <= {C}
    return inner if alone and flat and len(inner) > 1 else []


def _slices(f: _Frame, members: Sequence[Sequence[int]], levels: _Levels) -> Iterator[Candidate | None]:
    """One slice of products after the other, each added to the result before it; c in the first one, or in
    the end."""
    if len(members) > _MOST_SLICES:
        return
    plain = [name for name, _ in _flat(f) if name.startswith("one aligned sum") or name == "one exact sum"]
    links = [_Link(tuple(one), index == 0) for index, one in enumerate(members)]
    after = [*(_Link(tuple(one), False) for one in members), _Link((), True)]
    for chain, inner in product((links, after), dict.fromkeys((f.d, f.inner))):
        yield from (_chain(f, chain, form, inner, levels) for form in plain)


def _products_first(tree: Node) -> bool:
    """Whether c meets the sum of all products."""
    return len(tree.children) == 2 and C in tree.children


def _late_and_grouped(f: _Frame) -> _Forms:
    """The products are summed exactly, by groups or at once; then c is added."""
    yield from _late(f)
    for group in _divisions(f.takes.stored_k):
        for name, steps in _grouped(f, group):
            if name.endswith("aligned, then c") and any(isinstance(s, Sum) and s.group for s in steps):
                yield name, steps


def _without_trace(forms: _Forms, met: tuple[str, ...]) -> _Forms:
    """Candidates in which exact sums are aligned, and a sum that cancels leaves nothing: masks showed that
    terms next to it are not lost, as they would be next to its former exponent."""
    return _aligned_sums(forms, "nothing left of what cancels", lambda one: one.to in met, cancelled="zero")


def _in_fixed_point(forms: _Forms, met: tuple[str, ...] = ()) -> _Forms:
    """Candidates in which exact sums of products, or the sums `met`, are aligned as fixed-point numbers:
    whatever they hold, other terms see the exponent of their point. Masks then show no order, if a small c or
    product is lost without a large term, or that c meets all products."""
    plain = ((name, steps) for name, steps in forms if "leading" not in name)
    return _aligned_sums(
        plain, "in fixed point", lambda one: one.to in met if met else "products" in one.of, exponent=0
    )


def _aligned_sums(forms: _Forms, said: str, chosen: Callable[[Sum], bool], **keys: Any) -> _Forms:
    """The forms in which some of these exact sums are aligned afterwards, with other keys in these sums."""
    for name, steps in forms:
        aligned = {one for step in steps if isinstance(step, Align) for one in step.of}
        changed = [
            replace(step, **keys) if isinstance(step, Sum) and step.to in aligned and chosen(step) else step
            for step in steps
        ]
        if changed != steps:
            yield f"{name}, {said}", changed


def _groups(f: _Frame, tree: Node) -> Iterator[Group]:
    """Divisions of k whose groups each form one node."""
    nodes = set(_below(tree))
    for group in _divisions(f.takes.stored_k):
        if all(tuple(sorted(members)) in nodes for members in _members(f.takes.stored_k, group)):
            yield group


def _below(tree: Node) -> Iterator[tuple[int, ...]]:
    for one in tree.children:
        yield terms_of(one)
        if isinstance(one, Node):
            yield from _below(one)


def _divisions(k: int) -> Iterator[Group]:
    """Contiguous and interleaved groups of two and more."""
    for size in range(2, k):
        if k % size == 0:
            yield "contiguous", size
            yield "interleaved", k // size


def _members(k: int, group: Group) -> list[tuple[int, ...]]:
    kind, n = group
    if kind == "contiguous":
        return [tuple(range(start, start + n)) for start in range(0, k, n)]
    return [tuple(range(start, k, n)) for start in range(n)]


def _alternating(k: int) -> Iterator[list[tuple[int, ...]]]:
    """Two slices that alternate between pairs or fours of neighbours, as the halves of wide units do."""
    for size in (2, 4):
        if k % (2 * size) == 0 and k > 2 * size:
            yield [tuple(i for i in range(k) if i // size % 2 == half) for half in (0, 1)]


def _of_none(f: _Frame) -> Iterator[Candidate | None]:
    """The orders of known datapaths, if nothing is known of the order."""
    k = f.takes.stored_k
    everything = tuple(range(k))
    yield from _both(f, _flat(f), everything)
    yield from _dot_then_c(f)
    levels = _levels(f)
    for members in (*_alternating(k), *(_members(k, group) for group in _divisions(k))):
        yield from _slices(f, members, levels)
        if len(members) <= _MOST_SLICES and f.d.is_float:
            yield _any_tree(f, _one_by_one(members), _EACH_ROUNDED)
    if f.d.is_float:
        yield _any_tree(f, _one_by_one([everything]), _EACH_ROUNDED)
    for group in _divisions(k):
        wanted = "then c", "with c", "with c by its leading bit", f"to {f.inner.name} first", "one by one"
        yield from _both(f, (one for one in _grouped(f, group) if one[0].endswith(wanted)), everything)
    yield from _both(f, _chains(f), everything)


def _unseen(f: _Frame) -> Iterator[Candidate | None]:
    """More orders, if masks show nothing at all: these are not candidates if masks show a flat sum."""
    everything = tuple(range(f.takes.stored_k))
    yield from _both(f, _descending(f), everything[::-1])
    yield from _both(f, _in_fixed_point(_late(f)), everything)
    for group in _divisions(f.takes.stored_k):
        yield from _both(f, _in_fixed_point(_grouped(f, group)), everything)


def _dot_then_c(f: _Frame) -> Iterator[Candidate | None]:
    """The sum of products as one operation, and another one that adds c."""
    everything = tuple(range(f.takes.stored_k))
    for inner in dict.fromkeys((f.d, f.inner)):
        for name, middle in (("aligned", [align(("products",))]), ("exact", [])):
            total: list[Step] = [*middle, Sum(of=("products",), to="total"), replace(f.last(), format=inner)]
            dot = operation(
                f.takes, [*f.products, *f.specials("products"), *total], everything, "zero", (), inner, "r0"
            )
            of = "c", "addends"
            exact: list[Step] = [*f.specials(*of), Sum(of=of, to="total"), f.last()]
            add = operation(f.takes, exact, (), "c", ("r0",), f.d, "d")
            yield candidate(f.takes, [dot, add], f"{name} dot product in {inner.name}, then c")


def _one_by_one(members: list[tuple[int, ...]]) -> Node:
    """The tree of sums of groups that are added to c one after the other."""
    tree: Node | int = C
    for group in members:
        tree = Node((tree, Node(group)))
    assert isinstance(tree, Node)
    return tree


def _of_integers(f: _Frame) -> Iterator[Candidate | None]:
    of = ("products", "c")
    plain: list[Step] = [*f.products, Sum(of=of, to="total"), f.last()]
    for overflow in ("wrap", "saturate"):
        last = replace(f.last(), overflow=overflow)
        yield _one(f, f"one sum that {overflow}s", [*plain[:-1], last])
        dot, total = Sum(of=("products",), to="dot"), Sum(of=("dot", "c"), to="total")
        two = [*f.products, dot, total, last]
        yield _one(f, f"sum of the products, then one with c that {overflow}s", two)
    # Groups of products meet in a register of their own before c is added.
    half_word = 16  # that of pairs of 8-bit products
    for group, overflow in product(_divisions(f.takes.stored_k), ("wrap", "saturate")):
        groups = Sum(of=("products",), to="groups", group=group, width=half_word, overflow="saturate")
        last = replace(f.last(), overflow=overflow)
        grouped_steps = [*f.products, groups, Sum(of=("groups", "c"), to="total"), last]
        yield _one(f, f"groups ({group[0]} {group[1]}) that saturate, and c: {overflow}", grouped_steps)
    for operation_ in ("and", "xor"):
        multiply = Multiply(to="products", operation=operation_)
        yield _one(f, f"sum of bits ({operation_})", [multiply, *plain[1:]])
    steps = [*f.products, replace(f.adds(("c", "products"), "sequential"), overflow="saturate")]
    yield _one(f, "products added one after the other, clamped each time", steps)
    if f.of_floats or f.d.is_float:
        everything = tuple(range(f.takes.stored_k))
        yield from _both(f, _flat(f), everything)
        yield from _both(f, _chains(f), everything)
    for kind, size in _divisions(f.takes.stored_k):
        for overflow in ("saturate", "wrap"):
            yield _integer_chain(f, _members(f.takes.stored_k, (kind, size)), overflow, f"{kind} {size}")


def _integer_chain(f: _Frame, slices: list[tuple[int, ...]], overflow: str, name: str) -> Candidate | None:
    of, operations = ("products", "c"), list[Operation]()
    for index, members in enumerate(slices):
        seed, last = operations[-1].to if operations else "c", index == len(slices) - 1
        steps: list[Step] = [*f.products, Sum(of=of, to="total"), replace(f.last(), overflow=overflow)]
        operations.append(operation(f.takes, steps, members, seed, (), f.d, "d" if last else f"r{index}"))
    return candidate(f.takes, operations, f"chain of sums ({name}), {overflow} after each")


def rounded_trees(takes: Signature, tree: Node) -> Iterator[Candidate | None]:
    """All programs for a binary tree whose every addition rounds."""
    d = takes.formats["d"]
    wide = [fmt for fmt in map(get_format, ("f32", "f64")) if fmt.fraction_bits > d.fraction_bits]
    for inner in (d, *wide):
        for late in (False, True) if inner != d and C in tree.children else (False,):
            for how in _hows(takes, inner):
                yield _Tree(takes, inner, how, late).candidate(tree)
    # Registers with guard bits, between additions of exact products.
    for inner, how in product(guarded_formats(takes), _hows(takes, d)):
        if how.product is None and not how.turned:
            yield _Tree(takes, inner, how, late=False).candidate(tree)


@dataclass(frozen=True)
class _How:
    """The arithmetic of an addition with a product. `product`: the format to which products are rounded;
    `fused`: they are added exactly; `zero`: sums of products start from +0 instead of the first one;
    `turned`: of two products that meet, the second is the first operand."""

    product: Format | None = None
    fused: bool = False
    zero: bool = True
    turned: bool = False

    def text(self) -> str:
        """In words."""
        product = "" if self.product is None else f"products rounded to {self.product.name}, "
        sums = "rounded additions of exact products" if self.product is None else "rounded additions"
        what = "fused multiply-adds" if self.fused else f"{product}{sums}"
        return f"{what}{' from zero' if self.zero else ''}{', the second first' if self.turned else ''}"


def _hows(takes: Signature, inner: Format) -> Iterator[_How]:
    a, b, d = (takes.formats[name] for name in "abd")
    bits = a.fraction_bits + b.fraction_bits + 1
    rounded = [fmt for fmt in dict.fromkeys((d, inner)) if bits > fmt.fraction_bits]
    for zero in (True, False):
        yield from (_How(fmt, zero=zero) for fmt in (None, *rounded))
        yield from (_How(fused=True, zero=zero, turned=turned) for turned in (False, True))


@dataclass
class _Tree:
    """The operations for one tree, the lowest first, with results in `inner`; `late`: c is added in d's
    format, after the sum of products was rounded to it."""

    takes: Signature
    inner: Format
    how: _How
    late: bool
    operations: list[Operation] = field(default_factory=list)

    def candidate(self, tree: Node) -> Candidate | None:
        """The program; None if no unit can have it."""
        d = self.takes.formats["d"]
        if self.late:
            (below,) = (one for one in tree.children if one != C)
            if not isinstance(below, Node):
                return None
            dot = self._rounded(self._result(below), d)
            self._write([self._adds(("c", "addends"), d)], (), "c", (dot,), d)
        else:
            result = self._result(tree)
            if self.inner != d:
                self._rounded(result, d)
        whole = [*self.operations[:-1], replace(self.operations[-1], to="d")]
        said = "" if self.inner == d else f" in {self.inner.name}{', then c' if self.late else ''}"
        return candidate(self.takes, whole, f"{self.how.text()}{said} ({len(whole)} operations)")

    def _rounded(self, result: str, d: Format) -> str:
        """An earlier result rounded to d's format."""
        last = Round(of=("c",), format=d, rounding=_RNE, overflow="infinity", zero="signed")
        return self._write([last], (), result, (), d)

    def _result(self, node: Node) -> str:
        """Adds the operations of a node; returns the name of its result."""
        run: list[int] = []  # the terms that one node each adds, from the top
        while True:
            nodes = [one for one in node.children if isinstance(one, Node)]
            terms = [one for one in node.children if isinstance(one, int)]
            if len(nodes) != 1:
                break
            run.append(terms[0])
            node = nodes[0]
        if nodes:
            before: str | None = self._added([self._result(one) for one in nodes])
        elif C in terms:
            before, run = "c", [*run, max(terms)]
        else:
            before, run = None, [*run, *(terms if self.how.turned else terms[::-1])]
        return self._run(before, run[::-1])

    def _run(self, before: str | None, terms: Sequence[int]) -> str:
        """Terms that are added to a result one after the other: the products between two additions of earlier
        results."""
        products: list[int] = []
        for term in terms:
            if term == C:
                before = self._products(before, products)
                before, products = self._added([before], with_c=True), []
            else:
                products.append(term)
        return self._products(before, products)

    def _products(self, before: str | None, products: Sequence[int]) -> str:
        if not products:
            assert before is not None
            return before
        scaled: list[Step] = [Scale(of=("products",))] if self.takes.scale_block else []
        if self.how.fused:
            start = "c" if before is not None else "zero" if self.how.zero else "product"
            steps: list[Step] = [Fma(to="d", format=self.inner, rounding=_RNE, start=start)]
            return self._write(steps, products, before or "zero", ())
        rounding = _RNE if self.how.product is not None else "toward_zero"
        multiply = Multiply(to="products", format=self.how.product, rounding=rounding)
        seeded = before == "c" or (before is None and self.how.zero)
        first = ("c",) if seeded else () if before is None else ("addends",)
        addends = () if before in (None, "c") else (before,)
        steps = [multiply, *scaled, self._adds((*first, "products"))]
        return self._write(steps, products, "c" if before == "c" else "zero", addends)

    def _added(self, results: Sequence[str], with_c: bool = False) -> str:
        """Earlier results added to each other, or one to c."""
        of = ("c", "addends") if with_c else ("addends",)
        return self._write([self._adds(of)], (), "c" if with_c else "zero", tuple(results))

    def _adds(self, of: tuple[str, ...], fmt: Format | None = None) -> Additions:
        return Additions(order="sequential", of=of, to="d", format=fmt or self.inner, rounding=_RNE)

    def _write(
        self,
        steps: Sequence[Step],
        products: Sequence[int],
        seed: str,
        addends: tuple[str, ...],
        out: Format | None = None,
    ) -> str:
        to = f"r{len(self.operations)}"
        made = operation(self.takes, steps, products, seed, addends, out or self.inner, to)
        self.operations.append(made)
        return to
