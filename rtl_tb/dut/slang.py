"""Reads the ports of a top module with pyslang, where Verilator cannot: a port that is an interface.

The signals of an interface become ports of their own, `bus.valid`, with the directions of its modport; so do
the ports of the interface itself. The wrapper declares the interface and connects them.
"""

from __future__ import annotations

import importlib
import importlib.util
import shlex
from typing import Any

from rtl_tb.dut.ports import Design, Module, Port, count_entries, literal, members_of
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators.simulators import first_error

GET_PYSLANG = 'pip install "pyslang>=12,<13"'
DECLARATIONS = (
    *("DataDeclaration", "PortDeclaration", "ParameterDeclarationStatement", "LocalVariableDeclaration"),
    *("TypedefDeclaration", "ForwardTypedefDeclaration", "PackageImportDeclaration"),
)
"""What stands before the statements of a block or a function."""
_DIRECTIONS = {"In": "input", "Out": "output", "InOut": "inout", "Ref": "inout"}


def read_ports(design: Design) -> Module:
    """The top module of a design, with the signals of its interfaces.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the design, or an interface
            has no modport.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"a port is an interface, and pyslang reads those; install it: {GET_PYSLANG}")
    compilation, top = elaborated(design)
    ports: dict[str, Port] = {}
    interfaces: dict[str, str] = {}
    for symbol in top.body.portList:
        if symbol.kind.name == "InterfacePort":
            interfaces[symbol.name] = _interface(symbol, ports)
        else:
            ports[symbol.name] = _port(symbol.name, _DIRECTIONS[symbol.direction.name], symbol.type)
    names = tuple(each.name for each in top.body.parameters if not each.isLocalParam)
    del compilation  # it owns all symbols
    return Module(top.name, ports, names, interfaces)


def elaborated(design: Design) -> tuple[Any, Any]:
    """The compilation and its top instance."""
    pyslang = importlib.import_module("pyslang")
    slang = importlib.import_module("pyslang.driver").Driver()
    slang.addStandardArgs()
    words = ["slang", "--single-unit", "--allow-toplevel-iface-ports", "--allow-use-before-declare", "-Wnone"]
    words += ["--top", design.top] if design.top else []
    words += [f"-G{name}={literal(value)}" for name, value in (design.parameters or {}).items()]
    words += [f"-D{name}={value}" if value else f"-D{name}" for name, value in (design.defines or {}).items()]
    words += [word for path in design.include for word in ("-I", str(path))]
    words += [word for path in design.libraries for word in ("-y", str(path))]
    words += [str(path) for path in design.sources]
    ready = slang.parseCommandLine(shlex.join(words)) and slang.processOptions() and slang.parseAllSources()
    if not ready:
        raise ElaborationError(f"slang cannot read the sources of {design.top}")
    compilation = slang.createCompilation()
    tops = list(compilation.getRoot().topInstances)
    errors = [each for each in compilation.getAllDiagnostics() if each.isError()]
    if errors:
        text = pyslang.DiagnosticEngine.reportAll(slang.sourceManager, errors)
        raise ElaborationError(f"slang refused the module {design.top}: {first_error(text)}")
    if len(tops) != 1:
        raise ElaborationError(
            f"expected one top module, found {', '.join(each.name for each in tops) or 'none'}"
        )
    return compilation, tops[0]


def _interface(symbol: Any, ports: dict[str, Port]) -> str:
    """Adds the signals of an interface to `ports` and returns its name."""
    definition = symbol.interfaceDef
    kind = definition.name if definition is not None else "a generic interface"
    if definition is None or symbol.declaredRange:
        raise ElaborationError(f"port '{symbol.name}' is {kind} or an array: write a shell around the module")
    instance, modport = symbol.connection
    if modport is None:
        raise ElaborationError(
            f"port '{symbol.name}' is the interface {kind} without a modport, so that nothing tells inputs "
            f"from outputs: write {kind}.MODPORT in the module's header, or a shell around the module"
        )
    own = [each for each in instance.body.portList if each.kind.name == "Port"]
    for each in own:
        name = f"{symbol.name}.{each.name}"
        ports[name] = _port(
            name, _DIRECTIONS[each.direction.name], each.type, interface=symbol.name, header=True
        )
    for each in modport:
        name = f"{symbol.name}.{each.name}"
        if each.kind.name == "ModportPort" and name not in ports:
            ports[name] = _port(name, _DIRECTIONS[each.direction.name], each.type, interface=symbol.name)
    return str(kind)


def _port(name: str, direction: str, kind: Any, **more: Any) -> Port:
    """A port, or a field, of a type."""
    packed: list[tuple[int, int]] = []
    unpacked: list[tuple[int, int]] = []
    kind = kind.canonicalType
    while kind.kind.name == "FixedSizeUnpackedArrayType":
        unpacked.append((kind.range.left, kind.range.right))
        kind = kind.elementType.canonicalType
    while kind.kind.name == "PackedArrayType" and kind.elementType.canonicalType.kind.name != "ScalarType":
        packed.append((kind.range.left, kind.range.right))
        kind = kind.elementType.canonicalType
    items: dict[str, int] = {}
    if kind.kind.name == "EnumType":
        items = {each.name: int(each.value.value) for each in kind}
    if not kind.isIntegral:
        return Port(name, direction, 0, problem=f"of type {kind}", **more)
    members: list[tuple[int, Port]] = []
    if kind.kind.name in ("PackedStructType", "PackedUnionType"):
        fields = [_port(each.name, direction, each.type) for each in kind if each.kind.name == "Field"]
        members_of(fields, kind.kind.name == "PackedUnionType", members)
    width = count_entries(packed) * count_entries(unpacked) * kind.bitWidth
    return Port(
        name, direction, width, tuple(packed), tuple(unpacked), members=tuple(members), items=items, **more
    )
