"""Text from outside (the name and title of somebody's unit, the path of a file) made harmless in each
language that is generated.

One function for each language; whatever text it gets, the result stays inside the place it was written for
and reads as the same words. HTML, SVG and XML: `html.escape` of the standard library
(golden/publish/pictures/svg.py, golden/cover/page.py); Typst takes text as string literals
(golden/publish/typst_writer.py). Numbers and the identifiers of the specs need none of this.

`table` makes Markdown of facts: cells are text whose signs mean nothing. `csv_text` makes CSV.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_MARKUP = re.compile(r"[\\`*\[\]#~|!$]|(?<!\w)_|_(?!\w)")
_NUMBERED = re.compile(r"^(\d+)([.)])|^([-+=:])")
_TICKS = re.compile(r"`+")


_SYSTEMVERILOG = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin
bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking
cmos config const constraint context continue cover covergroup coverpoint cross deassign default defparam
design disable dist do edge else end endcase endchecker endclass endclocking endconfig endfunction
endgenerate endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endsequence
endspecify endtable endtask enum event eventually expect export extends extern final first_match for
force foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone
ignore_bins illegal_bins implements implies import incdir include initial inout input inside instance int
integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos
nor noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive
priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent
pure rand randc randcase randsequence rcmos real realtime ref reg reject_on release repeat restrict
return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared
sequence shortint shortreal showcancelled signed small soft solve specify specparam static string strong
strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this
throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type
typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
SYSTEMVERILOG = frozenset(_SYSTEMVERILOG.split())
"""The reserved words of SystemVerilog, which name nothing (IEEE 1800-2017, annex B)."""
_C = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast requires restrict return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
C = frozenset(_C.split())
"""The keywords of C (ISO/IEC 9899:2024) and C++ (14882:2020), which name nothing."""


def one_line(text: str) -> str:
    """The text in one line; characters that cannot be printed as backslash escapes."""
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def markdown(text: str) -> str:
    """Text in a paragraph, a heading, a list item or a cell of a table."""
    marked = _NUMBERED.sub(r"\1\\\2\3", _MARKUP.sub(r"\\\g<0>", one_line(text)))
    return html.escape(marked, quote=False)  # no reader of Markdown, however lax, finds an element in it


def plain(text: str) -> str:
    """The text that `markdown` was given."""
    return html.unescape(re.sub(r"\\([^A-Za-z0-9\s])", r"\1", text))


def fence(text: str) -> str:
    """What a block of code is put between: more backticks than it holds in a row, at least three."""
    return "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))


def line_comment(text: str) -> str:
    """Text after `//` of C, SystemVerilog or a readmemh file:
    one line, which does not run on into the next."""
    inner = one_line(text).replace("??/", "?? /")
    return f"{inner} ." if inner.endswith("\\") else inner


def block_comment(text: str) -> str:
    """Text between `/*` and `*/` of C and SystemVerilog."""
    return re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", one_line(text))


def file_stem(text: str) -> str:
    """A name for a file that needs no quotes in any shell."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-") or "unit"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; bars in cells are escaped, line breaks become spaces."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV with a header; lines end as on Unix."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    return str(value).replace("\\|", "|").replace("|", "\\|").replace("\n", " ")


def escaped(text: str) -> str:
    """Text in which no sign is Markdown's."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
