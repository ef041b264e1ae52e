"""What an instruction is beside its arithmetic: who executes it, where its operands live, how it is written.

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


@dataclass(frozen=True)
class Traits:
    """The traits of one instruction.

    lanes: threads that execute one together. kernel: the generator of hw_capture that makes its kernels,
    None where there is none; toolkit: the first version of the compiler that knows it. in_place: D takes the
    place of C. placement: a sentence for operands that are not in registers. kind: what
    spec/layouts/register_containers.yaml is looked up by. modifiers: what the name says that changes results
    beside the types ("satfinite", "rz"). plain: the name is the plain spelling of its machine code. swept:
    one of many that differ in a dimension alone. other_form: the word for instructions that the compiler
    makes of those of another family.
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

    def places_of(self, operand: str) -> tuple[str, ...]:
        """Where an operand may live (keys of PLACES), the first unless the program chooses."""
        return self.places.get(operand, ("registers",))

    def by_column(self, operand: str) -> bool:
        """Whether memory holds the matrix column by column; B does unless the name says otherwise."""
        return self.order.get(operand, "col" if operand == "b" else "row") == "col"
