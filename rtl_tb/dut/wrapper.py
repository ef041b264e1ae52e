"""Generates `mmagold_dut`, the SystemVerilog around a designer's unit that gives every DUT the same ports
(rtl_tb/dut/vhdl_wrapper.py: the VHDL).

    input clk, input rst_n, input in_valid, output in_ready, input [Wi-1:0] in_data,
    output out_valid, input out_ready, output [Wo-1:0] out_data

in_data is an operand word and out_data a result word (golden/vectors/word.py). rst_n is active low. A
transfer happens at a rising edge of clk with valid and ready high. The text keeps to what Icarus Verilog 11
reads, and to what Verilator takes without a warning under -Wall. Compile it after the designer's files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from golden.errors import runs
from golden.files.escape import line_comment
from golden.vectors.word import RESULTS, Field
from rtl_tb.dut import vhdl, vhdl_wrapper
from rtl_tb.dut.adapter import Adapter, adapter_of, verilog
from rtl_tb.dut.bit_ranges import (
    LOW,
    NAME,
    BitRange,
    bit_ranges_of,
    constant_text,
    driven_fields,
    read_fields,
    result_bit_ranges,
    signals_of,
    turned,
)
from rtl_tb.dut.description import Bit, Dut, Handshake
from rtl_tb.dut.headers import of_interface, of_top
from rtl_tb.dut.keys import IDENTIFIER
from rtl_tb.dut.port_check import check_ports, clocks_interface, entry_width, plain
from rtl_tb.dut.port_fields import find
from rtl_tb.dut.portmap import PortMap
from rtl_tb.dut.ports import Design, Module, Port, parameter_list, read_ports
from rtl_tb.dut.vhdl import Entity

INSTANCE = "u_dut"
"""The designer's unit in its wrapper."""


def wrapper_of(dut: Dut) -> str:
    """Reads the ports of a DUT's top module and returns the text of its wrapper.

    Raises:
        SpecError: the dut.yaml does not fit the ports of the top module.
        ElaborationError: no simulator takes the RTL.
        SimulatorMissing, SimulatorTooOld: there is no simulator to read the ports with.
    """
    if dut.netlist is not None:
        return dut.netlist.read_text(encoding="utf-8")
    module = module_of(dut)
    return vhdl_wrapper.wrapper_text(dut, module) if isinstance(module, Entity) else wrapper_text(dut, module)


def uncompared(dut: Dut) -> list[Bit]:
    """The bits of a unit's result ports that carry no element.

    Raises:
        As wrapper_of.
    """
    maps = {name: at for name, at in dut.ports.items() if name in RESULTS}
    if not any(at.partial for at in maps.values()) or dut.netlist is not None:
        return []
    module = module_of(dut)
    left: dict[Bit, None] = {}
    for run in result_bit_ranges(dut, module):
        port = module.ports[run.port]
        width = entry_width(port, "unpacked") if port.unpacked else port.width
        left |= dict.fromkeys((run.port, run.index, bit) for bit in range(width))
    for run in result_bit_ranges(dut, module):
        for bit in range(run.lsb, run.lsb + run.width):
            left.pop((run.port, run.index, bit), None)
    return list(left)


def names_of(bits: Sequence[Bit]) -> list[str]:
    """Bits by name, adjacent ones together: "y[31:8]"."""
    found = []
    for (port, index), of_port in groupby(bits, key=lambda bit: bit[:2]):
        for run in runs(bit for *_, bit in of_port):
            low, high = run[0], run[-1]
            entry = "" if index is None else f"[{index}]"
            found.append(f"{port}{entry}[{low if low == high else f'{high}:{low}'}]")
    return found


def module_of(dut: Dut) -> Module | Entity:
    """The ports of a unit's top; raises as wrapper_of."""
    design = Design(dut.sources, dut.top, dut.include, dut.defines, dut.parameters, dut.libraries, dut.types)
    return read_ports(design) if dut.vhdl is None else vhdl.read_entity(design, dut.vhdl)


def file_of(dut: Dut) -> str:
    """The name of the wrapper's file."""
    return f"{NAME}.sv" if dut.vhdl is None else f"{NAME}.vhd"


