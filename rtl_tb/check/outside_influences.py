"""Influences on a result other than operands, clock and reset: a PASS holds for one value of each only."""

from __future__ import annotations

import re

from rtl_tb.check.source_text import SourceText
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.drivers import NET, VARIABLE, several_drivers
from rtl_tb.dut.ports import Design
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines.builds import kept_text
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError

_KINDS = {
    re.compile(r"\$(?:u?random(?:_range)?|dist_\w+)\b|\brandomize\b"): "draws random numbers",
    re.compile(r"\$(?:test|value)\$plusargs\b"): "asks the simulator's command line",
    re.compile(r"\$(?:f(?:read|getc|gets|scanf)|system)\b"): "reads files, or starts programs",
    re.compile(r"\$(?:s|real)?time\b"): "asks how long it has run",
    re.compile(r'\$c(?:pure)?\d*\b|\bimport\s*""'): "calls C",
    re.compile(r"\b(?:force|release|deassign)\b"): "forces signals, which no chip does",
    re.compile(
        r"\b(?:fork|wait|wait_order|forever|mailbox|semaphore|chandle)\b"
        r"|(?:^\s*|(?<=[;)])|(?<=[;)] )|(?<=\bbegin )|(?<=\belse ))->>?\s*\w+\s*;"
    ): "has statements of a testbench, which are no hardware",
    re.compile(
        r"@\s*\([^)]*\b(?:posedge\s+(\w+)\b[^)]*\bnegedge\s+\1|negedge\s+(\w+)\b[^)]*\bposedge\s+\2)\b"
        r"|@\s*\(?\s*edge\b|\balways\s+begin\b"
    ): "has processes that no register is: of both edges, or that wait within",
    re.compile(
        r"(?<!parameter )\b(?:short)?real(?:time)?\s+\w+\s*[;,=]|\$(?:itor|rtoi|bitsto(?:short)?real)\b"
    ): "computes with real numbers, which are no hardware",
    re.compile(r"\(\*[^*]*\b(?:(?:black|white)box|(?:any|all)(?:const|seq))\b"): (
        "has an attribute by which synthesis takes no logic from it"
    ),
}
"""Influences, by the constructs of the text."""
_ELABORATED = ("computes with real numbers, which are no hardware",)
"""Influences that constants do not have: tools compute these once, before there is any hardware."""
_NESTED = r"[^;()]"
for _ in range(8):  # parentheses within parentheses: more than a constant has
    _NESTED = rf"(?:[^;()]|\({_NESTED}*\))"
_DECLARED = re.compile(rf"\b(?:localparam|parameter)\b{_NESTED}*")
"""The declaration of parameters, up to its semicolon or the parenthesis that ends a list of them."""
_FUNCTION = re.compile(r"\bfunction\b[^;(]*?(\w+)\s*[;(].*?\bendfunction\b", re.DOTALL)
_ANY = re.compile(
    r"[$@]|always|force|release|deassign|randomize|\(\*|import|fork|wait|forever|mailbox|semaphore|chandle|->|real"
)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_MESSAGE = re.compile(
    r"\$(?:display|write|strobe|monitor|info|warning|error|fatal)\b\s*\((?:[^;$]|\$(?:s|real)?time\b)*"
)
"""Constructs that only print the time."""


_DRIVEN = re.compile(r"\bassign\s*(?:\([^)]*\)\s*)?(?:#\S+\s+)?\{?\s*(\w+)|\bwire\b[^;=]*?(\w+)\s*=")

_PART = re.compile(r"\b(always\w*|initial|assign|(?:end)?(?:function|task))\b")
_LOOP = re.compile(r"\bfor\s*\([^;]*;[^;]*;[^;)]*\)")
_SET = re.compile(r"(?:^|[;:)]|\b(?:begin|else))\s*\{?([A-Za-z_]\w*)(?:\s*\[[^;=]*\])*\s*<?=(?!=)")


def outside_influences(text: SourceText | None) -> list[str]:
    """One sentence for each of these influences in the text that a simulator read."""
    first: dict[str, tuple[str, str]] = {}
    if text is None:
        return []
    of_all = {pattern: what for pattern, what in _KINDS.items() if what not in _ELABORATED}
    of_signals = {pattern: what for pattern, what in _KINDS.items() if what in _ELABORATED}
    for patterns, code, place in (
        *((of_all, *line) for line in text.lines()),
        *((of_signals, *line) for line in SourceText(_without_constants(text.text)).lines()),
    ):
        if not _ANY.search(code):
            continue
        plain = _MESSAGE.sub("$display(", _STRING.sub('""', code))
        for pattern, what in patterns.items():
            if (said := pattern.search(plain)) is not None:
                first.setdefault(what, (said[0], place))
    return [
        f"the text {what} ({said} at {place}); a PASS is of this run" for what, (said, place) in first.items()
    ]


def _without_constants(text: str) -> str:
    """The text without declarations of parameters, and without functions that nothing else calls; lines keep
    their numbers."""
    if re.search(r"real|\$(?:itor|rtoi|bitsto)", text) is None:
        return text
    text = _DECLARED.sub(_blank, text)
    for function in list(_FUNCTION.finditer(text)):
        name = re.compile(rf"\b{function[1]}\b")
        if len(name.findall(text)) == len(name.findall(function[0])):
            text = text.replace(function[0], _blank(function))
    return text


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def signals_with_several_drivers(job: Job, text: SourceText | None) -> list[str]:
    """Sentences about nets with several assignments, of which Verilator takes one and a four-state run covers
    only the first vectors, and about variables set by several processes. (Connected outputs of instances are
    only examined if there is such a net.)"""
    if text is None or not _may_share(text.text):
        return []
    file, wrapper = (
        kept_text(job.build, name, body)
        for name, body in (("as_run", text.text), (NAME, wrapper_of(job.dut)))
    )
    try:
        found = sorted(several_drivers(Design((file, wrapper), NAME)))
    except RtlError as error:
        return [f"whether several drive a net or a variable is not known: {' '.join(str(error).split())}"]
    named = {
        kind: "; ".join(f"{place}: {name}" for place, name, its in found if its == kind)
        for kind in (NET, VARIABLE)
    }
    said = []
    if named[NET] and job.simulator == "verilator":
        said.append(f"several drive the same net, of which Verilator takes one: {named[NET]}")
    if named[VARIABLE]:
        said.append(f"several processes set the same variable, which no register does: {named[VARIABLE]}")
    return said


def _may_share(text: str) -> bool:
    """Whether a module may name something twice as driven; slang decides whether it does."""
    for module in re.split(r"\bendmodule\b", text):
        names = [one or other for one, other in _DRIVEN.findall(module)]
        parts = _PART.split(module)
        for what, part in zip(parts[1::2], parts[2::2], strict=True):
            names += set(_SET.findall(_LOOP.sub(" ", part))) if what.startswith("always") else ()
        if len(set(names)) < len(names):
            return True
    return False
