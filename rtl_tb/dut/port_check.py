"""Checks a dut.yaml against the ports that the top module really has: names, directions, widths, arrays,
nothing left over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from golden.errors import SpecError, nearest
from golden.vectors.word import RESULTS, Field
from rtl_tb.dut.description import Dut
from rtl_tb.dut.port_fields import find, leaves, locate, places
from rtl_tb.dut.portmap import PortMap
from rtl_tb.dut.ports import WITHOUT_BITS, Module, Port


def check_ports(dut: Dut, module: Module) -> None:
    """Raises SpecError, with file and line, for the first thing in which the description
    and the module differ."""
    check_parameters(dut.where.get("parameters", ""), dut.parameters, module)
    _check_controls(dut, module)
    for name, port_map in dut.ports.items():
        for port in port_map.ports:
            found = _port(dut, module, port, port_map.where, "output" if name in RESULTS else "input")
            _check_array(port_map, found)
            _check_width(dut, port_map, dut.fields[name], found)
    _check_covered(dut, module)
    _check_shared(dut, module)
    _check_left_over(dut, module)


def entry_width(port: Port, array: str | None) -> int:
    """Bits of one entry of an array port, or of the whole vector."""
    return port.width // entries(port, array)


def entries(port: Port, array: str | None) -> int:
    """Number of entries of an array port; 1 for a vector."""
    ranges = {"packed": port.packed or (), "unpacked": port.unpacked}.get(array or "", ())
    return abs(ranges[0][0] - ranges[0][1]) + 1 if ranges else 1


def _port(dut: Dut, module: Module, name: str, where: str, direction: str) -> Port:
    port = find(module, name, where)
    if port.direction != direction:
        raise SpecError(
            f"{where}: port '{name}' of {module.name} is an {port.direction}, expected an {direction}"
        )
    if port.problem == WITHOUT_BITS:
        raise SpecError(f"{where}: port '{name}' of {module.name} has no bits, expected no key for it")
    if port.problem:
        raise SpecError(
            f"{where}: port '{name}' of {module.name} is {port.problem}, expected bits; write a shell "
            "around the module"
        )
    return port


def check_parameters(where: str, given: Iterable[str], module: Module) -> None:
    """Raises the SpecError of a parameter that the top module lacks; `where` it was given."""
    for name in given:
        if name not in module.parameters:
            raise SpecError(
                f"{where}: {module.name} has no parameter '{name}'{nearest(name, module.parameters)}"
            )


def _check_controls(dut: Dut, module: Module) -> None:
    """Clock, reset, handshake and constants."""
    file, where = str(dut.file), dut.where
    single = [(dut.clock, where.get("clock", file), "input")]
    single += [(dut.reset.port if dut.reset else None, where.get("reset", file), "input")]
    single += [(port, where["handshake"], "input") for port in dut.handshake.inputs().values()]
    single += [(port, where["handshake"], "output") for port in dut.handshake.outputs().values()]
    cases = () if dut.exclude is None else dut.exclude.cases
    single += [(case.port.name, where["exclude"], "output") for case in cases if case.port is not None]
    for name, place, direction in single:
        if name and (port := _port(dut, module, name, place, direction)).width != 1:
            raise SpecError(f"{place}: port '{name}' has {port.shape}, expected 1 bit")
    for name, value in dut.constants.items():
        port = _port(dut, module, name, where["constants"], "input")
        value = constant_of(port, value, where["constants"])
        if len(port.unpacked) > 1:
            raise SpecError(
                f"{where['constants']}: port '{name}' has {len(port.unpacked)} unpacked dimensions, expected "
                "at most one; connect it in a module of yours around the unit"
            )
        if value >> places(port)[1]:
            raise SpecError(
                f"{where['constants']}: port '{name}' has {port.shape}, too few for the constant {value}"
            )


def constant_of(port: Port, value: int | str, where: str) -> int:
    """The number of a constant; raises SpecError for a name that the port's type does not have."""
    if isinstance(value, int):
        return value
    if value not in port.items:
        kind = f"one of {', '.join(port.items)}" if port.items else "a number: its type has no names"
        raise SpecError(
            f"{where}: constant '{port.name}' is '{value}', expected {kind}{nearest(value, port.items)}"
        )
    return port.items[value]


