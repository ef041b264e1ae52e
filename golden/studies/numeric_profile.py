"""The numeric profiles of W. Sun et al. (Tables XII to XV, Figure 17) from the models,
against the printed figures."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from golden.explain.markdown import link
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, number, percent
from golden.studies.units import Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from golden.identify.probe.numeric_profile import Profile

NAME = "numeric-profile"

ARCHITECTURE = "ampere"
_OPERATIONS = {
    "multiplication": "multiplication",
    "inner_product": "inner product",
    "accumulation": "accumulation",
}
_DRAWN = {"low": "in type", "f32": "in f32"}


def run(samples: int = 100_000, progress: Progress = lambda done, total: None) -> Study:
    """Runs `mmagold profile` (golden/identify/probe/numeric_profile.py) on the model of the A100."""
    from golden.identify.probe import numeric_profile as numeric

    progress(0, 1)
    # Chains of matrix products by default.
    chains = 1000
    found = numeric.profile(ARCHITECTURE, samples, min(chains, samples))
    progress(1, 1)
    compared = comparison(found)
    chain = {f"{case.ab} to {case.cd}": found.chain[case.name] for case in numeric.CASES}
    return Study(
        NAME,
        samples,
        _findings(found, compared),
        [_element_table(compared), _c_table(found), _chain_table(chain)],
        [
            Figure(
                "chain",
                _CAPTION,
                partial(_draw, {key: value for key, value in chain.items() if key != "f16 to f16"}),
            )
        ],
        dataclasses.asdict(found),
        units=tuple(Subject(ARCHITECTURE, case.ptx) for case in numeric.CASES),
    )


_CAPTION = (
    "Figure 17 from the model: relative l2 error after N products, mean of 1000 chains. Filled markers: "
    "operands drawn in their type; open ones: in f32. The curves of f16 end where a chain overflows."
)


@dataclasses.dataclass(frozen=True)
class Line:
    """A printed figure and ours."""

    table: str
    types: str
    against: str
    operation: str
    drawn: str
    ours: float
    paper: float

    @property
    def difference(self) -> float | None:
        """Ours over the paper's, less one; None where the paper has 0."""
        return self.ours / self.paper - 1 if self.paper else None


def comparison(found: Profile) -> list[Line]:
    """Every figure of Tables XII to XV, and ours."""
    from golden.identify.probe import numeric_profile as numeric

    cases = {case.name: f"{case.ab} to {case.cd}" for case in numeric.CASES}
    lines = []
    for figure in numeric.published():
        errors = found.errors if figure.against == "f32" else found.errors_f16
        ours = errors[figure.case][figure.operation][figure.init]
        lines.append(
            Line(
                figure.table,
                cases[figure.case],
                figure.against,
                figure.operation,
                figure.init,
                ours,
                figure.value,
            )
        )
    return lines


def _element_table(lines: list[Line]) -> Table:
    rows = [
        (
            line.table,
            line.types,
            line.against,
            _OPERATIONS[line.operation],
            _DRAWN[line.drawn],
            line.ours,
            line.paper,
            _share(line),
        )
        for line in lines
    ]
    head = ("Table", "types", "against", "operation", "drawn", "model", "paper", "difference")
    return Table("elements", "Mean absolute error of one operation (Tables XII to XV)", head, rows)


def _share(line: Line) -> str:
    if line.difference is None:
        # The paper prints three digits: below this it has 0.
        printed = 1e-10
        return "none" if line.ours < printed else f"{number(line.ours)} for 0"
    return f"{100 * line.difference:+.1f} %"


def _c_table(found: Profile) -> Table:
    rows = [
        (case, errors["accumulation"]["low"], errors["accumulation_f32_c"]["low"])
        for case, errors in found.errors.items()
    ]
    head = ("case", "c rounded to the operand type", "c as it was drawn, in f32")
    return Table("c", "Accumulation, a drawn in its type: what becomes of c decides", head, rows)


def _chain_table(chain: dict[str, dict[str, list[float | None]]]) -> Table:
    rows: list[tuple[Any, ...]] = []
    # Lengths of chains that the table shows.
    chain_shown = (1, 2, 5, 8, 10, 20)
    for types, by_init in chain.items():
        for init, errors in by_init.items():
            cells = ["overflow" if errors[n - 1] is None else errors[n - 1] for n in chain_shown]
            rows.append((types, _DRAWN[init], *cells))
    head = ("types", "drawn", *(f"N = {n}" for n in chain_shown))
    return Table("chain", "Relative l2 error after N chained products (Figure 17)", head, rows)


def _overflow(errors: list[float | None]) -> int | None:
    """The number of products at which the first chain overflows."""
    return next((place + 1 for place, error in enumerate(errors) if error is None), None)


def _findings(found: Profile, lines: list[Line]) -> str:
    zeros = [line for line in lines if not line.paper]
    odd = next(
        line
        for line in lines
        if (line.types, line.operation, line.drawn) == ("bf16 to f32", "accumulation", "low")
    )
    known = {line: 100 * line.difference for line in lines if line.difference is not None and line is not odd}
    products = [difference for line, difference in known.items() if line.operation == "multiplication"]
    bf16, tf32, f16 = (found.chain[name]["low"] for name in ("bf16", "tf32", "f16"))
    return findings(
        NAME,
        zeros=len(zeros),
        largest_zero=number(max(line.ours for line in zeros)),
        sums=percent(
            max(abs(difference) for line, difference in known.items() if line.operation != "multiplication")
            / 100
        ),
        odd_paper=number(odd.paper),
        odd=number(odd.ours),
        c_in_f32=number(found.errors["bf16"]["accumulation_f32_c"]["low"]),
        least=min(products),
        most=max(products),
        ratio=number((bf16[-1] or 0) / (tf32[-1] or 1)),
        overflow=_overflow(f16),
        chains=found.chains,
        page=link("numeric profiling", "profile.md"),
    )


def _draw(chain: dict[str, dict[str, list[float | None]]]) -> Picture:
    picture, axes = draw.canvas(height=4.4)
    for index, (types, by_init) in enumerate(chain.items()):
        for init, errors in by_init.items():
            known = [(n + 1, error) for n, error in enumerate(errors) if error is not None]
            look = (
                draw.style(index)
                | {"zorder": 3 if types.startswith("f16") else 2}
                | ({} if init == "low" else {"markerfacecolor": "none", "linewidth": 1.2})
            )
            axes.plot(*zip(*known, strict=True), label=f"{types}, {_DRAWN[init]}", markevery=2, **look)
    axes.set_yscale("log")
    axes.set_xticks(range(0, 21, 5))
    axes.set_xlabel("N (products in the chain)")
    axes.set_ylabel("Relative l2 error")
    draw.legend(axes)
    return picture
