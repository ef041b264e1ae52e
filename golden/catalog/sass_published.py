"""Table V of H. Abdelkhalik et al. (arXiv 2208.11174) and their six insights, held against spec/sass.

    for row in table_v():
        print(row.ptx, row.printed, row.verdict, row.operands, row.ours)

The paper prints SASS of an A100 by the compiler of its day; ours is what the recorded ptxas makes for sm_80
and the other targets. Its operands were constants and results of other instructions, so that much of it
stands in the uniform datapath; a row counts as equal when any kind of operands gives the printed
instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from golden.catalog import ptx_forms, sass
from golden.catalog.sass import Row, Table
from golden.catalog.timing import load as load_timing

PAPER, TABLE, TARGET = "abdelkhalik_a100", "V", "sm_80"
SAME, ALIKE, SEVERAL, OTHER = "same", "same operations", "several, as printed", "changed"
VERDICTS = {
    SAME: "the same mnemonics, each as often",
    ALIKE: "the same operations: other modifiers or number, another pipe or the uniform datapath",
    SEVERAL: "the paper says several instructions, with one that it names; so it is",
    OTHER: "other instructions",
}
_ALIASES = {
    "addc.u32": ("add.cc.u32; addc.u32",),
    "lop3.b32": ("lop3.b32 0xe8",),
    "mov.u32 clock": ("mov.u32 %clock",),
    "bfe.s32/.u32": ("bfe.s32", "bfe.u32"),
    "sad.u16/s16": ("sad.u16", "sad.s16"),
    "sad.u32/s32": ("sad.u32", "sad.s32"),
    "sad.u64/s64": ("sad.u64", "sad.s64"),
    "rem/div.u16/s16": ("rem.u16", "rem.s16", "div.u16", "div.s16"),
    "rem/div.s32/u32": ("rem.s32", "rem.u32", "div.s32", "div.u32"),
    "rem/div.u64/s64": ("rem.u64", "rem.s64", "div.u64", "div.s64"),
    "testp.subnor.f32": ("testp.subnormal.f32",),
    "testp.subnor.f64": ("testp.subnormal.f64",),
    "rsqrt.approx.f64": ("rsqrt.approx.f64", "rsqrt.approx.ftz.f64"),
}
_MNEMONIC = re.compile(r"(?:(?P<count>[\d.]+)\s*\*\s*)?(?P<name>[A-Z][A-Z0-9]*(?:\.[A-Za-z0-9]+)*)")
_PRINTED_AS = {"IADD": "IADD3", "HADD": "HADD2", "FSTEP": "FSETP", "LOP3": "LOP3.LUT"}
"""What the paper shortens or misspells."""
_OTHER_PIPE = {
    "IMAD.MOV": "MOV",
    "IMAD.U32": "MOV",
    "MOV": "MOV",
    "IMAD.IADD": "IADD3",
    "IMAD.X": "IADD3",
    "VIADD": "IADD3",
    "IADD3": "IADD3",
    "IMAD.SHL": "SHF.L.U32",
}
_SEVERAL = re.compile(r"multiple inst\w*(?: including (?P<named>\S+?))?\]?$")


@dataclass(frozen=True)
class Published:
    """A row of the paper and the nearest of ours for its chip.

    ptx: as the paper writes it. verdict: of VERDICTS. operands, ours: the kind of operands that comes
        nearest, and its machine code.
    """

    ptx: str
    printed: str
    verdict: str
    form: str
    operands: str
    ours: str


@lru_cache(maxsize=1)
def table_v() -> list[Published]:
    """Every row of Table V."""
    ours = sass.load(TARGET)
    figures = [figure for figure in load_timing(PAPER) if figure.table == TABLE]
    return [_published(figure.instruction, figure.sass, ours) for figure in figures]


def _published(ptx: str, printed: str, ours: Table) -> Published:
    names = _ALIASES.get(ptx, (ptx,))
    rows = [row for row in ours.rows.values() if row.ptx in names]
    order = list(VERDICTS)
    if not rows:
        return Published(ptx, printed, OTHER, names[0], "", ours.refused.get(names[0], sass.NONE))
    best = min(rows, key=lambda row: (order.index(_verdict(printed, row)), "u" in row.operands))
    return Published(ptx, printed, _verdict(printed, best), best.ptx, best.operands, best.text)


def _verdict(printed: str, row: Row) -> str:
    several = _SEVERAL.search(printed)
    if several:
        named = several["named"] or ""
        here = sum(row.counts.values()) > 1 or bool(row.calls)
        return SEVERAL if here and any(name.startswith(named) for name in row.counts) else OTHER
    parts = re.split(r"\bor\b", printed)
    alternatives = [_counts(part) for part in (*parts, *(re.sub(r"\+\([^)]*\)", "", part) for part in parts))]
    if row.counts in alternatives:
        return SAME
    found = [_operations(counts, row.ptx) for counts in (row.counts, *alternatives)]
    return ALIKE if found[0] in found[1:] else OTHER


def _counts(printed: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for match in _MNEMONIC.finditer(printed):
        name = _PRINTED_AS.get(match["name"], match["name"]).replace(".x", ".X")
        count = float(match["count"] or 1)
        found[name] = found.get(name, 0) + (int(count) if count == int(count) else 1)
    return found


def _operations(counts: dict[str, int], ptx: str) -> frozenset[str]:
    """What is done, whichever datapath and pipe does it: "UIADD3.X" and "IMAD.X" are "IADD3"."""
    return frozenset(operation(name, ptx).split(".")[0] for name in counts)


def operation(name: str, ptx: str) -> str:
    """A mnemonic without what chooses a datapath or a pipe: ptxas spreads moves, additions and shifts over
    both integer pipes, and writes constants with HFMA2 where `ptx` is no instruction of halves."""
    plain = re.sub(r"^U(?=[A-Z])", "", name)
    if plain in ("HFMA2", "HFMA2.MMA") and "f16" not in ptx:
        return "MOV"
    for beginning, other in _OTHER_PIPE.items():
        if plain == beginning or plain.startswith(f"{beginning}."):
            return other
    return plain


# The insights -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Insight:
    """One of the paper's statements and what the tables have, by target."""

    number: int
    statement: str
    found: dict[str, str]

    def by_text(self) -> dict[str, list[str]]:
        """The targets by what was found there."""
        groups: dict[str, list[str]] = {}
        for target, text in self.found.items():
            groups.setdefault(text, []).append(target)
        return groups