def _check_array(port_map: PortMap, port: Port) -> None:
    where, name = port_map.where, port.name
    if len(port.unpacked) > 1:
        raise SpecError(
            f"{where}: port '{name}' has {len(port.unpacked)} unpacked dimensions, expected at most one"
        )
    if port.unpacked and port_map.array != "unpacked":
        raise SpecError(
            f"{where}: port '{name}' is an unpacked array; write {{port: {name}, array: unpacked}}"
        )
    if port.stride and port_map.array != "packed":
        raise SpecError(
            f"{where}: '{name}' lies in each entry of an array; write {{port: {name}, array: packed}}"
        )
    if port_map.array == "unpacked" and not port.unpacked:
        raise SpecError(f"{where}: port '{name}' is a vector of {port.shape}, not an unpacked array")
    if port_map.array == "packed" and port.packed is None:
        raise SpecError(
            f"{where}: the ranges of port '{name}' are needed for 'array: packed', and only Verilator "
            f"reports "
            "them; install it, or describe the port as a vector (no 'array'; 'order: descending' if its "
            "first index is the lowest)"
        )
    if port_map.array == "packed" and not port.packed:
        raise SpecError(
            f"{where}: port '{name}' is a vector of {port.shape}, not a packed array of two dimensions"
        )


def _check_width(dut: Dut, port_map: PortMap, field: Field, port: Port) -> None:
    width, count = entry_width(port, port_map.array), entries(port, port_map.array)
    mine = [place for place in port_map.places(field) if place.port == port.name]
    needed = max(place.lsb + place.bits(field) for place in mine)
    operand = f"operand {field.name} of {dut.instruction_name}"
    if needed > width and not port_map.array and len(port_map.ports) == 1 and needed == field.width:
        product = (
            f"{field.elements} x {field.bits} = {field.width}" if field.elements > 1 else str(field.width)
        )
        raise SpecError(f"{port_map.where}: port '{port.name}' has {port.shape}, {operand} needs {product}")
    if needed > width:
        what = f"each entry of port '{port.name}'" if port_map.array else f"port '{port.name}'"
        raise SpecError(
            f"{port_map.where}: {what} has {width} bits, {operand} as arranged here needs {needed}"
        )
    if port_map.array and port_map.first + port_map.words(field) > count:
        raise SpecError(
            f"{port_map.where}: port '{port.name}' has {count} entries, {operand} as arranged here needs "
            f"{port_map.first + port_map.words(field)}"
        )


def _check_covered(dut: Dut, module: Module) -> None:
    """Every port must be used up to its last bit, unless one of its maps says `partial`."""
    users: dict[str, list[PortMap]] = {}
    for port_map in dut.ports.values():
        for name in port_map.ports:
            users.setdefault(name, []).append(port_map)
    for name, maps in users.items():
        port, array = find(module, name, maps[0].where), maps[0].array
        if any(user.array != array for user in maps):
            raise SpecError(f"{maps[0].where}: port '{name}' is described both as an array and as a vector")
        if any(user.partial for user in maps):
            continue
        reach = max(user.extent_of(dut.fields[user.operand], name) for user in maps)
        used = max(user.first + user.words(dut.fields[user.operand]) for user in maps) if array else 1
        width, count = entry_width(port, array), entries(port, array)
        if reach < width or used < count:
            what = f"{used} of the {count} entries" if used < count else f"{reach} of the {width} bits"
            who = " and ".join(user.operand for user in maps)
            raise SpecError(
                f"{maps[0].where}: {who} takes only {what} of port '{name}'; if that is meant, add "
                "'partial: true'"
            )


