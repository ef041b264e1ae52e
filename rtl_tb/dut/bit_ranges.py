"""What the generated `mmagold_dut`, in SystemVerilog or VHDL, connects to a unit: runs of bits of its ports,
each with the signal or the bits of a word on the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from golden.vectors.word import RESULTS, Field
from rtl_tb.dut.adapter import adapter_of, later_word
from rtl_tb.dut.description import Dut
from rtl_tb.dut.port_check import constant_of
from rtl_tb.dut.port_fields import find, locate, places
from rtl_tb.dut.portmap import PortMap
from rtl_tb.dut.ports import Module, Port

NAME = "mmagold_dut"


@dataclass(frozen=True)
class BitRange:
    """Adjacent bits of a port, and what they are connected to: bits of the field `field` of a word, or a
    signal.

    Attributes:
        port, index, lsb: the port, an entry of an unpacked array in it or None, and the lowest bit there.
        word: the lowest of the bits of in_data or out_data, or None where `signal` is another signal.
        text: what they are, for a comment.
    """

    port: str
    index: int | None
    lsb: int
    width: int
    text: str
    word: int | None = None
    signal: str = ""
    field: str = ""
    later: int = 0

    def bits(self, bus: str) -> str:
        """The signal on the other side."""
        bus = later_word(self.later) or bus
        return self.signal if self.word is None else f"{bus}[{self.word + self.width - 1}:{self.word}]"


def bit_ranges_of(port_map: PortMap, field: Field, module: Module) -> list[BitRange]:
    """The operand as runs, as few as there can be."""
    if port_map.bits:
        parts = []
        for place in port_map.places(field):
            real, index, lsb = locate(find(module, place.port, port_map.where), None, None, place.lsb)
            text = f"{field.name}[{place.first + place.width - 1}:{place.first}]"
            word, late = field.lsb + place.first, port_map.later_of(0)
            parts.append(
                BitRange(real, index, lsb, place.width, text, word=word, field=field.name, later=late)
            )
        return parts
    runs: list[list[tuple[tuple[str, int | None, int], int]]] = []
    for element, place in enumerate(port_map.places(field)):
        port = find(module, place.port, port_map.where)
        real, index, lsb = locate(port, port_map.array, place.index, place.lsb)
        (before, last) = runs[-1][-1] if runs else (None, 0)
        together = before == (real, index, lsb - field.bits) and last == element - 1
        if together and port_map.later_of(last) == port_map.later_of(element):
            runs[-1].append(((real, index, lsb), element))
        else:
            runs.append([((real, index, lsb), element)])
    return [replace(_run_of(run[0], run[-1][1], field), later=port_map.later_of(run[0][1])) for run in runs]


def result_bit_ranges(dut: Dut, module: Module) -> list[BitRange]:
    """What out_data carries: the results or, in their place, the bits of outputs that are watched."""
    if dut.watched:
        return [
            BitRange(port, index, bit, 1, "watched", word=at)
            for at, (port, index, bit) in enumerate(dut.watched)
        ]
    return [
        run
        for name, at in dut.ports.items()
        if name in RESULTS
        for run in bit_ranges_of(at, dut.fields[name], module)
    ]


def _run_of(first: tuple[tuple[str, int | None, int], int], last: int, field: Field) -> BitRange:
    (port, index, lsb), element = first
    text = field.name
    if field.elements > 1:
        text += f"[{element}]" + (f"..[{last}]" if last > element else "")
    width = (last - element + 1) * field.bits
    return BitRange(port, index, lsb, width, text, word=field.lsb + element * field.bits, field=field.name)


def _field_runs(signals: Iterable[tuple[str, str]], module: Module, where: str) -> list[BitRange]:
    """Those of (name, signal) whose name is that of a field of a port, or of an unpacked array: every entry
    has the signal."""
    runs = []
    for name, signal in signals:
        port = find(module, name, where)
        if port.base or port.unpacked:
            at, width = places(port)
            runs += [BitRange(*place, width, name, signal=signal) for place in at]
    return runs


def driven_fields(dut: Dut, module: Module) -> list[BitRange]:
    """Clock, reset, handshake and constants that are fields of ports, entries of an array, or the bits of a
    port that no operand has."""
    where = str(dut.file)
    constants = {name: constant_text(dut, find(module, name, where)) for name in dut.constants}
    outputs = set(dut.handshake.outputs().values())
    given = [(name, signal) for name, signal in signals_of(dut).items() if name not in outputs]
    tied = [run for name in dut.tied_in_part for run in _tied_in_part(dut, module, name)]
    return _field_runs([*given, *constants.items()], module, where) + tied


def _tied_in_part(dut: Dut, module: Module, name: str) -> Iterator[BitRange]:
    """The bits of a port that no operand has, with their part of the constant."""
    port = module.ports[name]
    value = constant_of(port, dut.constants[name], dut.where["constants"])
    taken = sorted(
        (run.lsb, run.lsb + run.width)
        for operand, at in dut.ports.items()
        if operand not in RESULTS
        for run in bit_ranges_of(at, dut.fields[operand], module)
        if run.port == name
    )
    ends = [0, *(end for _, end in taken)]
    for lsb, end in zip(ends, [*(start for start, _ in taken), port.width], strict=True):
        if lsb < end:
            part = value >> lsb & ((1 << end - lsb) - 1)
            yield BitRange(name, None, lsb, end - lsb, "constant", signal=f"{end - lsb}'h{part:x}")


def read_fields(dut: Dut, module: Module) -> list[BitRange]:
    """Outputs of the handshake that are fields of ports."""
    outputs = set(dut.handshake.outputs().values())
    read = [(name, signal) for name, signal in signals_of(dut).items() if name in outputs]
    return _field_runs(read, module, str(dut.file))


def constant_text(dut: Dut, port: Port) -> str:
    """The constant of a port as SystemVerilog writes it."""
    value = constant_of(port, dut.constants[port.name], dut.where["constants"])
    return f"{places(port)[1]}'h{value:x}"


def signals_of(dut: Dut) -> dict[str, str]:
    """The wrapper's signal at each port, or field of a port, of clock, reset and handshake."""
    shake, adapter = dut.handshake, adapter_of(dut)
    accept = "in_valid" if shake.kind == "valid_ready" else "accept"
    valids = [
        port
        for port in (shake.in_valid, *shake.more_valids, *(each.valid for each in shake.channels))
        if port
    ]
    given: list[tuple[str | None, str]] = [
        (port, f"valid_{at}" if f"valid_{at}" in adapter.bits else accept) for at, port in enumerate(valids)
    ]
    given += [
        (shake.out_ready, "agreed" if "agreed" in adapter.bits else "out_ready"),
        (shake.enable, "!stall"),
        (shake.first, "first_beat"),
        (shake.last, "last_beat"),
    ]
    ready = "unit_ready" if "unit_ready" in adapter.inputs else "in_ready"
    valid = "unit_valid" if "unit_valid" in adapter.inputs else "out_valid"
    taken = [(shake.in_ready, ready), (shake.out_valid, valid)]
    taken += [(each.ready, f"ready_{at}") for at, each in enumerate(shake.channels)]
    signals = [(port, inverse(signal) if port in shake.active_low else signal) for port, signal in given]
    signals += [(port, f"{signal}{LOW}" if port in shake.active_low else signal) for port, signal in taken]
    signals.append((dut.clock, "clk"))
    if dut.reset:
        signals.append((dut.reset.port, "rst_n" if dut.reset.active_low else "!rst_n"))
    return {port: signal for port, signal in signals if port}


LOW = "_low"
"""Behind the name of a signal of the wrapper that the unit drives active low."""


def inverse(signal: str) -> str:
    """The inverse of a signal, in SystemVerilog."""
    return signal[1:] if signal.startswith("!") else f"!{signal}"


def turned(dut: Dut) -> list[str]:
    """The wrapper's signals that the unit drives active low."""
    outputs = dut.handshake.outputs().values()
    names = {port: signal.removesuffix(LOW) for port, signal in signals_of(dut).items() if port in outputs}
    return [signal for port, signal in names.items() if port in dut.handshake.active_low]
