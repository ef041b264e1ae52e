"""The lines of a draft of a dut.yaml, from the role of each port.

Nothing is decided here: rtl_tb/dut/roles.py did that. A line is a value and, where it is not sure, the reason
behind the word GUESS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from golden.errors import counted, listed
from golden.model.instruction import Instruction
from golden.vectors.word import RESULTS, Field, WordLayout
from rtl_tb.dut.matching import MAIN, words_of
from rtl_tb.dut.port_check import entries, entry_width
from rtl_tb.dut.ports import Module, Port
from rtl_tb.dut.roles import (
    RESET_LOW,
    SHOWN,
    STATUS,
    Roles,
    acts_low,
    acts_low_by_name,
    cycles_later,
    flag_ports,
    idle_value,
    reset_is_low,
    unused_controls,
)
from rtl_tb.dut.structure import EITHER, Reset
from rtl_tb.dut.yaml_text import flow, scalar

GUESS = "  # GUESS"
Signal = str | dict[str, Any]
"""A signal of the handshake, as dut.yaml writes it: a port, or a mapping with its polarity."""


def guess(reason: str) -> str:
    """The end of a line that is not sure; "" for one that is."""
    return f"{GUESS}: {reason}" if reason else ""


# Clock, reset, handshake ------------------------------------------------------------------------------------


def timing_lines(roles: Roles, unit: Instruction | None) -> list[str]:
    """The keys `clock`, `reset` and `handshake`."""
    clock, reset = roles.port("clock"), roles.port("reset")
    lines = [f"clock: {scalar(clock)}{guess(roles.doubt('clock'))}"] if clock else ["# clock: clk"]
    if reset and not roles.reset_clears:
        shape = roles.reset or Reset(reset_is_low(roles, reset), True)
        value = {
            "port": reset,
            "active": "low" if shape.active_low else "high",
            "synchronous": shape.synchronous,
            "cycles": 4,
        }
        why = "" if roles.reset else "polarity by name, and whether it is synchronous"
        lines.append(f"reset: {flow(value)}{guess(why)}")
    lines.append("handshake:")
    if not clock:
        why = "  # there is no register" if roles.at_once else guess("there is no clock")
        return [*lines, f"  kind: combinational{why}"]
    given = bool(roles.valids or roles.port("in_valid"))
    if given and roles.port("out_valid"):
        return [*lines, *_with_valids(roles)]
    return [*lines, *_with_latency(roles, unit, given)]


def _with_valids(roles: Roles) -> list[str]:
    """The handshake of a unit whose operands and whose result have a valid."""
    out_valid, out_ready, answer = roles.port("out_valid") or "", roles.port("out_ready"), roles.answer
    ready = bool(roles.port("in_ready") or out_ready or any(ready for _, ready, _ in roles.valids))
    result: dict[str, Any] = {"valid": _signal(roles, out_valid)}
    if answer.level:
        signal = result["valid"]
        result["valid"] = (signal if isinstance(signal, dict) else {"port": signal}) | {"level": True}
    if out_ready:
        result["ready"] = _signal(roles, out_ready, "valid")
    doubt = roles.doubt("out_valid", "out_ready") or (answer.doubt if not answer.hold else "")
    return [
        f"  kind: {'valid_ready' if ready else 'valid'}",
        *_input(roles, ready=True),
        f"  output: {flow(result)}{guess(_polarity(roles, result) or doubt)}",
        *([] if ready else [_interval(answer.interval)]),
    ]


def _with_latency(roles: Roles, unit: Instruction | None, given: bool) -> list[str]:
    """The handshake of a unit whose results come a number of cycles after their operands."""
    lines = [f"  kind: latency{guess('there is no pair of valid ports')}", _latency(roles)]
    if given:
        lines += _input(roles, ready=False)
    if roles.turn is not None:
        why = "it loads an operand, and the sum waits for it"
        lines.append(f"  input: {flow({'valid': _signal_of(*roles.turn)})}{guess(why)}")
    if enable := roles.port("enable"):
        signal = _signal(roles, enable)
        lines.append(f"  enable: {flow(signal)}{guess(_polarity(roles, signal) or roles.doubt('enable'))}")
    cycles = max(cycles_later(roles, role) for role in MAIN) + 1
    lines.append(_interval(cycles if roles.turn is not None else 1))
    if unit is not None and unit.state and not given:
        if roles.counted:
            first, *others = roles.counted
            why = "which cycles count is not known" + (f", or {_some(others)}" if others else "")
            valid = _signal_of(first, acts_low_by_name(first))
            lines.append(f"  input: {flow({'valid': valid})}{guess(why)}")
        else:
            lines.append("  idle: zero  # no port says which cycles count: a and b are 0 in the others")
    return lines


def _interval(cycles: int) -> str:
    said = "  # interval: 1    # cycles from one set of operands to the next"
    return said if cycles == 1 else f"  interval: {cycles}"


def _latency(roles: Roles) -> str:
    """The line of the latency: measured, where that is possible and it is not known."""
    if roles.at_once:
        return "  latency: 0    # the operands reach the result without a register"
    if not roles.reset_clears and roles.clear.given != "before_operands" and roles.beats.count == 1:
        return "  latency: measure    # or the number of cycles"
    why = counted(roles.stages, "register") if roles.stages else "or more; count the registers"
    return f"  latency: {max(roles.stages, 1)}{guess(f'{why} between the operands and the result')}"


def _input(roles: Roles, ready: bool) -> list[str]:
    """The lines of the side that takes operands: one valid, several that are all needed, or a channel for
    each operand.

    Args:
        ready: whether the kind of handshake has a ready.
    """
    channels = bool(roles.valids) and ready and all(operands for _, _, operands in roles.valids)
    if channels and any(name for _, name, _ in roles.valids):
        return ["  input:", *(_channel(roles, *each) for each in roles.valids)]
    side: dict[str, Any] = {}
    if roles.valids:
        side["valid"] = [_signal(roles, valid) for valid, _, _ in roles.valids]
        readies = ", ".join(name for _, name, _ in roles.valids if name)
        why = "all of them are needed"
        why += f"; with {readies}: a list of {{operands, valid, ready}}" if readies else ""
    else:
        name = roles.port("in_ready") if ready else None
        side["valid"] = _signal(roles, roles.port("in_valid") or "", "ready" if name else "")
        side |= {"ready": _signal(roles, name)} if name else {}
        why = _polarity(roles, side) or roles.doubt("in_valid", *(["in_ready"] if ready else []))
    answer = roles.answer
    if answer.hold and ready and roles.beats.count == 1:
        side["hold"] = answer.hold
        done = roles.port("out_valid")
        why = f"{done} needs it, and is cleared without it" if answer.hold == "released" else answer.doubt
        return [f"  input: {flow(side)}{guess(why) or '  # registers read them until then'}"]
    if roles.beats.keys:
        why = why or "a and b have room for a part of the elements"
    return [f"  input: {flow(side | roles.beats.keys)}{guess(why)}"]


def _channel(roles: Roles, valid: str, ready: str | None, operands: Sequence[str]) -> str:
    """The line of a channel with a handshake of its own."""
    side: dict[str, Any] = {
        "operands": list(operands),
        "valid": _signal(roles, valid, "ready" if ready else ""),
    }
    side |= {"ready": _signal(roles, ready)} if ready else {}
    unnamed = any(not roles.ports(each) for each in operands)
    why = _polarity(roles, side) or ("its operand is what is left" if unnamed else "")
    return f"    - {flow(side)}{guess(why)}"


def _signal(roles: Roles, name: str, fellow: str = "") -> Signal:
    """A signal of the handshake; active low where registers show it, or else its name says so. One that may
    be active only while its fellow is waits for that."""
    if fellow and (name.startswith("EN_") or "yumi" in words_of(name)):
        return {"port": name, "only_if": fellow}
    return _signal_of(name, acts_low(roles, name))


def _signal_of(name: str, low: bool) -> Signal:
    return {"port": name, "active": "low"} if low else name


def _polarity(roles: Roles, value: Any) -> str:
    """The reason for a guess where a polarity in a line is known by a name alone; "" where none is."""
    if isinstance(value, dict) and value.get("active") == "low" and value["port"] not in roles.found.low:
        return "polarity by name"
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((why for part in parts if (why := _polarity(roles, part))), "")


# Ports ------------------------------------------------------------------------------------------------------


def port_lines(
    module: Module, roles: Roles, layout: WordLayout | None, unit: Instruction | None
) -> list[str]:
    """The key `ports`: where each operand and result of a unit lies; without a unit, of a, b, c and d."""
    fields = {item.name: item for item in layout.fields} if layout else {}
    lines = ["# Element 0 in the least significant bits, unless order: descending."]
    if roles.keeps and not (unit is not None and unit.state):
        said = "# Registers add to what earlier operands left: the unit's file then has accumulator: state."
        lines.append(f"{said}{GUESS}")
    placed = [
        line
        for operand in fields or ("a", "b", "c", "d")
        if (line := _operand_line(operand, module, roles, fields, unit))
    ]
    lines.append("ports:" if any(not line.startswith("  #") for line in placed) else "ports: {}")
    if not fields and roles.ports("flags"):
        placed.append(f"  # flags: {', '.join(roles.ports('flags'))}, if the instruction has it")
    return [*lines, *placed]


def _operand_line(
    operand: str, module: Module, roles: Roles, fields: Mapping[str, Field], unit: Instruction | None
) -> str:
    """The line of one operand or result; "" where nothing is to say."""
    names, item = roles.ports(operand), fields.get(operand)
    if operand == "mode" and roles.modes and unit is not None:
        return _mode_line(module, roles, unit)
    if operand == "flags" and roles.flags:
        return f"  flags: {flow(roles.flags)}{guess('flags by their names')}"
    if operand in roles.shared:
        return f"  {operand}: {flow(roles.shared[operand])}{guess('operands in the order of the entries')}"
    if names and item and roles.found.roles[operand].width < item.width:
        width = roles.found.roles[operand].width
        wider = f"; -G may widen it: {_some(module.parameters)}" if module.parameters else ""
        why = f"{width} bits, but the operand has {item.elements} x {item.bits}{wider}"
        return f"  # {operand}: {', '.join(names)}{guess(why)}{_inputs_left(module, roles, operand)}"
    if operand == "clear" and names and (roles.clear.given or roles.clear.active_low):
        low = {"active": "low"} if roles.clear.active_low else {}
        when = {"given": roles.clear.given} if roles.clear.given else {}
        return f"  clear: {flow({'port': names[0], **low, **when})}"
    if len(names) == 1 and (later := cycles_later(roles, operand)):
        most = [role for role in roles.registers if not cycles_later(roles, role)]
        fewer = counted(later, "register")
        why = f"it reaches the result through {fewer} fewer than {' and '.join(most)}"
        return f"  {operand}: {flow({'port': names[0], 'later': later})}{guess(why)}"
    if names:
        place, why = _arrangement(names, module, item, roles.doubt(operand))
        fmt = unit.formats.get(operand) if unit is not None else None
        extended = fmt is not None and not fmt.is_float and (operand == "d" or fmt.signed)
        if fmt is not None and extended and isinstance(place, dict) and "partial" in place:
            place["unused"] = "sign" if fmt.signed else "zero"  # what integers are extended with
        return f"  {operand}: {flow(place)}{guess(why)}{_riscv(unit, roles) if operand == 'flags' else ''}"
    if operand == "clear" and roles.reset_clears:
        reset = roles.port("reset") or ""
        low = {"active": "low"} if reset_is_low(roles, reset) else {}
        value = {"port": reset, **low, "given": "before_operands"}
        return f"  clear: {flow(value)}{guess('nothing but the reset seems to clear')}"
    if operand == "clear" and "load" in fields:  # a load of zero clears
        return ""
    return f"  # {operand}: PORT{guess('no port looks like it')}{_inputs_left(module, roles, operand)}"


def _mode_line(module: Module, roles: Roles, unit: Instruction) -> str:
    """The ports of the fields of the mode."""
    widths = {part.name: part.bits for part in unit.modes.fields} if unit.modes else {}
    fields = dict[str, Any]()
    for name, ports in roles.modes.items():
        value = ports if len(ports) > 1 else [*ports, "PORT"][0]
        wide = len(ports) == 1 and module.ports[ports[0]].width > widths[name]
        fields[name] = {"port": value, "partial": True} if wide else value
    return f"  mode: {flow(fields)}{guess(', '.join(roles.guessed_modes.values()))}"


def _riscv(unit: Instruction | None, roles: Roles) -> str:
    """A warning where four flags get a port of five bits: RISC-V's fflags have another one among them."""
    width = roles.found.roles["flags"].width
    if unit is None or "divide_by_zero" in unit.status or (len(unit.status), width) != (4, 5):
        return ""
    order = "inexact, underflow, overflow, divide_by_zero, invalid"
    return f"; RISC-V's five are flags: [{order}] in the unit's file"


