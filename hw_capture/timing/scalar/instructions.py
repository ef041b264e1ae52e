"""Which scalar PTX instructions are timed: instructions.yaml has their names by theme, the list of PTX forms
their operands.

The list holds every row of Table V of H. Abdelkhalik et al. (arXiv 2208.11174) that ptxas 13.0 takes, and the
instructions around them. `bar.warp.sync` gives no result and can be timed only in one warp, next to itself;
`mov.u32 %clock` has a kernel of its own (`paper`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from golden.catalog import ptx_forms
from golden.catalog.ptx_forms import Form
from golden.yamlfile import Section, read

PREDICATE = 1  # bits of a predicate register
_LISTS = Path(__file__).with_suffix(".yaml")
_QUOTIENTS = re.compile(r"div\.")
"""Their chains run through the divisor: a quotient of a quotient would be 0, and a float leave the range in
which no subroutine is called."""
_PRODUCTS = re.compile(r"(?:mul|mad|fma)\.(?:.*\.)?(?:bf16|f16|f32|f64)(?:x2)?$")
"""Their chains run through the other factor: a product of many numbers above 1 would leave the range."""
_SIGNS = "slct.u32.s32"
"""Its chain runs through the sign that selects."""


@dataclass(frozen=True)
class Operation:
    """One PTX instruction: widths in bits of the result (0: none, 1: a predicate) and of the sources.

    through: the source that the chain runs through. text: PTX with {d}, {a}, {b}, {c}, {e}, and {t} for a
    register of 32 bits next to them.
    """

    name: str
    theme: str
    result: int
    sources: tuple[int, ...]
    text: str
    through: int = 0

    @property
    def factor(self) -> int | None:
        """The source whose values are reciprocal by turns, or None."""
        return 1 if _PRODUCTS.match(self.name) else None

    @property
    def dividend(self) -> int | None:
        """The source whose value is always the same, or None."""
        return 0 if _QUOTIENTS.match(self.name) else None

    @property
    def data(self) -> str:
        """Format of its operands: "f16", "bf16", "f32", "f64", or "bits"."""
        found = re.findall(r"\b(f16|bf16|f32|f64|tf32)(?:x2)?\b", self.name)
        return str(found[-1]) if found and re.search(r"\.(?:bf16|f16|f32|f64)(?:x2)?$", self.name) else "bits"


def _operation(theme: str, name: str, forms: dict[str, Form], own: Section | None) -> Operation:
    through = 2 if name == _SIGNS else 1 if _QUOTIENTS.match(name) else 0
    if own is not None:
        return Operation(name, theme, own["result"], tuple(own["sources"]), own["text"], through)
    return Operation(name, theme, *_of_form(forms[name]), through)


def _of_form(form: Form) -> tuple[int, tuple[int, ...], str]:
    """Widths of result and sources, and the text with their places."""
    result, *_ = (*map(_width, form.outputs), 0)
    return result, tuple(map(_width, form.inputs)), re.sub(r"\$([a-z]\d?)\b", r"{\1}", form.body) + ";"


def _width(kind: str) -> int:
    """Bits of a register of a PTX type: 32 of "f16x2"."""
    if kind == "pred":
        return PREDICATE
    found = re.fullmatch(r"[a-z]+(\d+)(x2)?", kind)
    assert found, kind  # the types of the forms that the list names
    return int(found.group(1)) * (2 if found.group(2) else 1)


@cache
def operations() -> tuple[Operation, ...]:
    """Every instruction of the list.

    Raises:
        SpecError: spec/ptx/scalar.yaml is wrong.
    """
    lists, forms = read(_LISTS), {form.name: form for form in ptx_forms.load().forms}
    named = ((theme, name) for theme, names in lists["themes"].items() for name in names.split())
    return tuple(_operation(theme, name, forms, lists["own"].get(name)) for theme, name in named)


def get(name: str) -> Operation:
    """The operation of that name."""
    return next(operation for operation in operations() if operation.name == name)
