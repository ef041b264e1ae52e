"""The YAML schema of units, found by asking the loader: which keys a mapping knows,
what each takes, its default.

Keys and defaults are what the loader asks small mappings for. What a key takes is what the loader says when
it refuses something else. `fill` writes both into the tables of docs/spec-schema.md, whose last column, the
meaning, is all that is written by hand; a page that is not what `fill` makes of it cannot be built. `python
-m golden.publish.schema` brings it up to date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from golden import yamlfile
from golden.boundary import end
from golden.catalog import unit_files
from golden.errors import DocsError, SpecError
from golden.explain.specification import table
from golden.files.output import write_text
from golden.number.formats import build_format, get_format
from golden.number.rounding import MODES, OVERFLOWS
from golden.paths import docs_folder
from golden.program import keys, reading
from golden.program.algorithms import algorithms, get_algorithm
from golden.program.steps import MAX_K, STEPS, variants
from golden.yamlfile import MISSING, Section

PAGE = "spec-schema.md"
_WRONG: tuple[Any, ...] = ("?", -(10**9), 9, 1.5, [], ["?"])
_EXPECTED = re.compile(r"expected (.*?)(?:; nearest: .*)?$")
_FILE = re.compile(r"^[^:]*:\d+: ")


@dataclass(frozen=True)
class Key:
    """One key of a mapping. takes: what it may hold, in the loader's words. default: its spelling, or that
    it is needed."""

    name: str
    takes: str
    default: str


@dataclass(frozen=True)
class Schema:
    """One kind of mapping: its keys in the order of asking, the smallest examples, and other refusals
    (text, message)."""

    keys: tuple[Key, ...]
    examples: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Kind:
    """How a kind of mapping is read: documents that the loader takes, others that it refuses (by what the
    page shows of them), and where the mapping lies. shown: what stands before an example on the page; ""
    where it is too long for one.
    """

    examples: tuple[str, ...]
    read: Callable[[Section], object]
    pick: Callable[[Section], Section] = lambda document: document
    refused: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""


class _Asked(Section):
    """A mapping that remembers what it was asked for: every key with its default."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(file, line)
        self.defaults: dict[str, Any] = {}

    def take(self, key: str, kind: Any, default: Any = MISSING) -> Any:
        """Notes the question and answers it."""
        self.defaults.setdefault(key, default)
        return super().take(key, kind, default)


def _asked(value: Any) -> Any:
    """A copy whose mappings remember."""
    if isinstance(value, list):
        return [_asked(item) for item in value]
    if not isinstance(value, Section):
        return value
    copy = _Asked(value.file, value.line)
    copy.lines = value.lines
    for key in value:
        copy[key] = _asked(value[key])
    return copy


def _step(op: str) -> Callable[[Section], object]:
    return lambda section: reading.StepReader(op, section, get_format("f32"), {}).read()


_UNIT = "unit: dot4\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\n"
_CHAIN = "steps: [{fma: {to: d, rounding: nearest_even}}]"
_SCALED = (
    "unit: scaled\nshape: {k: 4}\nscale_block: 2\n"
    "formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale_a: ue8m0, scale_b: ue8m0}\n"
    "steps: [{multiply: {to: products}}, {scale: {of: products}}, {special_values: {of: [products, c]}}, "
    "{align: {of: [products, c], fraction_bits: 24, rounding: toward_zero}}, "
    "{sum: {of: [products, c], to: total}}, "
    "{round: {of: total, rounding: toward_zero, overflow: ieee, zero: positive}}]"
)
_FDA = "fda: {fraction_bits: 24}"


def _operation(text: str) -> str:
    """A unit of one operation, written as a mapping."""
    return f"{_UNIT}program:\n  - {text}"


def _operations(*texts: str) -> dict[str, str]:
    return {text: _operation(text) for text in texts}


def _same(*texts: str) -> dict[str, str]:
    return {text: text for text in texts}


_STEPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "multiply": (
        ("{to: products}", "{to: products, format: f32, rounding: nearest_even, flush: signed}"),
        ("{to: products, operation: xor, zero_times_infinity: zero}",),
    ),
    "scale": (("{of: products}",), ("{of: scales}",)),
    "special_values": (("{of: [products, c]}",), ()),
    "flush": (("{of: [a, b], sign: signed}",), ("{of: scales, sign: signed}",)),
    "align": (
        ("{of: [products, c], fraction_bits: 26, rounding: toward_zero}",),
        (
            "{of: [b, c], fraction_bits: 26, rounding: toward_zero}",
            "{of: [products, c], fraction_bits: {c: 26}, rounding: toward_zero}",
            "{of: [products, c], fraction_bits: 26, rounding: toward_zero, group: {contiguous: 4}}",
            "{of: [products, c], fraction_bits: 26, rounding: toward_zero, sticky_gap: 1}",
            "{of: [products, c], fraction_bits: 26, rounding: toward_zero, left_out: {products: dropped, c: "
            "dropped}}",
        ),
    ),
    "sum": (
        (
            "{of: [products, c], to: total}",
            "{of: [products, c], to: total, width: 40}",
            "{of: [products, c], to: d, order: tree, rounding: nearest_even, flush: signed}",
        ),
        (
            "{of: [products, c], to: d}",
            "{of: [products, c], to: d, order: tree, rounding: nearest_even, format: f16}",
            "{of: [products, c], to: d, order: tree, rounding: nearest_even, overflow: saturate}",
        ),
    ),
    "normalize": (("{of: products, fraction_bits: 12, rounding: toward_zero}",), ()),
    "fma": (("{to: d, rounding: nearest_even}", "{to: d, rounding: nearest_even, flush: signed}"), ()),
    "round": (
        (
            "{of: total, rounding: nearest_even, overflow: ieee, zero: positive}",
            "{of: dot, to: partial, rounding: down, overflow: infinity, zero: signed, flush: signed}",
        ),
        (
            "{of: [products, c], rounding: nearest_even, overflow: ieee, zero: positive}",
            "{of: total, format: f16, rounding: nearest_even, overflow: ieee, zero: positive}",
        ),
    ),
    "hidden_bit": (("{of: [a, b], zeros: set}",), ("{of: products}",)),
}
"""For each step the smallest mappings that the loader takes,
and some that it refuses for more than one value."""

_PROGRAM = "unit: two\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\nprogram:\n" + "".join(
    f"  - {{{_FDA}, k: {{from: {start}, to: {start + 1}}}}}\n" for start in (0, 2)
)


def _last(document: Section) -> Section:
    found: Section = document["program"][-1]
    return found


_KINDS: dict[str, _Kind] = {
    "The file": _Kind(
        (_SCALED, _operation(f"{{{_FDA}}}"), f"{_UNIT}define_formats: {{}}\n{_CHAIN}"),
        unit_files.build_instruction,
        refused={
            "neither `steps` nor `program`": _UNIT,
            "`steps` and `program`": f"{_UNIT}program: []\n{_CHAIN}",
            "`scale_block: 2` without `scale_a`": f"{_UNIT}scale_block: 2\n{_CHAIN}",
            "`scale_block: 3` with `k: 4`": _SCALED.replace("scale_block: 2", "scale_block: 3"),
            "`define_formats: {f16: {}}`": f"{_UNIT}define_formats: {{f16: {{}}}}\n{_CHAIN}",
            "`steps: [{multiply: {to: products}}]`": f"{_UNIT}steps: [{{multiply: {{to: products}}}}]",
            "`steps: [{sum: {of: [products, c], to: total}}]`": f"{_UNIT}steps: [{{sum: {{of: [products, "
            f"c], to: total}}}}]",
            "`{fma: {to: d, rounding: up}}` behind a step that writes d": f"{_UNIT}"
            f"{_CHAIN[:-1]}, {{fma: {{to: d, rounding: up}}}}]",
            "`steps: [{multply: {to: products}}]`": f"{_UNIT}steps: [{{multply: {{to: products}}}}]",
            "`modes: {rnd: [up]}` without `$rnd`": f"{_UNIT}modes: {{rnd: [up]}}\n{_CHAIN}",
            "`flags: [inexact, inexact]`": f"{_UNIT}flags: [inexact, inexact]\n{_CHAIN}",
            "`flags: [nx]`": f"{_UNIT}flags: [nx]\n{_CHAIN}",
            "`accumulator: state` with c in f32 and d in f16": _UNIT.replace("d: f32", "d: f16")
            + f"accumulator: state\n{_CHAIN}",
            "`accumulator: state` and no step that reads c": f"{_UNIT}accumulator: state\n"
            + _CHAIN.replace("nearest_even", "nearest_even, start: zero"),
            "`colour: red`": f"{_UNIT}{_CHAIN}\ncolour: red",
        },
    ),
    "`shape`": _Kind((_SCALED,), unit_files.build_instruction, lambda document: document["shape"]),
    "`formats`": _Kind((_SCALED,), unit_files.build_instruction, lambda document: document["formats"]),
    "A number format of your own": _Kind(
        (
            "{kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 11, specials: none}",
            "{kind: integer, storage: 8, bits: 6}",
        ),
        lambda section: build_format("mine", section),
        refused=_same(
            "{kind: float, storage: 8, exponent_bits: 5, fraction_bits: 5, bias: 11, specials: none}",
            "{kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 11, specials: ieee, "
            "signed: false}",
            "{kind: integer, storage: 24, bits: 20}",
            "{kind: integer, storage: 8, bits: 6, bias: 3}",
        ),
        shown="mine: ",
    ),
    **{
        f"`{op}`": _Kind(examples, _step(op), refused=_same(*refused), shown=f"- {op}: ")
        for op, (examples, refused) in _STEPS.items()
    },
    "`group`": _Kind(
        tuple(
            f"{{of: products, to: groups, group: {{{kind}: 4}}}}" for kind in ("contiguous", "interleaved")
        ),
        _step("sum"),
        lambda section: section["group"],
        refused=_same(
            "{of: products, to: groups, group: {}}",
            "{of: products, to: groups, group: {contiguous: 4, interleaved: 2}}",
        ),
        shown="- sum: ",
    ),
    "An operation": _Kind(
        (_operation(f"{{{_FDA}}}"), _PROGRAM, f"{_UNIT}program:\n  - {_CHAIN}"),
        unit_files.build_instruction,
        _last,
        refused=_operations(
            "{fda: {fraction_bits: 24}, gps: {group: 4}}",
            "{fad: {fraction_bits: 24}}",
            "{fda: {}}",
            "{fda: {fraction_bits: 24, colour: red}}",
            "{fda: {fraction_bits: 24}, k: {from: 0, to: 2}}",
            "{fda: {fraction_bits: 24}, seed: low}",
            "{fda: {fraction_bits: 24}, operands: e4m3}",
        ),
    ),
    "`k`": _Kind(
        tuple(
            _operation(f"{{{_FDA}, k: {text}}}")
            for text in ("{from: 0, to: 3}", "{modulo: 1, residues: [0]}", "{list: [2, 0, 1, 3]}")
        ),
        unit_files.build_instruction,
        lambda document: document["program"][0]["k"],
        refused=_operations(
            "{fda: {fraction_bits: 24}, k: {list: [0, 1, 2, 4]}}", "{fda: {fraction_bits: 24}, k: some}"
        ),
    ),
}
"""By the heading of the page."""


