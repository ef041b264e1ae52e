"""The list of scalar PTX instructions, spec/ptx/scalar.yaml, multiplied out.

    for form in ptx_forms.load().forms:
        print(form.name, form.inputs, form.kinds)      # mad.lo.u32 ('u32', 'u32', 'u32') ('rrr', 'rri', ...)

A family of the file has these keys; a text in it may hold "{x}", a variable of `over`:

- `name`: the instruction as PTX writes it; where two have one name, a distinction follows after a space;
- `over`: lists of values by variable; all combinations count; the key "t, w" takes pairs, triples and so
  on;
- `in`, `out`: the types of source and destination operands (`out` defaults to the type {t}; an empty list
  means that the instruction is there for its effect);
- `body`: the PTX text where it is not "name $d, $a, $b, ..."; $d, $d2, $d3, $d4 are the destinations, $a,
  $b, $c, $e, $f the sources;
- `kinds`: what the source operands are, one letter each (KINDS);
- `immediate`: values for sources that cannot be just any number, by the letter of the source;
- `without`: a regular expression of names that the family does not hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from golden.errors import SpecError
from golden.paths import spec_folder
from golden.yamlfile import Section, read

KINDS = {
    "r": "register",
    "i": "immediate",
    "p": "immediate 8",
    "z": "register that holds zero",
    "n": "negated register",
    "a": "absolute value of a register",
    "u": "kernel parameter",
}
"""What a source operand is, by its letter in `kinds`."""
SOURCES = ("a", "b", "c", "e", "f")
DESTINATIONS = ("d", "d2", "d3", "d4")
_SLOT = re.compile(r"\$([a-z]\d?)\b")


@dataclass(frozen=True)
class Form:
    """One PTX instruction (or a few that stand together) with the types of its operands.

    body: its text, operands as $d and $a (see the module). kinds: for each way to compile it one letter a
        source. immediates: the value of each source where it is an immediate.
    """

    name: str
    group: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    body: str
    kinds: tuple[str, ...]
    immediates: tuple[str, ...]

    @property
    def has_effect(self) -> bool:
        """Whether it gives no result, so that all that its kernel does is its effect."""
        return not self.outputs


@dataclass(frozen=True)
class PtxList:
    """The whole file: version of PTX, targets, and every form in its order."""

    isa: str
    targets: tuple[str, ...]
    forms: tuple[Form, ...]


def operands_text(kinds: str) -> str:
    """Words for the letters of `kinds`: "rri" is "register, register, immediate", "uu" "2 x kernel
    parameter"."""
    if len(set(kinds)) == 1 and len(kinds) > 1:
        return f"{len(kinds)} x {KINDS[kinds[0]]}"
    return ", ".join(KINDS[letter] for letter in kinds) or "none"


@lru_cache(maxsize=4)
def load(path: Path | None = None) -> PtxList:
    """Reads the list.

    Raises:
        SpecError: the file is wrong; file and line.
    """
    top = read(path or spec_folder() / "ptx" / "scalar.yaml")
    top.take("source", str)
    isa, targets = top.take("isa", str), top.take_names("targets")
    section = top.take("immediates", Section)
    immediates = {name: str(section.take(name, (str, int))) for name in section}
    groups: list[Section] = top.take("groups", list)
    forms: dict[str, Form] = {}
    for group in groups:
        title = group.take("title", str)
        for family in group.take("forms", list):
            for form in _multiplied(family, title, immediates):
                before = forms.get(form.name)
                forms[form.name] = form if before is None else _merged(before, form, family)
        group.done()
    top.done()
    return PtxList(isa, tuple(targets), tuple(forms.values()))


def _merged(before: Form, form: Form, family: Section) -> Form:
    """Two families may name one instruction, each with kinds of its own."""
    if (before.body, before.inputs, before.outputs) != (form.body, form.inputs, form.outputs):
        raise family.error(f"'{form.name}' stands in the list twice, with other operands", "name")
    again = [kind for kind in form.kinds if kind in before.kinds]
    if again:
        raise family.error(f"'{form.name}' has the kind '{again[0]}' twice", "kinds")
    return Form(**{**vars(before), "kinds": before.kinds + form.kinds})


def _multiplied(family: Section, group: str, immediates: dict[str, str]) -> Iterator[Form]:
    name, over = family.take("name", str), family.take("over", Section, Section("", 0))
    inputs = tuple(str(one) for one in family.take_names("in"))
    outputs = tuple(str(one) for one in family.take_names("out", ["{t}"]))
    kinds = tuple(family.take_names("kinds"))
    body, without = family.take("body", str, None), family.take("without", str, None)
    chosen = family.take("immediate", Section, Section("", 0))
    own = {key: str(chosen.take(key, (str, int))) for key in chosen}
    family.done()
    for kind in kinds:
        if len(kind) != len(inputs) or set(kind) - set(KINDS):
            raise family.error(
                f"kind '{kind}', expected {len(inputs)} letters of {', '.join(KINDS)}, one a source", "kinds"
            )
    for values in _combinations(over):
        try:
            full = name.format(**values)
            types = tuple(one.format(**values) for one in inputs)
            results = tuple(one.format(**values) for one in outputs)
            text = _body(full, results, types) if body is None else body.format(**values)
        except (KeyError, IndexError, ValueError) as error:
            raise family.error(f"'{name}' names a variable that `over` lacks: {error}", "name") from None
        if without and re.fullmatch(without, full):
            continue
        slots = zip(SOURCES, types, strict=False)
        numbers = tuple(own.get(slot, immediates.get(type_, "")) for slot, type_ in slots)
        _check_slots(family, text, results, types)
        yield Form(full, group, results, types, text, kinds, numbers)


def _check_slots(family: Section, text: str, results: tuple[str, ...], types: tuple[str, ...]) -> None:
    known = {*DESTINATIONS[: len(results)], *SOURCES[: len(types)]}
    named = set(_SLOT.findall(text))
    if named != known:
        raise family.error(
            f"'{text}' names {', '.join(sorted(named)) or 'no operand'}, its operands are "
            f"{', '.join(sorted(known)) or 'none'}",
            "name",
        )


def _body(name: str, outputs: tuple[str, ...], inputs: tuple[str, ...]) -> str:
    """ "name $d, $a, $b"; the source of "mov.u32 %clock" is its special register."""
    mnemonic, _, register = name.partition(" ")
    operands = [
        *(f"${slot}" for slot in DESTINATIONS[: len(outputs)]),
        *(f"${slot}" for slot in SOURCES[: len(inputs)]),
        *([register] if register else []),
    ]
    return f"{mnemonic} {', '.join(operands)}".strip()


def _combinations(over: Section) -> Iterator[dict[str, str]]:
    """All combinations of the variables' values."""
    axes: list[list[dict[str, str]]] = []
    for key in over:
        variables = [part.strip() for part in key.split(",")]
        values = over.take(key, list)
        rows = [value if isinstance(value, list) else [value] for value in values]
        if any(len(row) != len(variables) for row in rows):
            raise over.error(f"key '{key}', expected {len(variables)} values in each entry", key)
        axes.append([dict(zip(variables, map(str, row), strict=True)) for row in rows])
    for parts in itertools.product(*axes):
        yield {name: value for part in parts for name, value in part.items()}


def substituted(form: Form, operands: dict[str, str]) -> str:
    """The body with every operand put in by its slot ("a": "%r1")."""

    def put(match: re.Match[str]) -> str:
        if match[1] not in operands:
            raise SpecError(f"{form.name}: no operand for ${match[1]}")
        return operands[match[1]]

    return _SLOT.sub(put, form.body)