def insights() -> list[Insight]:
    """The six insights of section V-A, re-examined for every target."""
    tables = {target: sass.load(target) for target in sass.targets()}
    return [
        Insight(number, statement, {target: look(table) for target, table in tables.items()})
        for number, (statement, look) in enumerate(_INSIGHTS, 1)
    ]


def _text(table: Table, ptx: str, operands: str) -> str:
    if ptx in table.refused:
        return "refused"
    row = table.row(ptx, operands)
    return "computed by the compiler" if row is None else row.text


def _listed(table: Table, *cells: tuple[str, str, str]) -> str:
    return "; ".join(f"{words}: {_text(table, ptx, operands)}" for words, ptx, operands in cells)


def _pipes(table: Table) -> str:
    return _listed(
        table,
        ("mad.lo.u32", "mad.lo.u32", "rrr"),
        ("two independent adds and mads", "add.u32 x 2 and mad.lo.u32 x 2, independent", "rrrr"),
        ("three dependent adds", "add.u32 x 3, dependent", "rrrr"),
        ("three independent adds", "add.u32 x 3, independent", "rrrr"),
        ("eight dependent pairs of add and xor", "add.u32 x 8, dependent through xor", "rrrr"),
    )


def twins(table: Table) -> Iterator[tuple[Row, Row]]:
    """Rows of unsigned forms on registers, each with the row that differs only in the sign of its types."""
    for row in table.rows.values():
        if set(row.operands) != {"r"}:
            continue
        other = re.sub(r"(?<=[.])u(?=(?:8|16|32|64|4|2|16x2)(?:$|[.; ]))", "s", row.ptx)
        signed = table.row(other, row.operands)
        if other != row.ptx and signed is not None:
            yield row, signed