# Asking -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def schemas() -> Mapping[str, Schema]:
    """Every kind of mapping by its heading on the page.

    Raises:
        DocsError: a step that the loader knows has no entry here, or an example is refused.
    """
    missing = set(STEPS) - set(_STEPS)
    if missing:
        raise DocsError(f"golden/publish/schema.py has no example of the steps {', '.join(sorted(missing))}")
    return {heading: _schema(heading, kind) for heading, kind in _KINDS.items()}


def _schema(heading: str, kind: _Kind) -> Schema:
    defaults: dict[str, list[Any]] = {}
    for index, text in enumerate(kind.examples):
        document = _asked(yamlfile.parse(text, f"{index}.yaml"))
        try:
            kind.read(document)
        except SpecError as error:
            raise DocsError(f"the example of {heading} is refused: {error}") from None
        for key, default in _noted(kind, document).items():
            defaults.setdefault(key, []).append(default)
    keys = tuple(
        Key(name, _takes(kind, name), _default_text(found, len(kind.examples)))
        for name, found in defaults.items()
        if name not in algorithms()
    )
    examples = tuple(f"{kind.shown}{text}" for text in kind.examples) if kind.shown else ()
    return Schema(
        keys, examples, tuple((shown, _refusal(kind, text)) for shown, text in kind.refused.items())
    )


def _noted(kind: _Kind, document: Section) -> dict[str, Any]:
    section = kind.pick(document)
    assert isinstance(section, _Asked)
    return section.defaults


def _default_text(found: list[Any], examples: int) -> str:
    """The default in YAML, or that there is none."""
    texts = dict.fromkeys(_spelt(default) for default in found if default is not MISSING)
    if not texts:
        return "needed" if len(found) == examples else "needed at times"
    text = next(iter(texts)) if len(texts) == 1 else "see right"
    return f"{text}, or needed" if MISSING in found else text


def _spelt(default: Any) -> str:
    if default is None or default == []:
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _takes(kind: _Kind, key: str) -> str:
    """What the loader says it expects when the key holds something else."""
    phrases: dict[str, None] = {}
    for text in kind.examples:
        document = _asked(yamlfile.parse(text))
        kind.read(document)
        if key not in _noted(kind, document):
            continue
        for wrong in _WRONG:
            message = _with(kind, text, key, wrong)
            if "unknown format" in message:
                phrases["a format"] = None
            named = re.search(r"key '(\w+)'", message)
            other = message.startswith(("unknown key", "the operations")) or (
                named is not None and named[1] != key
            )
            if not other and (match := _EXPECTED.search(message)):
                phrases[match[1]] = None
    if key == "of":
        known = [
            name
            for name in keys.REGISTER.words
            if any(not _with(kind, text, key, name) for text in kind.examples)
        ]
        return f"{_most(list(phrases))} of {', '.join(f'`{name}`' for name in known)}"
    return _phrase(list(phrases))