def _inputs_left(module: Module, roles: Roles, operand: str) -> str:
    """The ports that an operand or a result may have, as the end of a comment."""
    left = roles.open if operand in RESULTS else roles.left
    widest = sorted(left, key=lambda name: -module.ports[name].width)  # an operand has several bits
    shown = _some(f"{name} ({counted(module.ports[name].width, 'bit')})" for name in widest)
    return f"; {'outputs' if operand in RESULTS else 'inputs'} left: {shown or 'none'}"


def _some(names: Iterable[str]) -> str:
    """The first names of a list, and how many more there are."""
    return listed(list(names), SHOWN)


def _arrangement(
    names: list[str], module: Module, item: Field | None, doubt: str
) -> tuple[str | list[str] | dict[str, Any], str]:
    """Where the elements of an operand lie in its ports, and why that is a guess, or else the doubt given."""
    port = module.ports[names[0]]
    array = "unpacked" if port.unpacked else "packed" if port.packed else None
    lone = array is not None and entries(port, array) == 1 and array == "packed"  # [0:0][3:0][7:0]: a vector
    array = array if len(names) == 1 and not lone else None
    width = entry_width(port, array)
    count = entries(port, array) if array else len(names)
    ports: str | list[str] = names[0] if len(names) == 1 else names
    of_array = {"array": array} if array else {}
    if item and count > 1 and width > item.bits and width % item.bits == 0 and count * width == item.width:
        word = {"word": {"elements": width // item.bits}}
        return {"port": ports, **of_array, **word}, "words of several elements"
    place: str | list[str] | dict[str, Any] = {"port": ports, **of_array} if array else ports
    widths = [module.ports[name].width for name in names]
    # A part of the only element in each port.
    if item and item.elements == 1 < len(names) and sum(widths) == item.width:
        return {"port": ports, "bits": widths}, doubt
    if item and count * width != item.width:
        if len(names) == 1 and width >= item.bits and count * width > item.width:  # or a lane of several
            place = {"port": ports, **of_array, "partial": True}
        return place, f"{count * width} bits, but the operand has {item.elements} x {item.bits}"
    return place, doubt


# What is left -----------------------------------------------------------------------------------------------


def lines_of_the_rest(roles: Roles, module: Module, unit: Instruction | None) -> list[str]:
    """The key `constants`, and what is not compared."""
    lines = []
    unused = unused_controls(roles)
    if roles.left or unused:
        lines += [
            "# Inputs of unknown purpose, tied for now.",
            "constants:",
            *(f"  {scalar(name)}: {_tied(module.ports[name], roles, unit)}" for name in roles.left),
            *(f"  {scalar(name)}: {idle_value(name, why)}{guess(why)}" for name, why in unused),
        ]
    if roles.open:
        lines.append(f"# Outputs left open: {', '.join(roles.open)}")
        lines += _not_compared_flags(roles, module)
    return [*lines, ""]


def _not_compared_flags(roles: Roles, module: Module) -> list[str]:
    """What lets the check compare open outputs that are called status flags, if the unit's file has none."""
    if roles.flags or roles.port("flags"):
        return []
    open_ports = {name: port for name, port in module.ports.items() if name in roles.open}
    at = {flag: flag_ports(replace(module, ports=open_ports), [words]) for flag, words in STATUS.items()}
    found = {flag: ports[0] for flag, ports in at.items() if ports}
    if not found:
        return []
    said = f"not compared without flags: [{', '.join(found)}] in the unit's file"
    return [f"# Status flags by their names, {said}: {', '.join(found.values())}"]


_SIGNED = re.compile(r"(^|_)(?P<no>un)?signed(_|$)", re.I)
"""Of an input that says whether the factors have a sign."""


def _tied(port: Port, roles: Roles, unit: Instruction | None) -> str:
    """The value of an input that is tied, with its reason: a name where its type has names."""
    value = roles.loading.get(port.name, "")
    if value.startswith(EITHER):
        return (
            f"{value[-1]}{guess(f'a register takes an operand with {value[-1]}, and another one does not')}"
        )
    if value:
        return f"{value}{guess('a register takes an operand with it')}"
    factors = [unit.formats[name] for name in "ab" if name in unit.formats] if unit is not None else []
    kinds = {(fmt.is_float, fmt.signed) for fmt in factors}
    if (said := _SIGNED.search(port.name)) and len(kinds) == 1 and not factors[0].is_float and not port.items:
        signed = factors[0].signed
        on = signed != bool(said["no"])
        kind = "signed" if signed else "unsigned"
        return f"{(1 << port.width) - 1 if on else 0}{guess(f'a and b are {kind}')}"
    if not port.items:
        if port.width == 1 and RESET_LOW.search(port.name):
            return f"1{guess('a reset by its name')}"
        return f"0{GUESS}" if port.width == 1 else f"0{guess(counted(port.width, 'bit'))}"
    names = list(port.items)
    return f"{names[0]}{guess(f'one of {_some(names)}')}"
