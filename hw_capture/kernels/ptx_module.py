"""Writes the scalar PTX instructions as kernels whose machine code shows what becomes of each.

A kernel brings the operands of one form from shared memory (volatile loads, so that nothing is known of them;
each thread from a place of its own, because ptxas leaves out a whole shuffle of a value that all threads
share), has the instruction once, and stores its results (volatile, so that they are needed). Shared memory
has addresses of 32 bits: one instruction computes the address of all operands. A source of 16 bits is
the lower half of a loaded word. The upper half of its register is not known, as in a register that another
instruction wrote. A predicate comes from a comparison with PREDICATE_MARK, which distinguishes its
instruction from the form's own; a result that is a predicate guards a store. STRIDE, the distance between the
places of two threads, marks the address in the same way. The kernel FRAME has no instruction at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from golden.catalog.ptx_forms import DESTINATIONS, SOURCES, Form, substituted

PREDICATE_MARK = 0x5A5A5
STRIDE = 0x1230
FRAME = "frame"
LAST_OFFSET = 240
"""Where the frame's own word is loaded and stored, behind all operands and results."""
RESULTS = 256
"""Where the results begin, in bytes from where the operands do."""
_POWER = "8"
_BITS = {"e2m1x2": 8, "pred": 1, "u8": 16, "s8": 16}
_VECTOR = re.compile(r"(?:u|s|f|bf)(\d+)x(\d+)")
_MINIFLOATS = re.compile(r"(?:e2m1x4|(?:e4m3|e5m2|e2m3|e3m2|ue8m0)x(?P<count>[24]))")
_PLAIN = re.compile(r"[usbf]+(\d+)")


@dataclass(frozen=True)
class Case:
    """One kernel: a form with its sources of one kind."""

    form: Form
    kinds: str

    @property
    def label(self) -> str:
        """Name and kinds, for messages."""
        return f"{self.form.name} ({self.kinds or 'no source'})"

    @property
    def loaded(self) -> tuple[int, ...]:
        """The places of the sources that come from memory."""
        return tuple(place for place, kind in enumerate(self.kinds) if kind in "rna")

    def slot(self, place: int) -> str:
        """The letter of a source."""
        return SOURCES[place]


def offset_of(place: int) -> int:
    """Where the source or result of a place lies, in bytes."""
    step = 16
    return step * place


def cases(forms: Sequence[Form]) -> list[Case]:
    """Every form with every kind of its sources."""
    return [Case(form, kinds) for form in forms for kinds in form.kinds]


def width(type_: str) -> int:
    """Bits of the register that holds a type; 1 for a predicate.

    Raises:
        ValueError: no type of PTX.
    """
    if type_ in _BITS:
        return _BITS[type_]
    if packed := _MINIFLOATS.fullmatch(type_):
        return 32 if packed["count"] == "4" else 16
    if vector := _VECTOR.fullmatch(type_):
        return int(vector[1]) * int(vector[2])
    if plain := _PLAIN.fullmatch(type_):
        return int(plain[1])
    raise ValueError(f"'{type_}' is no type of PTX that a register holds")


def lines(chosen: Sequence[Case], isa: str, target: str) -> Iterator[tuple[str, int]]:
    """The PTX of one module with a kernel for each case ("f0", "f1", ... in their order) and FRAME, line by
    line, each with the number of its case, -1 for those of none."""
    head = (f".version {isa}", f".target {target}", ".address_size 64")
    yield from ((f"{line}\n", -1) for line in (*head, *_kernel(_NOTHING, FRAME)))
    for number, case in enumerate(chosen):
        yield from ((f"{line}\n", number) for line in _kernel(case, f"f{number}"))


_NOTHING = Case(Form("nothing", "", (), (), "", ("",), ()), "")


def _kernel(case: Case, name: str) -> Iterator[str]:
    form = case.form
    sources = list(zip(SOURCES, form.inputs, case.kinds, form.immediates, strict=False))
    parameters = [f".param .b{width(type_)} p_{slot}" for slot, type_, kind, _ in sources if kind == "u"]
    yield f".visible .entry {name}({', '.join(parameters)})"
    yield "{"
    yield "  .reg .b32 %place, %mark;"
    yield f"  mov.u32 %place, %tid.y; mul.lo.u32 %place, %place, {STRIDE};"
    yield f"  ld.volatile.shared.b32 %mark, [%place+{LAST_OFFSET}];"
    # Sources come from memory that the compiler cannot foresee, so that it folds nothing.
    operands: dict[str, str] = {}
    for place, (slot, type_, kind, value) in enumerate(sources):
        operands[slot] = {"i": value, "p": _POWER}.get(kind, f"%{slot}")
        yield from _source(slot, type_, kind, offset_of(place))
    for slot, type_ in zip(DESTINATIONS, form.outputs, strict=False):
        operands[slot] = f"%{slot}"
        yield f"  .reg {_register(type_)} %{slot};"
    if form.body:
        yield f"  {substituted(form, operands).rstrip(';')};"
    # Every result is stored, or the form would be removed.
    for place, (slot, type_) in enumerate(zip(DESTINATIONS, form.outputs, strict=False)):
        yield _stored(slot, type_, offset_of(place))
    yield f"  st.volatile.shared.b32 [%place+{RESULTS + LAST_OFFSET}], %mark;"
    yield "  ret;"
    yield "}"


def _register(type_: str) -> str:
    return ".pred" if type_ == "pred" else f".b{width(type_)}"


def _source(slot: str, type_: str, kind: str, offset: int) -> Iterator[str]:
    """Declares a source and brings its value; nothing for an immediate."""
    if kind in "ip":
        return
    size = width(type_)
    yield f"  .reg {_register(type_)} %{slot};"
    if kind == "u":
        yield f"  ld.param.b{size} %{slot}, [p_{slot}];"
    elif kind == "z":
        yield f"  mov.b{size} %{slot}, 0;"
    elif size < 32:
        yield f"  .reg .b32 %{slot}w; ld.volatile.shared.b32 %{slot}w, [%place+{offset}];"
        yield f"  {_narrowed(slot, size)}"
    else:
        yield f"  ld.volatile.shared.b{size} %{slot}, [%place+{offset}];"
    if kind in "na":
        yield f"  {'neg' if kind == 'n' else 'abs'}.{_signed(type_)} %{slot}, %{slot};"


def _narrowed(slot: str, size: int) -> str:
    """The lower bits of the loaded word as a register of their own."""
    if size == 1:
        return f"setp.ne.u32 %{slot}, %{slot}w, {PREDICATE_MARK};"
    if size == 16:
        return f"cvt.u16.u32 %{slot}, %{slot}w;"
    return (
        f".reg .b8 %{slot}1, %{slot}2, %{slot}3; mov.b32 {{%{slot}, %{slot}1, %{slot}2, %{slot}3}}, %{slot}w;"
    )


def _signed(type_: str) -> str:
    """The type in which an operand is negated: integers have a sign for it."""
    return type_.replace("u", "s", 1) if type_.startswith("u") else type_


def _stored(slot: str, type_: str, offset: int) -> str:
    if type_ == "pred":
        return f"  @%{slot} st.volatile.shared.b32 [%place+{RESULTS + offset}], %mark;"
    return f"  st.volatile.shared.b{width(type_)} [%place+{RESULTS + offset}], %{slot};"