def _with(kind: _Kind, text: str, key: str, value: Any) -> str:
    """The loader's message on an example whose key holds something else; "" if it takes that."""
    document = yamlfile.parse(text)
    kind.pick(document)[key] = value
    try:
        kind.read(document)
    except SpecError as error:
        return _FILE.sub("", str(error))
    return ""


def _most(phrases: list[str]) -> str:
    found = next(
        match
        for phrase in phrases
        if (match := re.match(r"(1(?: to \d+)?) (?:different )?registers?", phrase))
    )
    return found[1]


_KINDS_OF_VALUES = (
    "an integer",
    "a string",
    "an integer or a mapping",
    "a string or a mapping",
    "a string or a list",
)
"""What says less than another phrase does."""


def _phrase(phrases: list[str]) -> str:
    """The phrases in one: the words that are allowed, a range, a kind of value."""
    lists = [phrase for phrase in phrases if phrase[:1].isdigit()]
    if lists:
        return lists[0]
    words: list[str] = []
    for phrase in phrases:
        if phrase.startswith("one of "):
            choices = phrase.removeprefix("one of ").split(", ")
            words.append(
                "a rounding" if tuple(choices) == MODES else ", ".join(f"`{choice}`" for choice in choices)
            )
        elif phrase.startswith("an integer from "):
            words.append(phrase.removeprefix("an integer from "))
        elif phrase not in _KINDS_OF_VALUES:
            words.append(phrase)
    if not words:
        return phrases[0] if phrases else "anything"
    return ", ".join([*words, *(["or a mapping"] if "an integer or a mapping" in phrases else [])])


def _refusal(kind: _Kind, text: str) -> str:
    """The loader's message, without file and line."""
    try:
        kind.read(yamlfile.parse(text))
    except SpecError as error:
        return _FILE.sub("", str(error))
    raise DocsError(f"the loader takes '{text}', which docs/{PAGE} calls refused")


# The page ---------------------------------------------------------------------------------------------------

_SECTION = re.compile(r"^(#{2,4} .+)$", re.M)
_BLOCK = re.compile(r"^```(?:.*\n)*?```$|^(?:\|.*\n?)+|^(?:(?!\||```).+\n?)+|^.+$", re.M)
"""Code, a table, a paragraph; a fence that nothing closes is a block of its own."""
_HEAD = ("Key", "Takes", "Default", "Meaning")
_REFUSED = ("Refused", "The loader says")
_ALGORITHM = ("Algorithm", "Parameter", "Takes", "Default", "Meaning")
_ALGORITHMS = "Algorithms"


def fill(text: str) -> str:
    """The page with everything that the loader says written anew; of its tables the meanings are kept, and
    whatever else is written by hand, before and after them.

    Raises:
        DocsError: a key has no meaning, a section is missing or stands twice; the message names it.
    """
    first, *rest = _SECTION.split(text)
    headings, bodies = rest[::2], rest[1::2]
    titles = [heading.lstrip("# ") for heading in headings]
    for title in (*schemas(), _ALGORITHMS):
        if titles.count(title) != 1:
            problem = "two sections" if title in titles else "no section"
            raise DocsError(f"docs/{PAGE} has {problem} '{title}', expected one: the loader knows it")
        at = titles.index(title)
        bodies[at] = _filled(title, bodies[at])
    return (first + "".join(map(str.__add__, headings, bodies))).rstrip() + "\n"


def _filled(title: str, body: str) -> str:
    """The section with its tables and examples written anew; they stand where the first of them stood."""
    before, own, after = _parts(body, title in schemas() and bool(schemas()[title].examples))
    meanings = _declared(title.strip("`")) or _meanings("\n".join(own))
    written = _algorithms() if title == _ALGORITHMS else _section(title, meanings)
    after = [block for block in after if not (block.startswith("```yaml") and block in written)]
    return "\n\n".join(["", *before, written, *after, ""])