def write_wrapper(dut: Dut, folder: Path) -> Path:
    """Writes <folder>/mmagold_dut.sv (.vhd) and returns its path; an unchanged file keeps its time stamp.
    Raises as wrapper_of."""
    text = wrapper_of(dut)
    path = Path(folder) / file_of(dut)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def wrapper_text(dut: Dut, module: Module) -> str:
    """Returns the wrapper of `dut`, whose top module has been read as `module`; raises SpecError where
    they do not fit."""
    check_ports(dut, module)
    adapter = adapter_of(dut)
    maps = [(dut.ports[name], field) for name, field in dut.fields.items()]
    operands = [(at, field) for at, field in maps if field.name not in RESULTS]
    results = [(at, field) for at, field in maps if field.name in RESULTS]
    lines = [
        *_header(dut),
        *_handshake(dut.handshake, adapter),
        *([f"    assign out_valid = {adapter.valid.replace('&', '&&')};"] if adapter.valid else []),
        *(line for signal in turned(dut) for line in _active_low(signal)),
        *verilog(adapter, dut.layout.operand_width),
        "",
        *_operands(adapter, operands, driven_fields(dut, module), module),
        *_unwatched_bits(dut),
        *_results(results, [*result_bit_ranges(dut, module), *read_fields(dut, module)], module),
    ]
    lines += [*_instance(dut, module), "endmodule", ""]
    return "\n".join(lines)


def _header(dut: Dut) -> list[str]:
    latency = dut.handshake.latency if dut.handshake.latency is not None else 1
    parameter = f"#(parameter integer LATENCY = {latency}) " if dut.handshake.kind == "latency" else ""
    return [
        f"// {dut.top} as {line_comment(dut.instruction_name)}, level {dut.level}.",
        f"// Generated by mmagold, do not edit; described in {line_comment(dut.file.name)}",
        f"module {NAME} {parameter}(",
        "    // Not every DUT has a clock, a reset and backpressure.",
        "    // verilator lint_off UNUSEDSIGNAL",
        "    input  wire clk,",
        "    input  wire rst_n,",
        "    input  wire out_ready,",
        "    // verilator lint_on UNUSEDSIGNAL",
        "    input  wire in_valid,",
        "    output wire in_ready,",
        f"    input  wire [{dut.layout.operand_width - 1}:0] in_data,",
        "    output wire out_valid,",
        f"    output wire [{dut.layout.result_width - 1}:0] out_data",
        ");",
    ]


# Operands and result ----------------------------------------------------------------------------------------


def _operands(
    adapter: Adapter, maps: list[tuple[PortMap, Field]], fields: list[BitRange], module: Module
) -> list[str]:
    runs = [run for port_map, field in maps for run in bit_ranges_of(port_map, field, module)] + fields
    extended = {field.name for port_map, field in maps if port_map.unused == "sign"}
    lines = [
        f"    // {field.name}: {_elements(field)} in in_data[{field.msb}:{field.lsb}]" for _, field in maps
    ]
    for name in dict.fromkeys(run.port for run in runs):
        port = module.ports[name]
        lines += ["", _declaration(port)]
        mine = sorted((run for run in runs if run.port == name), key=lambda run: (run.index or 0, run.lsb))
        for _, group in groupby(mine, key=lambda run: run.index):
            lines += list(_drive(port, list(group), adapter.bus, extended))
        lines += _empty_entries(port, {run.index for run in mine})
    return lines


def _elements(field: Field) -> str:
    return (
        f"{field.bits} bits"
        if field.elements == 1
        else f"{field.elements} x {field.bits} bits, element 0 lowest,"
    )


def _declaration(port: Port) -> str:
    if port.unpacked:
        left, right = port.unpacked[0]
        return (
            f"    {port.entry} [{entry_width(port, 'unpacked') - 1}:0] {_wire(port.name)} [{left}:{right}];"
        )
    return f"    wire [{port.width - 1}:0] {_wire(port.name)};"


def _wire(port: str) -> str:
    """The wire at a port."""
    return _port_name(f"p_{port}")


def _target(port: Port, index: int | None, lsb: int, width: int) -> str:
    entry = "" if index is None else f"[{index}]"
    return f"{_wire(port.name)}{entry}[{lsb + width - 1}:{lsb}]"


def _drive(
    port: Port, runs: list[BitRange], bus: Mapping[str, str], extended: Collection[str]
) -> Iterator[str]:
    """Assigns one vector or entry from its lowest bit to its highest; bits that no element takes are 0, or of
    an operand that is `extended` the highest bit of the element below them."""
    index, at, below = runs[0].index, 0, ""

    def filled(width: int) -> str:
        value = f"{{{width}{{{_target(port, index, at - 1, 1)}}}}}" if below in extended else f"{width}'d0"
        return f"    assign {_target(port, index, at, width)} = {value};"

    for run in runs:
        if run.lsb > at:
            yield filled(run.lsb - at)
        target = _target(port, index, run.lsb, run.width)
        yield f"    assign {target} = {run.bits(bus.get(run.field, ''))};  // {run.text}"
        at, below = run.lsb + run.width, run.field
    width = entry_width(port, "unpacked") if port.unpacked else port.width
    if at < width:
        yield filled(width - at)


