"""What a result may depend on beside operands, clock and reset: a PASS is of one such value alone."""

from __future__ import annotations

import re

from rtl_tb.check.readings import Reading
from rtl_tb.dut.drivers import several_drivers
from rtl_tb.dut.ports import Design
from rtl_tb.dut.wrapper import NAME, wrapper_of
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
    re.compile(r"\b(?:fork|wait|wait_order|forever|mailbox|semaphore|chandle)\b|->>?\s*\w+\s*;"): (
        "has statements of a testbench, which are no hardware"
    ),
    re.compile(
        r"(?<!parameter )\b(?:short)?real(?:time)?\s+\w+\s*[;,=]|\$(?:itor|rtoi|bitsto(?:short)?real)\b"
    ): "computes with real numbers, which are no hardware",
    re.compile(r"\(\*[^*]*\b(?:(?:black|white)box|(?:any|all)(?:const|seq))\b"): (
        "has an attribute by which synthesis takes no logic from it"
    ),
}
"""What code does, by what it says."""
_ANY = re.compile(
    r"\$|force|release|deassign|randomize|\(\*|import|fork|wait|forever|mailbox|semaphore|chandle|->|real"
)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


_DRIVEN = re.compile(r"\bassign\s*(?:\([^)]*\)\s*)?(?:#\S+\s+)?\{?\s*(\w+)|\bwire\b[^;=]*?(\w+)\s*=")


def beyond(text: Reading | None) -> list[str]:
    """One sentence for each such thing in the text that a simulator read."""
    first: dict[str, tuple[str, str]] = {}
    for code, place in text.lines() if text is not None else ():
        if not _ANY.search(code):
            continue
        plain = _STRING.sub('""', code)
        for pattern, what in _KINDS.items():
            if (said := pattern.search(plain)) is not None:
                first.setdefault(what, (said[0], place))
    return [
        f"the text {what} ({said} at {place}); a PASS is of this run" for what, (said, place) in first.items()
    ]


def shared_nets(job: Job, text: Reading | None) -> list[str]:
    """A sentence where several assignments drive a net: Verilator takes one of them, and four states show
    only the first vectors. (Of outputs of instances that meet, nobody looks unless there are such, too.)"""
    if text is None or job.simulator != "verilator":
        return []
    names = [one or other for one, other in _DRIVEN.findall(text.text)]
    if len(set(names)) == len(names):
        return []
    file, wrapper = (
        kept_text(job.build, name, body)
        for name, body in (("as_run", text.text), (NAME, wrapper_of(job.dut)))
    )
    try:
        found = sorted(several_drivers(Design((file, wrapper), NAME)))
    except RtlError as error:
        return [f"whether several drive a net is not known: {' '.join(str(error).split())}"]
    nets = "; ".join(f"{place}: {name}" for place, name in found)
    return [f"several drive the same net, of which Verilator takes one: {nets}"] if found else []
