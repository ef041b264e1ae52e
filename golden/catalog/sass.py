"""Reads and writes spec/sass: what ptxas makes of the scalar PTX instructions, one table a target.

    table = sass.load("sm_90a")
    table.row("mad.lo.u32", "rri").sass                      # "IMAD"
    sass.find("mad.lo.u32")                                  # the forms of spec/ptx/scalar.yaml of that name

A table is two files. `sm_90a.csv` has a row for each form and kind of operands (golden.catalog.ptx_forms):
the machine instructions in the order of the code, each mnemonic once with its number ("2*LOP3.LUT+IMAD"),
"none" where the compiler needs no instruction, and the subroutines that are called with the number of their
instructions. What the compiler computed itself has no row. `sm_90a.yaml` names the compiler, what it refuses
for the target and why, and the content of each subroutine.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from golden.catalog import ptx_forms
from golden.catalog.architectures import get_architecture
from golden.catalog.ptx_forms import Form
from golden.catalog.resolver import resolver
from golden.errors import SpecError, UnknownNameError, nearest, no_match
from golden.files import escape
from golden.files.inputs import read_text
from golden.files.output import write_folder
from golden.paths import spec_folder
from golden.yamlfile import Section, read

NONE = "none"
"""The machine code of a form that takes no instruction: a copy, or an operand that changes nothing."""
COLUMNS = ("ptx", "operands", "sass", "calls")
_TERM = re.compile(r"(?:(\d+)\*)?([A-Z][A-Za-z0-9_.]*)")
_CALL = re.compile(r"(\S+):(\d+)")


@dataclass(frozen=True)
class Row:
    """What one form became with operands of one kind.

    sass: mnemonics with their numbers, or NONE. calls: subroutines with the number of their instructions.
    """

    ptx: str
    operands: str
    sass: str
    calls: tuple[tuple[str, int], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The mnemonics and how often each occurs, without the ones of subroutines."""
        return parse(self.sass)

    @property
    def text(self) -> str:
        """For a reader: with the subroutines."""
        more = "".join(f" [{name}: {length}]" for name, length in self.calls)
        return f"{self.sass}{more}"


@dataclass(frozen=True)
class Table:
    """What one compiler makes of the list for one target.

    rows: by name and kind of operands. refused: ptxas's reason by name. routines: the mnemonics of each
        subroutine, with their numbers.
    """

    target: str
    ptxas: str
    disassembler: str
    rows: Mapping[tuple[str, str], Row]
    refused: Mapping[str, str]
    routines: Mapping[str, str]

    def row(self, ptx: str, operands: str) -> Row | None:
        """The row of a form; None where it is refused, or the compiler computed the result itself."""
        return self.rows.get((ptx, operands))


