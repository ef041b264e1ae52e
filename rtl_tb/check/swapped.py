"""What a diagnosis says of ports that dut.yaml may have in each other's place."""

from __future__ import annotations

import re

from golden.identify.diagnosis import Diagnosis
from rtl_tb.dut.description import Dut

_SWAPPED = re.compile(r"(a|b|c|scale-a|scale-b)-and-(a|b|c|scale-a|scale-b)-swapped")


def swapped_ports(dut: Dut, diagnosis: Diagnosis | None) -> list[str]:
    """A hint where the unit reads two operands in each other's place: results cannot tell a fault inside the
    RTL from one of its description. Ports that are called as the operands are give none."""
    best = diagnosis.hypotheses[0] if diagnosis is not None and diagnosis.explains else None
    found = None if best is None else next(filter(None, map(_SWAPPED.fullmatch, best.slug.split("+"))), None)
    if found is None:
        return []
    names = [name.replace("-", "_") for name in found.groups()]
    lies = {name: ", ".join(dut.ports[name].ports) for name in names if name in dut.ports}
    if all(name.lower() == port.lower() for name, port in lies.items()):
        return []
    said = " and ".join(f"{name} is {port}" for name, port in lies.items())
    return [f"ports of dut.yaml: {said}; if the RTL is right, exchange the two there"]