def _empty_entries(port: Port, used: set[int | None]) -> list[str]:
    if not port.unpacked:
        return []
    width = entry_width(port, "unpacked")
    empty = [index for index in range(min(port.unpacked[0]), max(port.unpacked[0]) + 1) if index not in used]
    return [f"    assign {_wire(port.name)}[{index}] = {width}'d0;" for index in empty]


def _results(maps: list[tuple[PortMap, Field]], runs: list[BitRange], module: Module) -> list[str]:
    lines = [""]
    lines += [
        f"    // {field.name}: {_elements(field)} in out_data[{field.msb}:{field.lsb}]. Bits that carry no "
        "element stay unused."
        for _, field in maps
    ]
    lines += ["    // verilator lint_off UNUSEDSIGNAL"]
    lines += [_declaration(module.ports[name]) for name in dict.fromkeys(run.port for run in runs)]
    lines += ["    // verilator lint_on UNUSEDSIGNAL"]
    for run in runs:
        source = _target(module.ports[run.port], run.index, run.lsb, run.width)
        lines.append(f"    assign {run.bits('out_data')} = {source};  // {run.text}")
    return lines


def _unwatched_bits(dut: Dut) -> list[str]:
    """The bits of out_data that nothing is watched with."""
    count, width = len(dut.watched), dut.layout.result_width
    return [f"    assign out_data[{width - 1}:{count}] = {width - count}'d0;"] if 0 < count < width else []


# Handshake --------------------------------------------------------------------------------------------------


def _handshake(shake: Handshake, adapter: Adapter) -> list[str]:
    if shake.kind == "valid_ready":
        if adapter.ready:
            return ["", f"    assign in_ready = {adapter.ready.replace('&', '&&')};"]
        return (
            []
            if shake.in_ready
            else ["", "    // The DUT takes operands in every cycle.", "    assign in_ready = 1'b1;"]
        )
    if shake.kind == "valid":
        return ["", "    wire accept = in_valid && in_ready;", *_interval(shake, adapter, stall=False)]
    if shake.kind == "combinational":
        return ["", "    assign out_valid = in_valid;", "    assign in_ready = out_ready;"]
    return _latency(shake, adapter)


_ONE = "1'b1"


def _active_low(signal: str) -> list[str]:
    """What takes a signal of the wrapper from a port that is active low."""
    return ["", f"    wire {signal}{LOW};", f"    assign {signal} = !{signal}{LOW};"]


def _interval(shake: Handshake, adapter: Adapter, stall: bool) -> list[str]:
    """in_ready of a unit without a ready port: high, but for interval - 1 cycles after an accept and while
    it stalls."""
    if shake.probing:
        return ["    assign in_ready = 1'b1;", *(_pause(shake, "") if shake.interval > 1 else [])]
    free = [*adapter.free.split(" & ")] if adapter.free else []
    running = " && ".join([*free, *(["!stall"] if stall else [])])
    if shake.interval == 1:
        return [f"    assign in_ready = {running or _ONE};"]
    ready = f"    assign in_ready = {_rested(shake)}" + (f" && {running};" if running else ";")
    return [*_pause(shake, " && !stall" if stall else ""), ready]


def _rested(shake: Handshake) -> str:
    """Whether the interval after the last operands is over."""
    return f"pause == {(shake.interval - 1).bit_length()}'d0"


def _pause(shake: Handshake, running: str) -> list[str]:
    """Counts the cycles of an interval."""
    bits = (shake.interval - 1).bit_length()
    return [
        f"    // The DUT takes operands every {shake.interval} cycles.",
        f"    reg [{bits - 1}:0] pause;",
        "    always @(posedge clk)",
        f"        if (!rst_n) pause <= {bits}'d0;",
        f"        else if (accept) pause <= {bits}'d{shake.interval - 1};",
        f"        else if (pause != {bits}'d0{running}) pause <= pause - {bits}'d1;",
    ]