def counted(names: Iterable[str]) -> str:
    """Mnemonics with their numbers in the order of their first: "2*LOP3.LUT+IMAD"; NONE for nothing."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return "+".join(name if count == 1 else f"{count}*{name}" for name, count in counts.items()) or NONE


def parse(text: str) -> dict[str, int]:
    """The opposite of `counted`.

    Raises:
        ValueError: the text is not of that form.
    """
    if text == NONE:
        return {}
    found: dict[str, int] = {}
    for part in text.split("+"):
        term = _TERM.fullmatch(part)
        if term is None or term[2] in found:
            raise ValueError(f"'{part}' in '{text}' is no mnemonic with its number")
        found[term[2]] = int(term[1] or 1)
    return found


def folder() -> Path:
    """Where the tables lie."""
    return spec_folder() / "sass"


def targets() -> list[str]:
    """The targets that have a table, in the order of the list."""
    return [target for target in ptx_forms.load().targets if (folder() / f"{target}.csv").is_file()]


def targets_of(name: str) -> list[str]:
    """The targets that a name means: the name itself, or the targets of an architecture.

    Raises:
        UnknownNameError: none; names the nearest.
    """
    known = targets()
    if name in known:
        return [name]
    if not name.startswith("sm_"):
        described = get_architecture(resolver().called(name))
        chosen = [target for target in described.targets if target in known]
        if chosen:
            return chosen
    raise UnknownNameError(
        f"no SASS recorded for '{name}', expected one of {', '.join(known)}{nearest(name, known)}"
    )


def find(name: str) -> list[Form]:
    """The forms of a name: with exactly this name, else with names that begin with it and a dot or a space,
    else sequences that hold such a form, as `add.cc.u32; addc.u32` does for `addc.u32`.

    Raises:
        UnknownNameError: none; names the nearest.
    """
    forms = ptx_forms.load().forms
    wanted = " ".join(name.split())
    longer = (f"{wanted}.", f"{wanted} ")
    exact = [form for form in forms if form.name == wanted]
    variants = [form for form in forms if form.name.startswith(f"{wanted} ")]
    begun = [form for form in forms if form.name.startswith(longer)]
    if exact or begun:
        return exact + variants if exact else begun
    parts = {form.name: form.name.split("; ") for form in forms}
    if held := [form for form in forms if any(p == wanted or p.startswith(longer) for p in parts[form.name])]:
        return held
    names = [form.name for form in forms]
    if nearest(name, names):
        raise UnknownNameError(f"no scalar PTX instruction '{name}'{nearest(name, names)}")
    raise no_match("scalar PTX instruction", name, names)


# Files ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def load(target: str, where: Path | None = None) -> Table:
    """Reads the table of a target.

    Raises:
        UnknownNameError: there is none.
        SpecError: a file is wrong; file and line.
    """
    place = where or folder()
    path = place / f"{target}.csv"
    if not path.is_file():
        raise UnknownNameError(f"no SASS recorded for '{target}'{nearest(target, targets())}")
    about = read(place / f"{target}.yaml")
    ptxas, disassembler = about.take("ptxas", str), about.take("disassembler", str)
    refused: dict[str, str] = {}
    for entry in about.take("refused", list, []):
        reason = entry.take("reason", str)
        refused |= dict.fromkeys(entry.take_names("forms"), reason)
    section = about.take("routines", Section, Section("", 0))
    routines = {name: _checked(section, name) for name in section}
    about.done()
    return Table(target, ptxas, disassembler, _rows(path), refused, routines)


def _checked(section: Section, name: str) -> str:
    text: str = section.take(name, str)
    try:
        parse(text)
    except ValueError as error:
        raise section.error(str(error), name) from None
    return text


def _rows(path: Path) -> dict[tuple[str, str], Row]:
    max_bytes = 4 << 20
    lines = csv.reader(io.StringIO(read_text(path, max_bytes)))
    if tuple(next(lines, ())) != COLUMNS:
        raise SpecError(f"{path}:1: expected the columns {', '.join(COLUMNS)}")
    found: dict[tuple[str, str], Row] = {}
    for cells in lines:
        try:
            ptx, operands, sass, calls = cells
            parse(sass)
            row = Row(ptx, operands, sass, tuple(map(_call, calls.split())))
        except ValueError as error:
            raise SpecError(f"{path}:{lines.line_num}: {error}") from None
        if (ptx, operands) in found:
            raise SpecError(f"{path}:{lines.line_num}: '{ptx}' with operands '{operands}' stands there twice")
        found[ptx, operands] = row
    return found


def _call(text: str) -> tuple[str, int]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no subroutine with the number of its instructions, as 'name:12'")
    return found[1], int(found[2])


def write(table: Table, where: Path) -> None:
    """Writes both files of a table into a folder, both or neither."""
    rows = (
        (row.ptx, row.operands, row.sass, " ".join(f"{name}:{n}" for name, n in row.calls))
        for row in table.rows.values()
    )
    text = escape.csv_text(COLUMNS, rows)
    write_folder(where, {f"{table.target}.csv": text, f"{table.target}.yaml": _about(table)})
    load.cache_clear()


def _about(table: Table) -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in table.refused.items():
        by_reason.setdefault(reason, []).append(name)
    lines = [
        "# Written by `mmagold sass --rebuild`; the rows are in the CSV file of the same name.",
        f"ptxas: {json.dumps(table.ptxas)}",
        f"disassembler: {json.dumps(table.disassembler)}",
        "refused:" if by_reason else "refused: []",
    ]
    for reason, names in by_reason.items():
        lines += [f"  - reason: {json.dumps(reason)}", f"    forms: {json.dumps(names)}"]
    lines.append("routines:" if table.routines else "routines: {}")
    lines += [f"  {json.dumps(name)}: {json.dumps(table.routines[name])}" for name in sorted(table.routines)]
    return "\n".join(lines) + "\n"


COMPUTED = "computed by the compiler"
"""In the place of a row where the result depends on no source."""


def by_text(ptx: str, operands: str, tables: Mapping[str, Table]) -> dict[str, list[str]]:
    """The targets by what they make of a form."""
    found: dict[str, list[str]] = {}
    for target, table in tables.items():
        row = table.row(ptx, operands)
        text = row.text if row else f"refused: {table.refused[ptx]}" if ptx in table.refused else COMPUTED
        found.setdefault(text, []).append(target)
    return found


def targets_text(where: list[str], among: list[str]) -> str:
    """ "all", or the targets, runs of three and more as "sm_75 to sm_89"."""
    if where == among and len(where) > 1:
        return "all"
    runs: list[list[str]] = []
    for target in where:
        follows = runs and among.index(runs[-1][-1]) + 1 == among.index(target)
        runs = [*runs[:-1], [*runs[-1], target]] if follows else [*runs, [target]]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


# Comparing --------------------------------------------------------------------------------------------------


def differences(recorded: Table, fresh: Table) -> list[str]:
    """Sentences about the forms in which two tables of a target differ; none where they are equal."""
    return [
        *_differing(_cells(recorded), _cells(fresh)),
        *_differing(dict(recorded.routines), dict(fresh.routines)),
    ]


def _cells(table: Table) -> dict[str, str]:
    rows = {f"{ptx} ({operands or 'no source'})": row.text for (ptx, operands), row in table.rows.items()}
    return rows | {name: f"refused: {reason}" for name, reason in table.refused.items()}


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    nothing = "no row"
    return [
        f"{name}: {before.get(name, nothing)} was recorded, now {after.get(name, nothing)}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
