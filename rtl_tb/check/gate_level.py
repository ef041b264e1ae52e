"""The netlist that synthesis makes of a unit, with every bit that the language leaves undefined as an
undriven register: X of literals and of unset variables, the result of a `case` that is declared full or
parallel and is not, elements beyond a vector, quotients by zero.

Yosys with slang elaborates the unit in its wrapper. A run of its netlist starts these bits as zeros, as ones
or at random (`Job.start`); a chip has any of them.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rtl_tb.check.source_text import on_text
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.slang import GET_PYSLANG
from rtl_tb.dut.translated import AS_TEXT, elaborated_by
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import kept_text
from rtl_tb.engines.job import Job
from rtl_tb.errors import SimulatorMissing
from rtl_tb.simulators import translators

_UNDEFINED, _CELLS = "mmagold_undefined", "undefined_cells.v"
_REGISTER = f"\nmodule {_UNDEFINED} #(parameter WIDTH = 1) (output reg [WIDTH-1:0] Y);\nendmodule\n"
_QUOTIENT = """
module mmagold_KIND (A, B, Y);
    parameter A_SIGNED = 0, B_SIGNED = 0, A_WIDTH = 0, B_WIDTH = 0, Y_WIDTH = 0;
    input [A_WIDTH-1:0] A; input [B_WIDTH-1:0] B; output [Y_WIDTH-1:0] Y;
    wire [Y_WIDTH-1:0] quotient;
    \\$KIND #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH),
        .Y_WIDTH(Y_WIDTH)) divider (.A(A), .B(B), .Y(quotient));
    assign Y = B == 0 ? {Y_WIDTH{1'bx}} : quotient;
endmodule
"""
_QUOTIENTS = ("div", "mod", "divfloor", "modfloor")
_UNDEFINED_CELLS = "".join(_QUOTIENT.replace("KIND", kind) for kind in _QUOTIENTS)
_COMMANDS = (
    # 1. X where a cell of Yosys is defined and the language is not.
    *(f"chtype -set mmagold_{kind} t:${kind}" for kind in _QUOTIENTS),
    f"techmap -map {_CELLS} t:mmagold_*",
    "techmap t:$shiftx",  # a part of a vector, as multiplexers with X beyond its ends
    *AS_TEXT,
    # 2. Without branches that no select reaches. Nothing else is optimised: it may choose a value for an X.
    "opt_muxtree",
    "clean",
    "write_verilog places.v",
    # 3. Each X becomes a bit of its own.
    "setundef -undriven -anyconst",
    "write_verilog -noattr -noparallelcase netlist.v",
)
_X = re.compile(r"'s?[bhod][0-9a-f_]*x")
_SOURCES = re.compile(r'src = "([^"]*)"')
_UNIQUE_IF = re.compile(r"\bunique0?\s+if\b")
_PRAGMAS = re.compile(r"/\*verilator (full_case|parallel_case)\*/")
_LOCALS = re.compile(r"\b(?:function|task)\b")
_TWO_STATES = ("BitType", "ByteType", "ShortIntType", "IntType", "LongIntType")
_ROUTINES = ("FunctionDeclaration", "TaskDeclaration", "SequentialBlockStatement")
_PARALLEL = re.compile(r"\bunique0?\b|\bparallel_case\b")
_NUMBER = re.compile(r"\d*'s?[bdho][0-9a-fA-F_]+|\d+")
_CONSTANT = re.compile(rf"{_NUMBER.pattern}|[A-Za-z_]\w*")
"""A number, or a name, which may be that of a constant."""
_INITIAL = re.compile(r"\binitial\b|\w\s*=(?!=)")
_BODIES = ("ModuleDeclaration", "InterfaceDeclaration", "GenerateBlock", "GenerateRegion")
Edit = tuple[int, int, str]
"""A replacement of the bytes from one place of the text to another."""


@dataclass(frozen=True)
class Netlist:
    """A unit in its wrapper as gates.

    Attributes:
        job: the job with the netlist instead of the unit's text.
        undefined: whether it has undefined bits; `places`: "file:line" of text that causes them, if the
            netlist names it.
    """

    job: Job
    undefined: bool
    places: tuple[str, ...]


def synthesise(job: Job, text: str) -> Netlist:
    """The netlist of a text of a job's unit.

    Raises:
        SimulatorMissing: there is no Yosys with slang. ElaborationError: it refuses the text.
    """
    yosys = translators.yosys()
    mine = on_text(job, text, "synthesis")
    with tempfile.TemporaryDirectory(prefix="mmagold_netlist_") as name:
        folder = Path(name)
        (folder / _CELLS).write_text(_UNDEFINED_CELLS, encoding="utf-8")
        elaborated_by(yosys, mine.dut, wrapper_of(job.dut), _COMMANDS, folder)
        places, netlist = (
            (folder / f"{each}.v").read_text(encoding="utf-8") for each in ("places", "netlist")
        )
    netlist = netlist.replace(r"\$anyconst ", _UNDEFINED)
    undefined = _UNDEFINED in netlist
    file = kept_text(job.build, NAME, netlist + _REGISTER * undefined)
    cpp = mine.dut.sources[1:]  # the text itself is the first
    mine = replace(mine, dut=replace(mine.dut, sources=cpp, netlist=file))
    return Netlist(mine, undefined, _places(places))


def _places(text: str) -> tuple[str, ...]:
    """The designer's "file:line" of the lines of a netlist with X, from an attribute in or above them."""
    found: dict[str, None] = {}
    above: list[str] = []
    for line in text.splitlines():
        sources = _SOURCES.findall(line) or above
        if _X.search(line):
            for source in (each for one in sources for each in one.split("|")):
                file, _, at = source.rpartition(":")
                if Path(file).name != _CELLS:
                    found[f"{Path(file).name}:{at.partition('.')[0]}"] = None
        above = sources if line.lstrip().startswith("(*") else []
    return tuple(found)


def declared(text: str) -> str:
    """The text with declarations of choices in the one form that Yosys obeys: `unique if` as the equivalent
    `unique case (1'b1)` (Yosys takes the first branch whose condition holds, as simulators do, while other
    synthesis merges several), and pragmas full_case and parallel_case as attributes. Local two-state
    variables start as zeros, as the language requires and Yosys does not."""
    edits: list[Edit] = []

    def put(token: Any, instead: str) -> None:
        edits.append((token.range.start.offset, token.range.end.offset, instead))

    def unique_if(node: Any) -> None:
        put(node.ifKeyword, "case (1'b1)")
        part, end = node, 0
        while part is not None:
            put(part.openParen, " ((")
            put(part.closeParen, ") ? 1'b1 : 1'b0):")
            end, other, part = part.statement.sourceRange.end.offset, part.elseClause, None
            if other is None:
                continue
            last, end = other.clause, other.clause.sourceRange.end.offset
            goes_on = last.kind.name == "ConditionalStatement" and not last.uniqueOrPriority.valueText
            put(other.elseKeyword, "" if goes_on else "default:")
            if goes_on:
                put(last.ifKeyword, "")
                part = last
        edits.append((end, end, " endcase"))

    def look(node: Any) -> None:
        kind = node.kind.name if hasattr(node, "parent") else ""  # a token has none
        if kind == "ConditionalStatement" and node.uniqueOrPriority.valueText.startswith("unique"):
            unique_if(node)
        elif kind == "CaseStatement" and len(node.items):
            said = text[node.closeParen.range.end.offset : node.items[0].sourceRange.start.offset]
            first = node.sourceRange.start.offset
            if flags := _PRAGMAS.findall(said):
                edits.append((first, first, f"(* {', '.join(dict.fromkeys(flags))} *) "))

        elif kind == "DataDeclaration" and node.type.kind.name in _TWO_STATES and not len(node.modifiers):
            for one in node.declarators if node.parent.kind.name in _ROUTINES else ():
                if getattr(one, "initializer", True) is None:
                    end = one.sourceRange.end.offset
                    edits.append((end, end, " = '{default: 0}" if len(one.dimensions) else " = 0"))

    if _UNIQUE_IF.search(text) or _PRAGMAS.search(text) or _LOCALS.search(text):
        _tree(text).visit(look)
    return _edited(text, edits)


def other_choices(text: str) -> str:
    """A text, with all `declared`, in which each `case` that is declared parallel, and of which several items
    may match, takes the last one, or none: the declaration excludes such matches."""
    tail: list[Edit] = []

    def count_matches(node: Any) -> None:
        items = _overlapping(node)
        if items and _NUMBER.fullmatch(str(node.expr).strip()):
            bits = ", ".join(f"({each}) == 1'b1" for item in items for each in _texts(item))
            end = items[-1].sourceRange.end.offset
            # The undefined bit chooses; behind the last item, so that it is the first of the reversed ones.
            tail.append((end, end, f" (($countones({{{bits}}}) > 1) && 1'bx): ;"))

    def note(node: Any) -> None:
        if items := _overlapping(node):
            head = node.sourceRange.start.offset, node.caseKeyword.range.start.offset
            spans = [(each.sourceRange.start.offset, each.sourceRange.end.offset) for each in items]
            found.append((head, spans))

    found: list[tuple[tuple[int, int], list[tuple[int, int]]]] = []
    if not _PARALLEL.search(text):
        return text
    _tree(text).visit(count_matches)
    text = _edited(text, tail)
    _tree(text).visit(note)
    data = bytearray(text.encode())
    # The inner ones first: each keeps its length, and so the places of the outer ones.
    for (start, end), spans in sorted(found, reverse=True):
        pieces = [bytes(data[first:last]) for first, last in spans]
        between = [bytes(data[last:first]) for (_, last), (first, _) in pairwise(spans)]
        whole = b"".join(part for pair in zip(pieces[::-1], [*between, b""], strict=True) for part in pair)
        data[spans[0][0] : spans[-1][1]] = whole
        data[start:end] = bytes(
            byte if byte in b"\n" else 32 for byte in data[start:end]
        )  # no longer parallel
    return data.decode()


def _overlapping(node: Any) -> list[Any]:
    """The items of a `case` that is declared parallel, unless they are different constants."""
    if getattr(node, "kind", None) is None or node.kind.name != "CaseStatement":
        return []
    before = [str(node.uniqueOrPriority), *(str(each) for each in node.attributes)]
    if not _PARALLEL.search(" ".join(before)):
        return []
    items = [item for item in node.items if item.kind.name == "StandardCaseItem"]
    said = [each for item in items for each in _texts(item)]
    constants = all(map(_CONSTANT.fullmatch, said)) and not _NUMBER.fullmatch(str(node.expr).strip())
    return [] if constants and len(set(said)) == len(said) else items


def _texts(item: Any) -> list[str]:
    return [str(each).strip() for each in item.expressions if each.kind.name != "Token"]


def without_initials(text: str) -> tuple[str, list[int]]:
    """The text without initial values of signals, and the places of these."""
    edits: list[Edit] = []

    def remove(node: Any) -> None:
        edits.append((node.sourceRange.start.offset, node.sourceRange.end.offset, ""))

    def look(node: Any) -> None:
        above = getattr(node, "parent", None)  # a token has none
        if above is None or above.kind.name not in _BODIES:
            return
        if node.kind.name == "InitialBlock":
            remove(node)
        elif node.kind.name == "DataDeclaration" and all(
            each.valueText != "const" for each in node.modifiers
        ):
            for one in node.declarators:
                if getattr(one, "initializer", None) is not None:
                    remove(one.initializer)

    if _INITIAL.search(text):
        _tree(text).visit(look)
    return _edited(text, edits), [start for start, _, _ in edits]


def _tree(text: str) -> Any:
    """The syntax of a text; raises SimulatorMissing without slang."""
    try:
        return importlib.import_module("pyslang.syntax").SyntaxTree.fromText(text).root
    except ImportError as error:
        raise SimulatorMissing(f"slang reads what a text declares; install it: {GET_PYSLANG}") from error


def _edited(text: str, edits: list[Edit]) -> str:
    """The text with each stretch of bytes replaced; lines keep their numbers."""
    data, pieces, at = text.encode(), list[bytes](), 0
    for start, end, instead in sorted(edits, key=lambda each: each[:2]):
        pieces += [data[at:start], instead.encode(), b"\n" * data[start:end].count(b"\n")]
        at = end
    return b"".join([*pieces, data[at:]]).decode()