def _latency(shake: Handshake, adapter: Adapter) -> list[str]:
    enable = bool(shake.enable)
    lines = ["", "    wire accept = in_valid && in_ready;"]
    if shake.probing:
        taken = f"in_valid && {_rested(shake)}" if shake.interval > 1 else "in_valid"
        return ["", "    wire accept;", *_interval(shake, adapter, stall=False), *_always(taken)]
    if enable:
        lines[1:1] = ["    // verilator lint_off UNUSEDSIGNAL"]  # with LATENCY 0
        lines += ["    // verilator lint_on UNUSEDSIGNAL"]
        lines += ["    // A result that is not taken stops the DUT through its enable.", "    wire stall;"]
    lines += _interval(shake, adapter, stall=enable)
    step = "else if (!stall) busy" if enable else "else busy"
    offered = "accept"
    if enable:  # `accept` waits for out_ready, which valid must not
        free = ["in_valid", *([adapter.free.replace("&", "&&")] if adapter.free else [])]
        free += [_rested(shake)] if shake.interval > 1 else []
        offered = " && ".join(free)
    return [
        *lines,
        "    // The result comes LATENCY edges after the operands were taken; 0 shows the DUT's output as "
        "it is.",
        "    generate",
        "        if (LATENCY == 0) begin : g_through",
        f"            assign out_valid = {offered};",
        "        end else begin : g_delay",
        "            reg [LATENCY:1] busy;",
        "            always @(posedge clk)",
        "                if (!rst_n) busy <= {LATENCY{1'b0}};",
        f"                {step} <= LATENCY'({{busy, accept}});",
        "            assign out_valid = busy[LATENCY];",
        "        end",
        "    endgenerate",
        *(["    assign stall = out_valid && !out_ready;"] if enable else []),
    ]


def _always(taken: str) -> list[str]:
    """What the DUT's outputs show, in every cycle."""
    return [f"    assign accept = {taken};", "    assign out_valid = in_valid;"]


# The instance -----------------------------------------------------------------------------------------------


def _instance(dut: Dut, module: Module) -> list[str]:
    parameters = parameter_list(of_top(dut.parameters), of_top(dut.types))
    connected = _connections(dut, module)
    pins, signals = [f".{name} ({_interface(name)})" for name in module.interfaces], []
    for name, port in module.ports.items():
        alone = constant_text(dut, port) if name in dut.constants else ""
        signal = connected.get(name, alone)
        if not port.interface:
            pins.append(f".{_port_name(name)} ({signal})")
        elif signal and not port.header:
            inside = f"{_interface(port.interface)}.{name.rpartition('.')[2]}"
            ends = (signal, inside) if port.direction == "output" else (inside, signal)
            signals.append(f"    assign {' = '.join(ends)};")
    return [
        *_interfaces(dut, module, connected),
        *signals,
        "",
        "    // Outputs that nobody looks at stay open. Numbers stand for the names of enumerated "
        "parameters and constants.",
        "    // verilator lint_off PINCONNECTEMPTY",
        "    // verilator lint_off ENUMVALUE",
        f"    {dut.top} {parameters}{INSTANCE} (",
        *(f"        {pin}{',' * (pin is not pins[-1])}" for pin in pins),
        "    );",
        "    // verilator lint_on ENUMVALUE",
        "    // verilator lint_on PINCONNECTEMPTY",
    ]


def _interface(port: str) -> str:
    """The name of the interface at a port."""
    return f"i_{port}"


def _interfaces(dut: Dut, module: Module, connected: dict[str, str]) -> list[str]:
    """The instances of the interfaces; their own ports take the unit's clock and reset by their names."""
    lines = []
    taken = (dut.clock, dut.reset.port if dut.reset else None)
    clock_and_reset = {plain(name): signal for name, signal in signals_of(dut).items() if name in taken}
    for bus, kind in module.interfaces.items():
        own = [port for port in module.ports.values() if port.interface == bus and port.header]
        pins = []
        for port in own:
            name = port.name.rpartition(".")[2]
            by_name = clock_and_reset[plain(name)] if clocks_interface(dut, port) else ""
            signal = (
                constant_text(dut, port) if port.name in dut.constants else connected.get(port.name, by_name)
            )
            pins.append(f".{name} ({signal})")
        given = parameter_list(of_interface(dut.parameters, bus), of_interface(dut.types, bus))
        lines += ["", f"    {kind} {given}{_interface(bus)} ({', '.join(pins)});"]
    return lines


def _port_name(name: str) -> str:
    """A port's name as it is written; one with other characters is an escaped identifier,
    which a space ends."""
    return name if IDENTIFIER.fullmatch(name) else f"\\{name} "


def _connections(dut: Dut, module: Module) -> dict[str, str]:
    """What each port of the DUT is connected to, but for constants."""
    mapped = [port for port_map in dut.ports.values() for port in port_map.ports]
    named = [find(module, name, str(dut.file)) for name in (*mapped, *signals_of(dut), *dut.constants)]
    fields = [port.base or port.name for port in named if port.base or port.unpacked]
    whole = {name: signal for name, signal in signals_of(dut).items() if name in module.ports}
    watched = [name for name, _, _ in dut.watched]
    return whole | {name: _wire(name) for name in (*mapped, *fields, *watched) if name in module.ports}
