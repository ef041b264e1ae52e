"""Where the elements of an operand lie in the ports of a designer's unit.

Elements are grouped into words (of one element by default, see `word`); words lie in a vector at a
constant stride, or one in each entry of an array, or one in each port of a list. `PortMap.places` turns that
into one place per element.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from golden.errors import SpecError
from golden.program.state import CONTROLS
from golden.vectors.word import RESULTS, Field
from golden.yamlfile import Section
from rtl_tb.dut.keys import MAX_BITS, PORT


@dataclass(frozen=True)
class Place:
    """Where one element lies: bit `lsb` of `port`, or of entry `index` (0 is the lowest) where the port is
    an array; of an element in several ports `width` of its bits, from bit `first` on."""

    port: str
    index: int | None
    lsb: int
    width: int = 0
    first: int = 0

    def bits(self, field: Field) -> int:
        """How many bits of the element are here."""
        return self.width or field.bits


@dataclass(frozen=True)
class PortMap:
    """How the elements of one operand lie in ports.

    Element i is in slot i % word_elements of word i / word_elements. `order` and `word_order` count words and
    slots from the least significant end (or the lowest index) when ascending. `lsb` is the lowest bit of the
    first word. `active_low`: the port is the inverse of the operand, one of CONTROLS. `given`: one of GIVEN,
    of such an operand. `later`: clock cycles by which the operand comes after the others, one number or one
    for each word. `bits`: how many bits of the one element each port has. `unused`: what bits of its
    ports have that carry no element, one of UNUSED.
    """

    operand: str
    ports: tuple[str, ...]
    where: str
    array: str | None = None
    order: str = "ascending"
    lsb: int = 0
    stride: int = 0
    first: int = 0
    word_bits: int = 0
    word_elements: int = 1
    word_order: str = "ascending"
    word_stride: int = 0
    column_major: bool = False
    partial: bool = False
    active_low: bool = False
    given: str = "freely"
    unused: str = "any"
    later: tuple[int, ...] = (0,)
    bits: tuple[int, ...] = ()

    def words(self, field: Field) -> int:
        """Number of words that the operand takes."""
        return field.elements // self.word_elements

    def later_of(self, element: int) -> int:
        """Clock cycles by which an element comes after the others."""
        return self.later[0] if len(self.later) == 1 else self.later[element // self.word_elements]

    def places(self, field: Field) -> list[Place]:
        """Returns the place of every element, in the order of the operand word (row by row for matrices); of
        one element in several ports the place of each part, the lowest first."""
        if self.bits:
            ends = itertools.accumulate(self.bits)
            return [
                Place(port, None, self.lsb, width, end - width)
                for port, width, end in zip(self.ports, self.bits, ends, strict=True)
            ]
        return [self._place(number, self.words(field)) for number in self._numbers(field)]

    def extent_of(self, field: Field, port: str) -> int:
        """Width of one of its ports that the operand fills, as `extent`."""
        if self.bits:
            return self.lsb + self.bits[self.ports.index(port)]
        return self.extent(field)

    def extent(self, field: Field) -> int:
        """Width of a vector, or of an array entry, that the operand fills, the gaps between words and
        after the last included."""
        if self.array or len(self.ports) > 1:
            return self.lsb + self.word_bits
        return self.lsb + self.words(field) * self.stride

    def _numbers(self, field: Field) -> Iterator[int]:
        """The number of each element as the ports count it: columns first when the DUT takes matrices
        column by column."""
        if not self.column_major:
            yield from range(field.elements)
            return
        rows, columns = field.shape[-2:]
        yield from (column * rows + row for row in range(rows) for column in range(columns))

    def _place(self, number: int, words: int) -> Place:
        word, slot = divmod(number, self.word_elements)
        word = words - 1 - word if self.order == "descending" else word
        slot = self.word_elements - 1 - slot if self.word_order == "descending" else slot
        lsb = self.lsb + slot * self.word_stride
        if len(self.ports) > 1:
            return Place(self.ports[word], None, lsb)
        if self.array:
            return Place(self.ports[0], self.first + word, lsb)
        return Place(self.ports[0], None, lsb + word * self.stride)


def read_map(section: Section, field: Field) -> PortMap:
    """Reads the entry of `field.name` in the `ports` section of a dut.yaml.

    Raises:
        SpecError: a wrong key, or an arrangement that cannot hold the operand's elements.
    """
    name = field.name
    given = section.take_value(name, PORT)
    where = f"{section.file}:{section.lines.get(name, section.line)}"
    if isinstance(given, dict):
        return _read_mapping(section[name], given, field, where)
    return _check(section, PortMap(name, given, where, stride=field.bits, word_bits=field.bits), field)


def _read_mapping(section: Section, given: dict[str, Any], field: Field, where: str) -> PortMap:
    ports = given["port"]
    if given["array"] and len(ports) != 1:
        raise section.error("key 'array' goes with one port, not with a list of ports", "array")
    if len(ports) != 1 and "stride" in section:
        raise section.error("key 'stride' is for vectors; listed ports hold one word each", "stride")
    word_bits, elements, word_order, word_stride = _read_word(section, given["word"], field)
    column_major = given["major"] == "column"
    if column_major and len(field.shape) != 2:
        raise section.error(f"key 'major' needs a matrix, but {field.name} has shape {field.shape}", "major")
    # Keys that need others are refused before the map is built, keys that need an operand after it; whether
    # the elements have room is checked last.
    built = PortMap(
        field.name,
        ports,
        where,
        given["array"],
        given["order"],
        given["lsb"],
        given["stride"] or word_bits,
        given["first"],
        word_bits,
        elements,
        word_order,
        word_stride,
        column_major,
        given["partial"],
        given["active"] == "low",
        given["given"],
        given["unused"],
        given["later"] if isinstance(given["later"], tuple) else (given["later"],),
        given["bits"] or (),
    )
    if any(built.later) and field.name in RESULTS:
        raise section.error(f"key 'later' is for operands, not for {field.name}", "later")
    if len(built.later) not in (1, built.words(field)):
        raise section.error(
            f"key 'later' has {len(built.later)} numbers, expected 1 or {built.words(field)} (for each word)",
            "later",
        )
    if built.unused != "any" and not (built.partial and field.name not in CONTROLS):
        raise section.error("key 'unused' is for operands and results with 'partial: true'", "unused")
    if built.given != "freely" and field.name not in CONTROLS:
        raise section.error(f"key 'given' is for {' and '.join(CONTROLS)}, not for {field.name}", "given")
    if built.active_low and field.name not in CONTROLS:
        raise section.error(f"key 'active' is for {' and '.join(CONTROLS)}, not for {field.name}", "active")
    return _check(section, built, field)


def _read_word(section: Section, given: dict[str, Any] | None, field: Field) -> tuple[int, int, str, int]:
    """Returns (bits, elements, order, stride from element to element) of a word; one element without gaps
    by default."""
    if given is None:
        return field.bits, 1, "ascending", field.bits
    word: Section = section["word"]
    elements, order = given["elements"], given["order"]
    stride = word.take_int("stride", field.bits, MAX_BITS, field.bits)
    bits = given["bits"] or elements * stride
    needed = (elements - 1) * stride + field.bits
    if bits < needed:
        raise word.error(
            f"a word has {bits} bits, but {elements} elements of {field.name} need {needed}", "bits"
        )
    if field.elements % elements:
        raise word.error(
            f"a word has {elements} elements, expected a divisor of {field.elements} ({field.name})",
            "elements",
        )
    return bits, elements, order, stride


def _check(section: Section, built: PortMap, field: Field) -> PortMap:
    words = built.words(field)
    if built.bits:
        if field.elements != 1 or (len(built.bits), sum(built.bits)) != (len(built.ports), field.bits):
            raise SpecError(
                f"{built.where}: key 'bits' is {list(built.bits)}, expected a number for each of "
                f"{len(built.ports)} ports, {field.bits} in all, of one element; {field.name} has "
                f"{field.elements} x {field.bits} bits"
            )
        words = len(built.ports)
    if len(built.ports) not in (1, words):
        raise SpecError(
            f"{built.where}: {field.name} lists {len(built.ports)} ports, expected {words} (one for each "
            "word)"
        )
    if len(set(built.ports)) != len(built.ports):
        raise SpecError(f"{built.where}: {field.name} lists a port twice")
    if not built.array and len(built.ports) == 1 and built.stride < built.word_bits and words > 1:
        used = (built.word_elements - 1) * built.word_stride + field.bits
        if built.stride < used:
            raise section.error(
                f"key 'stride' is {built.stride}, but a word of {field.name} takes {used} bits", "stride"
            )
    return built


def check_overlaps(maps: Iterable[PortMap], fields: dict[str, Field]) -> None:
    """Raises SpecError where two elements share a bit of a port."""
    taken: dict[tuple[str, int | None], list[tuple[int, int, PortMap, int]]] = {}
    for port_map in maps:
        field = fields[port_map.operand]
        for element, place in enumerate(port_map.places(field)):
            taken.setdefault((place.port, place.index), []).append(
                (place.lsb, place.lsb + place.bits(field), port_map, element)
            )
    for (port, _), runs in taken.items():
        runs.sort(key=lambda run: run[0])
        for (_, end, first, i), (start, _, second, j) in pairwise(runs):
            if start < end:
                raise SpecError(
                    f"{second.where}: {second.operand}[{j}] and {first.operand}[{i}] share bit {start} of "
                    f"port '{port}'"
                )