def _plain(row: Row) -> dict[str, int]:
    """The operations without modifiers of sign."""
    found: dict[str, int] = {}
    for name, count in row.counts.items():
        plain = re.sub(r"\.[US](?:8|16|32|64|4|2)(?=\.|$)", "", operation(name, row.ptx))
        found[plain] = found.get(plain, 0) + count
    return found


def _signedness(table: Table) -> str:
    same, modifier, as_many, more = 0, 0, 0, dict[str, None]()
    pairs = list(twins(table))
    for unsigned, signed in pairs:
        if unsigned.text == signed.text:
            same += 1
        elif _plain(unsigned) == _plain(signed):
            modifier += 1
        elif sum(unsigned.counts.values()) == sum(signed.counts.values()):
            as_many += 1
        else:
            more[unsigned.ptx.split(".")[0]] = None
    return (
        f"of {len(pairs)} pairs {same} are the same, {modifier} but for the pipe or a modifier such as .U32, "
        f"{as_many} other instructions, equally many, {len(pairs) - same - modifier - as_many} more "
        f"instructions "
        f"for one of the two: {', '.join(sorted(more))}"
    )


def _initialised(table: Table) -> str:
    return _listed(
        table,
        ("neg.f32 of a loaded register", "neg.f32", "r"),
        ("after add.f32", "add.f32; neg.f32", "rr"),
        ("after mov of a register", "mov.f32; neg.f32", "r"),
        ("after mov of a constant", "mov.f32; neg.f32", "i"),
        ("abs.f32 of a loaded register", "abs.f32", "r"),
        ("after add.f32", "add.f32; abs.f32", "rr"),
        ("after mov of a constant", "mov.f32; abs.f32", "i"),
    )


def _one_to_one(table: Table) -> str:
    rows = [row for row in table.rows.values() if set(row.operands) == {"r"} and ";" not in row.ptx]
    sizes = [sum(row.counts.values()) for row in rows]
    one, none = sizes.count(1), sizes.count(0)
    calls = len([row for row in rows if row.calls])
    return (
        f"of {len(rows)} forms with register operands {one} are one instruction, {none} none, "
        f"{len(rows) - one - none} several, {calls} of them with a subroutine; "
        + _listed(table, ("sin.approx.f32", "sin.approx.f32", "r"), ("div.u64", "div.u64", "rr"))
    )


def _sixty_four(table: Table) -> str:
    return _listed(
        table,
        ("mad.lo.u64", "mad.lo.u64", "rrr"),
        ("mul.lo.u64", "mul.lo.u64", "rr"),
        ("add.f64", "add.f64", "rr"),
        ("fma.rn.f64", "fma.rn.f64", "rrr"),
    )


def _tests(table: Table) -> str:
    names = [form.name for form in ptx_forms.load().forms if form.name.startswith("testp.")]
    return _listed(table, *((name, name, "r") for name in names))


_INSIGHTS: tuple[tuple[str, Callable[[Table], str]], ...] = (
    (
        "mad runs on the floating-point pipe (mad.lo.u32 is FFMA); dependent adds become IADD3 or IMAD.IADD",
        _pipes,
    ),
    ("signed or unsigned makes no difference but for bfind, min and max", _signedness),
    ("neg.f32 and abs.f32 are FADD after an add, and merge with a mov into one IMAD.MOV", _initialised),
    ("many PTX instructions are one SASS instruction; div, rem, sin and cos are several", _one_to_one),
    (
        "instructions of one width differ: mad.lo.u64 is one IMAD, double precision takes twice as long",
        _sixty_four,
    ),
    ("for testp, the requested state decides", _tests),
)
