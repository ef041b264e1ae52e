"""Fields of structured ports by name: where `req.ops.a` lies in the bits of port `req`.

A field is a Port again, whose `base`, `offset` and `stride` say where in the module's own port it lies. In an
array of structures, packed or unpacked, a field of all entries together is an array as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from golden.errors import SpecError, nearest
from rtl_tb.dut.ports import Module, Port, count_entries


def find(module: Module, name: str, where: str) -> Port:
    """The port, or the field of a port, that a dut.yaml names.

    Raises:
        SpecError: there is none, or it lies in more arrays than one.
    """
    words = name.split(".")
    for count in range(len(words), 0, -1):
        port = module.ports.get(".".join(words[:count]))
        if port is not None:
            return _field(port, words[count:], where)
    known = [*module.ports, *(each.name for port in module.ports.values() for each in leaves(port))]
    raise SpecError(f"{where}: {module.name} has no port '{name}'{nearest(name, known)}")


def leaves(port: Port, whole: Callable[[Port], bool] = lambda _: False) -> Iterator[Port]:
    """Every field of a port that has no fields itself, or is taken as a `whole`; the port where it has none.
    One that cannot be mapped by its name says so in `problem`."""
    if not port.members or whole(port):
        yield port
        return
    for lsb, member in port.members:
        try:
            yield from leaves(_member(port, member.name, ""), whole)
        except SpecError as error:
            name, problem = f"{port.name}.{member.name}", str(error)
            yield replace(member, name=name, members=(), problem=problem, offset=port.offset + lsb)


def locate(port: Port, array: str | None, index: int | None, lsb: int) -> tuple[str, int | None, int]:
    """The module's own port, the declared index of an unpacked entry (None: a vector), and the bit there, of
    bit `lsb` of a port, of a field or of entry `index` of it; entry 0 is the one with the lowest index."""
    name = port.base or port.name
    if array == "unpacked" and index is not None:
        return name, min(port.unpacked[0]) + index, port.offset + lsb
    if array is None or index is None:
        return name, None, port.offset + lsb
    left, right = (port.packed or ())[0]
    from_right = index if left >= right else abs(left - right) - index
    stride = port.stride or port.width // count_entries([(left, right)])
    return name, None, port.offset + from_right * stride + lsb


def places(port: Port) -> tuple[list[tuple[str, int | None, int]], int]:
    """Where a port or a field lies, as `locate` says it, one place for each entry where it is an array of
    any kind; and the bits at each place."""
    array = "packed" if port.stride else "unpacked" if port.unpacked else None
    dimensions = {"packed": port.packed or (), "unpacked": port.unpacked}.get(array or "", ())
    count = count_entries(dimensions)
    return [locate(port, array, index, 0) for index in range(count)], port.width // count


def _field(port: Port, names: list[str], where: str) -> Port:
    for name in names:
        port = _member(port, name, where)
    return port


def _member(port: Port, name: str, where: str) -> Port:
    """The field of that name in a structure, or in all entries of an array of structures."""
    found = next(((lsb, member) for lsb, member in port.members if member.name == name), None)
    if found is None:
        raise SpecError(f"{where}: {_no_field(port, name)}")
    lsb, member = found
    path, arrays = f"{port.name}.{name}", (*port.unpacked, *(port.packed or ()))
    inner = replace(member, name=path, base=port.base or port.name, offset=port.offset + lsb)
    if not arrays:
        return inner
    if len(arrays) > 1 or (member.members and member.packed):
        raise SpecError(
            f"{where}: '{path}' lies in an array of arrays, where its elements have no one order; map the "
            "port as bits (lsb, stride), or write a shell around the module"
        )
    count = count_entries(arrays)
    inner = replace(inner, width=count * member.width)
    if port.unpacked:
        return replace(inner, unpacked=port.unpacked)
    return replace(inner, packed=port.packed, stride=port.stride or port.width // count)


def _no_field(port: Port, name: str) -> str:
    if port.packed is None:
        return (
            f"the fields of port '{port.name}' are needed, and Icarus Verilog reports none; install Verilator"
        )
    known = [member.name for _, member in port.members]
    has = f"the fields {', '.join(known)}" if known else "no fields"
    return f"{port.name} has {has}, expected '{name}'{nearest(name, known)}"
