"""Programs of a binary tree of rounded additions, whatever its shape: what software on vector units computes.

Masks say which terms meet, not what a meeting is: products may be rounded before they are added, or fused
into the addition; of two products that meet each other, either may be the one that is rounded first. Runs of
nodes that each add one term are one operation, so that a program of eight accumulators reads as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from golden.identify.blackbox.candidates import Candidate, candidate, operation
from golden.kernels.sum_tree import C, Node
from golden.number.formats import Format, get_format
from golden.program.program import Operation
from golden.program.signature import Signature
from golden.program.steps import Additions, Fma, Multiply, Round, Scale, Step

_RNE = "nearest_even"


def binary(tree: Node) -> bool:
    """Whether every node adds two."""
    return len(tree.children) == 2 and all(binary(one) for one in tree.children if isinstance(one, Node))


def rounded_trees(takes: Signature, tree: Node) -> Iterator[Candidate | None]:
    """All that a binary tree can be whose every addition rounds."""
    d = takes.formats["d"]
    wide = [fmt for fmt in map(get_format, ("f32", "f64")) if fmt.fraction_bits > d.fraction_bits]
    for inner in (d, *wide):
        for late in (False, True) if inner != d and C in tree.children else (False,):
            for how in _hows(takes, inner):
                yield _Tree(takes, inner, how, late).candidate(tree)


@dataclass(frozen=True)
class _How:
    """What a meeting with a product is. `product`: the format that products are rounded to; `fused`: they are
    not rounded, but added as they are; `zero`: sums of products start from +0, not from the first of them;
    `turned`: of two products that meet, the second is the first of their sum."""

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
    """Operations for one tree, the lowest first, with results in `inner`; `late`: c is added in d's format,
    after the sum of the products was rounded to it."""

    takes: Signature
    inner: Format
    how: _How
    late: bool
    operations: list[Operation] = field(default_factory=list)

    def candidate(self, tree: Node) -> Candidate | None:
        """The program; None where no unit can be that."""
        d = self.takes.formats["d"]
        if self.late:
            (below,) = (one for one in tree.children if one != C)
            if not isinstance(below, Node):
                return None
            dot = self._rounded(self._result(below), d)
            self._write([self._adds(("c", "addends"), d)], (), "c", (dot,), d)
        elif self.inner == d:
            self._result(tree)
        else:
            self._rounded(self._result(tree), d)
        whole = [*self.operations[:-1], replace(self.operations[-1], to="d")]
        said = "" if self.inner == d else f" in {self.inner.name}{', then c' if self.late else ''}"
        return candidate(self.takes, whole, f"{self.how.text()}{said} ({len(whole)} operations)")

    def _rounded(self, result: str, d: Format) -> str:
        """An earlier result rounded to d's format."""
        last = Round(of=("c",), format=d, rounding=_RNE, overflow="infinity", zero="signed")
        return self._write([last], (), result, (), d)

    def _result(self, node: Node) -> str:
        """Writes the operations of a node; the name of its result."""
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
        """Terms that join a result one after the other: products between two meetings with c at once."""
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
