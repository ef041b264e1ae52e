"""One explanation of a unit's results: an instruction with mutations, and the results that it leaves
wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from golden.identify.diagnose.mutations import CONTEXT, Mutation, has_signal, run
from golden.identify.diagnose.policy import SEARCH
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands


@dataclass(frozen=True)
class Hypothesis:
    """One explanation. `remaining` of `total` results still differ. `failing` of these are wrong, where they
    are not all that the diagnosis has.

    Attributes:
        slug: stable names of its mutations, joined with "+".
        text: the mutations in words.
        start: the instruction that it began with.
        weight: of hypotheses that leave as much, the one with the lower weight is the likelier.
        known: whether `start` is a catalogued instruction other than the expected one.
        mutations: what differs from `start`, in the order in which it is applied.
        delay: result i belongs to vector i - delay.
    """

    slug: str
    text: str
    start: Instruction | None = None
    weight: float = 1.0
    known: bool = False
    mutations: tuple[Mutation, ...] = ()
    delay: int = 0
    remaining: int = -1
    total: int = 0
    failing: int | None = None

    @cached_property
    def instruction(self) -> Instruction | None:
        """`start` with the changes of its program; None where they mean nothing together."""
        found = self.start
        for one in self.mutations:
            if one.program is not None and found is not None:
                found = one.program(found)
        return found

    @property
    def known_instruction(self) -> Instruction:
        """`instruction`, which has to exist."""
        assert self.instruction is not None
        return self.instruction

    def of(self, instruction: Instruction | None) -> Hypothesis:
        """The same hypothesis with an instruction that was made already."""
        self.__dict__["instruction"] = instruction
        return self

    def counted(self, remaining: int, total: int, failing: int | None = None) -> Hypothesis:
        """The hypothesis with the number of `total` results that it leaves wrong, and `failing`, how many of
        these are wrong."""
        return replace(self, remaining=remaining, total=total, failing=failing).of(self.instruction)

    @property
    def outside(self) -> tuple[Mutation, ...]:
        """The mutations of ports and signals, which the program cannot express."""
        return tuple(one for one in self.mutations if one.program is None)

    @property
    def in_datapath(self) -> bool:
        """Whether a signal of the data path is changed; then it runs long."""
        return any(one.signals for one in self.mutations)

    @property
    def in_order(self) -> bool:
        """Whether a result depends on the vectors before or after."""
        return any(one.in_order for one in self.mutations)

    @property
    def symptom(self) -> bool:
        """Whether it states what the results look like, and no cause."""
        return any(one.symptom for one in self.mutations)

    @property
    def has_words(self) -> bool:
        """Whether the schema of units can express it."""
        return self.instruction is not None and not self.outside and not self.delay

    @property
    def rank(self) -> tuple[bool, float]:
        """The order of hypotheses that leave equally many: causes before symptoms."""
        return self.symptom, self.weight

    def results(self, operands: Operands) -> Bits:
        """The results of the unit (without `delay`)."""
        return run(self.known_instruction, self.outside, operands)

    def flags(self, operands: Operands) -> Bits | None:
        """The status flags of the unit, codes (n,); None if a mutation does not determine them: one of its
        results or of a signal."""
        ins = self.instruction
        if ins is None or not ins.status or self.delay:
            return None
        for one in self.outside:
            if one.operands is None or one.result or one.answer or one.signals:
                return None
            operands = one.operands(operands)
        return ins.flags(**{name: codes for name, codes in operands.items() if name not in CONTEXT})

    def accepted(self, failing: int) -> bool:
        """Whether it explains most of the results that differ, `failing` of all."""
        return self.remaining <= SEARCH.accepted * self.of_wrong(failing)

    def of_wrong(self, failing: int) -> int:
        """How many of the results on which it was counted are wrong, if `failing` of all are."""
        return failing if self.failing is None else self.failing

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"slug": self.slug, "text": self.text, "remaining": self.remaining, "total": self.total}

    # Combining ----------------------------------------------------------------------------------------------

    def with_one_more(self, mutation: Mutation) -> Hypothesis | None:
        """The hypothesis with one more mutation after its own; None if it has it already, or if one of them
        has no meaning in the program that the others make."""
        if mutation.slug in self.slug.split("+"):
            return None
        new = self._named(mutation, mutations=(*self.mutations, mutation))
        # the program that is there already: units that share one share its compiled engine
        program = self.instruction if mutation.program is None else mutation.program(self.known_instruction)
        if program is None or not all(fits(one, program) for one in new.outside):
            return None
        return new.of(program)

    def without(self, mutation: Mutation) -> Hypothesis | None:
        """The hypothesis without one of its mutations, named by the others; None if these have no meaning
        then."""
        left = tuple(one for one in self.mutations if one is not mutation)
        bare = replace(self, slug="", text="", weight=0.0, mutations=left)
        found = reduce(Hypothesis._named, left, bare)
        return None if found.instruction is None else found

    def _named(self, mutation: Mutation, **more: Any) -> Hypothesis:
        """With one more part in its name."""
        slug = "+".join(sorted(filter(None, (self.slug, mutation.slug))))
        joined = " with " if self.known and "+" not in self.slug else " and "
        text = f"{self.text}{joined}{mutation.text}" if self.text else mutation.text
        return replace(self, slug=slug, text=text, weight=self.weight + mutation.weight, **more)


def fits(mutation: Mutation, ins: Instruction) -> bool:
    """Whether an instruction, perhaps a changed one, can have a mutation of its ports or signals."""
    return not mutation.signals or has_signal(ins, mutation.slug)