def _check_shared(dut: Dut, module: Module) -> None:
    """No bit of an input may be driven twice: by a structure and one of its fields, by two members of a
    union."""
    taken: dict[tuple[str, int | None], list[tuple[int, int, str]]] = {}
    for name, at in dut.ports.items():
        for place in at.places(dut.fields[name]) if name not in RESULTS else ():
            port = find(module, place.port, at.where)
            real, index, lsb = locate(port, at.array, place.index, place.lsb)
            bits = place.bits(dut.fields[name])
            taken.setdefault((real, index), []).append((lsb, lsb + bits, place.port))
    for name in _single_inputs(dut):
        port = find(module, name, str(dut.file))
        found, width = places(port)
        if name in dut.tied_in_part:
            _check_constant(dut, port, taken[name, None])
            continue
        for real, index, lsb in found:
            taken.setdefault((real, index), []).append((lsb, lsb + width, name))
    for (real, _), runs in taken.items():
        runs.sort()
        for (_, end, first), (start, _, second) in pairwise(runs):
            if start < end:
                raise SpecError(
                    f"{dut.file}: '{first}' and '{second}' share bit {start} of port '{real}' of "
                    f"{module.name}"
                )


def _check_constant(dut: Dut, port: Port, runs: list[tuple[int, int, str]]) -> None:
    """A constant of a port that also has operands may set none of their bits, (lowest, end, port)."""
    value = constant_of(port, dut.constants[port.name], dut.where["constants"])
    for lsb, end, _ in runs:
        if value >> lsb & ((1 << end - lsb) - 1):
            raise SpecError(
                f"{dut.where['constants']}: the constant {value:#x} of port '{port.name}' sets bits in "
                f"{end - 1}:{lsb}, which an operand has; expected 0 there"
            )


def _single_inputs(dut: Dut) -> list[str]:
    """Inputs that are not operands: clock, reset, handshake, constants."""
    names = [dut.clock, dut.reset.port if dut.reset else None, *dut.handshake.inputs().values()]
    return [*(name for name in names if name), *dut.constants]


def _check_left_over(dut: Dut, module: Module) -> None:
    """Inputs that nobody drives would be Z; outputs may stay open."""
    named = {*_single_inputs(dut), *(port for port_map in dut.ports.values() for port in port_map.ports)}
    undriven = [
        name
        for port in module.ports.values()
        if port.direction != "output" and not clocks_interface(dut, port)
        for name in _undriven(port, named)
    ]
    if undriven:
        plural = "s" * (len(undriven) > 1)
        raise SpecError(
            f"{dut.file}: nothing drives the input{plural} {', '.join(undriven)} of {module.name}; "
            "name them under ports, or tie them under 'constants'"
        )


def clocks_interface(dut: Dut, port: Port) -> bool:
    """Whether it is a port of an interface by the name of the unit's clock or reset."""
    own = {dut.clock, dut.reset.port if dut.reset else None} - {None}
    return port.header and plain(port.name) in {plain(str(name)) for name in own}


def plain(name: str) -> str:
    """A signal's name without the interface and without the direction behind it: clk of clk_i and bus.clk,
    rst_n of rst_ni."""
    return re.sub(r"(_in|_i|(?<=_n)i)$", "", name.rpartition(".")[2])


def _undriven(port: Port, named: set[str]) -> list[str]:
    """The port, or those of its fields, that nobody names; fields over one another are those of a union."""
    parts = list(leaves(port))
    ways = {each.name: {".".join(each.name.split(".")[: n + 1]) for n in range(64)} for each in parts}
    driven = [each for each in parts if ways[each.name] & named]
    if not driven:
        return [] if port.name in named or not (port.width or port.problem != WITHOUT_BITS) else [port.name]

    def overlaps(each: Port) -> bool:
        return any(
            each.offset < other.offset + places(other)[1] and other.offset < each.offset + places(each)[1]
            for other in driven
        )

    return [each.name for each in parts if each not in driven and not overlaps(each)]
