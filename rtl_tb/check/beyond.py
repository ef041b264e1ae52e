"""What a result may depend on beside operands, clock and reset: a PASS is of one such value alone."""

from __future__ import annotations

import re

from rtl_tb.check.readings import Reading

_KINDS = {
    re.compile(r"\$(?:u?random(?:_range)?|dist_\w+)\b|\brandomize\b"): "draws random numbers",
    re.compile(r"\$(?:test|value)\$plusargs\b"): "asks the simulator's command line",
    re.compile(r"\$(?:f(?:read|getc|gets|scanf)|system)\b"): "reads files, or starts programs",
    re.compile(r"\bforce\b"): "forces signals, which no chip does",
    re.compile(r"\(\*[^*]*\b(?:(?:black|white)box|(?:any|all)(?:const|seq))\b"): (
        "has an attribute by which synthesis takes no logic from it"
    ),
}
"""What code does, by what it says."""
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def beyond(text: Reading | None) -> list[str]:
    """One sentence for each such thing in the text that a simulator read."""
    first: dict[str, tuple[str, str]] = {}
    for code, place in text.lines() if text is not None else ():
        if not re.search(r"\$|force|randomize|\(\*", code):
            continue
        plain = _STRING.sub('""', code)
        for pattern, what in _KINDS.items():
            if (said := pattern.search(plain)) is not None:
                first.setdefault(what, (said[0], place))
    return [
        f"the text {what} ({said} at {place}); a PASS is of this run" for what, (said, place) in first.items()
    ]