def _parts(body: str, examples: bool) -> tuple[list[str], list[str], list[str]]:
    """The blocks of a section: by hand, what `fill` wrote, by hand. What stands in between is put behind.

    Written are the tables with the heads of this module and, where the loader's keys have `examples`, the
    code right below the first.
    """
    heads = tuple(f"| {head[0]} | {head[1]} |" for head in (_HEAD, _REFUSED, _ALGORITHM))
    before: list[str] = []
    own: list[str] = []
    after: list[str] = []
    for block in (found[0].rstrip() for found in _BLOCK.finditer(body)):
        code = examples and len(own) == 1 and not after and block.startswith("```yaml")
        if block.startswith(heads) or code:
            own.append(block)
        else:
            (after if own else before).append(block)
    return before, own, after


def _declared(op: str) -> dict[str, str]:
    """What the step classes say that their keys mean."""
    found: dict[str, dict[str, None]] = {}
    for kind in variants(op):
        for name, key, _ in keys.declared(kind):
            found.setdefault(keys.key_name(name, key), {})[key.meaning] = None
    return {name: "; ".join(meanings) for name, meanings in found.items()}


def _meanings(body: str) -> dict[str, str]:
    """The last column of the section's table by key."""
    rows = (re.split(r"(?<!\\)\|", line)[1:-1] for line in body.splitlines() if line.startswith("| `"))
    return {cells[0].strip(" `"): cells[-1].strip() for cells in rows if len(cells) == len(_HEAD)}


def _section(title: str, meanings: Mapping[str, str]) -> str:
    schema = schemas()[title]
    rows = []
    for key in schema.keys:
        if not meanings.get(key.name):
            raise DocsError(
                f"docs/{PAGE}: '{title}' says nothing of the key '{key.name}', which the loader reads"
            )
        rows.append([f"`{key.name}`", key.takes, key.default, meanings[key.name]])
    parts = [table(_HEAD, rows)]
    if schema.examples:
        parts.append("```yaml\n" + "\n".join(schema.examples) + "\n```")
    if schema.refused:
        cells = [
            [shown if "`" in shown else f"`{shown}`", _escaped(message)] for shown, message in schema.refused
        ]
        parts.append(table(_REFUSED, cells))
    return "\n\n".join(parts)


def _escaped(message: str) -> str:
    return message.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _algorithms() -> str:
    rows: list[list[str]] = []
    for algorithm in algorithms().values():
        base = get_algorithm(algorithm.chain_of) if algorithm.chain_of else algorithm
        found = [
            [f"`{name}`", _parameter(rule), _parameter_default(rule), _escaped(rule["meaning"])]
            for name, rule in (base.parameters or {}).items()
        ]
        if algorithm.chain_of:
            range_, meaning = f"1 to {MAX_K}", f"a chain of `{base.name}`, this many products each"
            found = [["`products`", range_, "needed", meaning], *found]
        names = " or ".join(f"`{word}`" for word in (algorithm.name, *algorithm.aliases))
        for index, row in enumerate(found or [["none", "", "", ""]]):
            rows.append([names if index == 0 else "", *row])
    return table(_ALGORITHM, rows)


def _parameter(rule: Section) -> str:
    choices = rule.get("choices")
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if rule["type"] == "overflow":
        return ", ".join(f"`{word}`" for word in OVERFLOWS)
    words = {"mode": "a rounding", "int": "an integer", "word": "a code", "bool": "true or false"}
    return words.get(rule["type"], str(rule["type"]))


def _parameter_default(rule: Section) -> str:
    default = rule.get("default")
    if isinstance(default, Section):
        return ", ".join(f"{fmt}: {_default_word(rule, value)}" for fmt, value in default.items())
    if default is None:
        return "none" if rule.get("optional") or rule["type"] == "word" else "needed"
    return _default_word(rule, default)


def _default_word(rule: Section, value: Any) -> str:
    if rule["type"] == "word":
        return f"`{value:#x}`"
    return f"`[{', '.join(value)}]`" if isinstance(value, list) else _spelt(value)


def check() -> None:
    """Refuses a page that is not what the loader says.

    Raises:
        DocsError: with the first line that differs.
    """
    text = (docs_folder() / PAGE).read_text("utf-8")
    for line, (is_, said) in enumerate(
        zip_longest(text.splitlines(), fill(text).splitlines(), fillvalue=""), 1
    ):
        if is_ != said:
            raise DocsError(
                f"docs/{PAGE}:{line}: the page says '{is_}', the loader '{said}'; python -m "
                "golden.publish.schema writes it anew"
            )


def main() -> None:
    """Writes the page anew.

    Raises:
        DocsError: a section or a meaning is missing. FileFormatError: the page cannot be written.
    """
    page = docs_folder() / PAGE
    write_text(page, fill(page.read_text("utf-8")))


if __name__ == "__main__":
    end(main, "golden.publish.schema")
