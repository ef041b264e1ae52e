"""What an instruction is apart from its arithmetic: who executes it, where its operands live, how it is
written.

The families of `spec/families` say it, variant by variant; nothing reads it out of a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PLACES = {
    "registers": "registers",
    "shared": "shared memory",
    "tensor": "tensor memory",
    "tiles": "tile registers",
}
"""Where operands can live, and how it reads."""
_NEG, _ALL = ("neg_lo", "neg_hi"), ("neg_lo", "neg_hi", "op_sel", "op_sel_hi")
SOURCES: dict[str, tuple[tuple[str, ...], str]] = {
    "halves": (
        _NEG,
        "neg_lo negates the elements in low halves of registers (even k), neg_hi the elements in "
        "high halves (odd k)",
    ),
    "halves_unselected": (_ALL, "the same as halves, whatever op_sel and op_sel_hi are"),
    "halves_selected": (
        _ALL,
        "op_sel chooses the half that stands for the low one, op_sel_hi for the high one (1: the high half); "
        "then the same as halves",
    ),
    "whole": (_NEG, "neg_hi clears the sign, then neg_lo turns it"),
    "whole_in_half": (
        _ALL,
        "the same as whole; op_sel chooses the half of registers that holds c and d, where one holds one "
        "element, and does nothing where it holds two; op_sel_hi does nothing",
    ),
    "signedness": (("neg_lo",), "neg_lo says that it is signed: another instruction of the catalogue"),
    "unclamped": (("clamp",), "clamp does nothing"),
    "clamped": (("clamp",), "clamp makes it saturate: another instruction of the catalogue"),
}
"""What modifiers of an encoding can do to an operand, and clamp to the result: which ones, and what."""


@dataclass(frozen=True)
class Traits:
    """The traits of one instruction.

    lanes: threads that execute one together. kernel: the generator of hw_capture that makes its kernels,
    None where there is none; toolkit: the first version of the compiler that knows it. in_place: D takes the
    place of C. placement: a sentence for operands that are not in registers. kind: what
    spec/layouts/register_containers.yaml is looked up by. modifiers: what the name says that changes results
    in addition to the types ("satfinite", "rz"). plain: the name is the plain spelling of its machine code.
    swept:
    one of many that differ in a dimension alone. other_form: the word for instructions that the compiler
    makes of another family. sources: by operand, what the encoding's modifiers of it do (keys of
    SOURCES); see golden/catalog/source_modifiers.py.
    """

    lanes: int = 1
    kernel: str | None = None
    toolkit: str | None = None
    in_place: bool = False
    placement: str = ""
    kind: str = ""
    modifiers: tuple[str, ...] = ()
    plain: bool = True
    swept: bool = False
    other_form: str = ""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def places_of(self, operand: str) -> tuple[str, ...]:
        """Where an operand may live (keys of PLACES), the first unless the program chooses."""
        return self.places.get(operand, ("registers",))

    def by_column(self, operand: str) -> bool:
        """Whether memory holds the matrix column by column; B does by default."""
        return self.order.get(operand, "col" if operand == "b" else "row") == "col"
