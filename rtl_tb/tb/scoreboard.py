"""A scoreboard in order: the n-th result belongs to the n-th set of operands.
It never stops at the first mismatch.

Expected results are computed in batches by the golden model when somebody asks, not for every transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import ShapeError
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import INPUTS
from golden.vectors.word import WordLayout
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import ProtocolFailure
from rtl_tb.errors import RtlError

Bits = npt.NDArray[Any]
Compare = ComparePolicy | Callable[[Format, Bits, Bits], Bits]
OnChecked = Callable[[dict[str, Bits], Bits], object]


@dataclass(frozen=True)
class Mismatch:
    """One wrong result.

    Attributes:
        index: its place among all results, from 0.
        operands: the raw codes by name.
        expected: raw codes of D, () or (m, n).
        actual: the same, or None where a bit is X or Z.
        bits: the result as it came, MSB first.
        flags: the expected and the actual status flags, of the shape of d; None where the unit has none.
    """

    index: int
    operands: dict[str, Bits]
    expected: Bits
    actual: Bits | None
    bits: str
    flags: tuple[Bits, Bits] | None = None


class Scoreboard:
    """Compares results with the golden model.

    Attributes:
        mismatches: the first KEPT wrong results.
        wrong, unknown: number of wrong results, and of results with X or Z (not counted as wrong).
        checked: number of results compared.
        failures: broken rules of the handshake, where a bench reports them.

    Each of them is of all that has come so far.
    """

    def __init__(self, instruction: Instruction, level: str = "dot", compare: Compare | None = None) -> None:
        """`compare` is a ComparePolicy or a function (format, expected, actual) -> array of bool;
        exact if None."""
        policy = compare or ComparePolicy()
        if not isinstance(policy, ComparePolicy) and not callable(policy):
            raise RtlError(f"compare is {policy!r}, expected a ComparePolicy or a function")
        self._equal = policy.equal if isinstance(policy, ComparePolicy) else policy
        self.instruction, self.level = instruction, level
        self.layout = WordLayout.of(instruction, level)
        self._mismatches: list[Mismatch] = []
        self.failures: Sequence[ProtocolFailure] = ()
        self._wrong = self._unknown = self._checked = 0
        self._words: list[Bits] = []
        self._waiting = 0
        self._results: list[str] = []
        self._observers: list[OnChecked] = []
        self._held = 0
        """What a unit that keeps its accumulator holds after what was compared."""

    # What came in -------------------------------------------------------------------------------------------

    def expect(self, operands: Mapping[str, Bits] | Bits | int) -> None:
        """Notes operands that the unit accepted.

        Args:
            operands: by name, (count, *shape) each; or operand words, uint8 (count, bytes);
                or one word as a number.

        Raises:
            OperandError: an operand is missing, or is none, or holds no codes of its format.
        """
        if isinstance(operands, Mapping):
            words = self.packed(operands)
        elif isinstance(operands, int):
            size = (self.layout.operand_width + 7) // 8
            words = np.frombuffer(operands.to_bytes(size, "little"), np.uint8)[None]
        else:
            words = operands
        self._words.append(words)
        self._waiting += len(words)

    def packed(self, operands: Mapping[str, Bits]) -> Bits:
        """Operand words, uint8 (count, bytes), of operands by name.

        Raises:
            OperandError: as `expect`.
        """
        return self.layout.pack_operands(self.instruction.check_named(operands, self.level != "dot"))

    def receive(self, bits: Any) -> None:
        """Notes one result, or a list of several, each as 0, 1, X and Z, MSB first: a string, or the value of
        a handle."""
        results = [str(one) for one in (bits if isinstance(bits, list | tuple) else [bits])]
        for one in results:
            if len(one) != self.layout.result_width:
                raise ShapeError(
                    f"a result has {len(one)} bits, expected {self.layout.result_width} for "
                    f"{self.instruction.name}"
                )
        self._results.extend(results)

    def forget(self) -> None:
        """Drops the operands without a result: a reset lost them."""
        self.check()
        self._words, self._waiting, self._held = [], 0, 0

    def state_lost(self) -> None:
        """A reset came while no result was due: a unit that keeps its accumulator goes on from zero."""
        self.check()
        self._held = 0

    def on_checked(self, observer: OnChecked) -> None:
        """Has `observer(operands, d)` called with every batch that is compared, for coverage; d is the
        expected result, and the operands have a c also where the unit keeps it."""
        self._observers.append(observer)

    def same(self, one: str, other: str) -> bool:
        """Whether of two results, as 0, 1, X and Z, each is acceptable where the other is expected."""
        codes, unknown = unpack_bits([one, other], self.layout)
        d, fmt = codes.pop("d"), self.instruction.formats["d"]
        equal = self._equal(fmt, d[0], d[1]) & self._equal(fmt, d[1], d[0])
        alike = all((both[0] == both[1]).all() for both in codes.values())
        return one == other or bool(np.all(equal) and alike and not unknown.any())

    # What it means ------------------------------------------------------------------------------------------

    @property
    def wrong(self) -> int:
        """Number of wrong results, without those with X or Z."""
        self.check()
        return self._wrong

    @property
    def unknown(self) -> int:
        """Number of results with X or Z."""
        self.check()
        return self._unknown

    @property
    def checked(self) -> int:
        """Number of results compared."""
        self.check()
        return self._checked

    @property
    def mismatches(self) -> list[Mismatch]:
        """The first wrong results."""
        self.check()
        return self._mismatches

    @property
    def missing(self) -> int:
        """Operands without a result."""
        return max(self._waiting - len(self._results), 0)

    @property
    def extra(self) -> int:
        """Results without operands."""
        return max(len(self._results) - self._waiting, 0)

    def check(self) -> None:
        """Compares what has come since the last call."""
        count = min(self._waiting, len(self._results))
        if not count:
            return
        words = np.concatenate(self._words)
        self._words, self._waiting = [words[count:]], self._waiting - count
        results, self._results = self._results[:count], self._results[count:]
        operands = self.layout.unpack_operands(words[:count])
        held = self._held
        expected = self._expected(operands)
        codes, unknown = unpack_bits(results, self.layout)
        equal = np.asarray(self._equal(self.instruction.formats["d"], expected["d"], codes["d"]))
        if equal.dtype != bool or equal.shape != expected["d"].shape:
            raise ShapeError(
                f"compare gave {equal.dtype} {equal.shape}, expected bool {expected['d'].shape}, one of each "
                "result"
            )
        if "flags" in expected:
            equal = equal & (expected["flags"] == codes["flags"])
        wrong = ~equal.reshape(count, -1).all(axis=1) & ~unknown
        self._note(operands, expected, codes, unknown, wrong, results)
        for observer in self._observers:
            observer(self.instruction.resolve(operands, expected["d"], held), expected["d"])
        self._checked += count

    def _expected(self, operands: dict[str, Bits]) -> dict[str, Bits]:
        """The instruction's results for operands that the unit took, which may be any bits."""
        matrices = self.level != "dot"
        given = [operands.get(name) for name in INPUTS]
        checked = self.instruction.check_operands(given, matrices)
        expected = self.instruction.answers(checked, matrices, self._held)
        self._held = int(expected["d"][-1]) if self.instruction.state else 0
        return expected

    def _note(
        self,
        operands: dict[str, Bits],
        expected: dict[str, Bits],
        codes: dict[str, Bits],
        unknown: Bits,
        wrong: Bits,
        bits: list[str],
    ) -> None:
        self._wrong += int(np.count_nonzero(wrong))
        self._unknown += int(np.count_nonzero(unknown))
        # Mismatches that are kept with their operands; the others are counted.
        kept = 1000
        for i in np.flatnonzero(wrong | unknown)[: kept - len(self._mismatches)]:
            of_one = {name: array[i] for name, array in operands.items()}
            actual = None if unknown[i] else codes["d"][i]
            flags = (expected["flags"][i], codes["flags"][i]) if "flags" in expected else None
            self._mismatches.append(
                Mismatch(self._checked + int(i), of_one, expected["d"][i], actual, bits[i], flags)
            )

    @property
    def clean(self) -> bool:
        """Whether something was compared, everything expected came and is right, and the handshake kept
        its rules."""
        return self.checked > 0 and not (
            self.wrong or self.unknown or self.missing or self.extra or self.failures
        )

    def summary(self) -> str:
        """What was found: one line of counts, then the first mismatches and failures, one line each."""
        counts = {
            "wrong": self.wrong,
            "with X or Z": self.unknown,
            "missing": self.missing,
            "extra": self.extra,
        }
        lines = [
            f"{self.checked} results of {self.instruction.name}: "
            + ", ".join(f"{n} {what}" for what, n in counts.items())
        ]
        lines[0] += f", {len(self.failures)} protocol failures"
        lines[0] += "; a check of nothing proves nothing" * (not self.checked)
        shown = 5
        lines += [self._line(mismatch) for mismatch in self.mismatches[:shown]]
        if self.wrong + self.unknown > shown:
            lines.append(f"  and {self.wrong + self.unknown - shown} more")
        lines += [
            f"  cycle {failure.cycle}: {failure.kind}: {failure.text}" for failure in self.failures[:shown]
        ]
        return "\n".join(lines)

    def assert_clean(self) -> None:
        """Raises AssertionError with the summary unless `clean`."""
        assert self.clean, self.summary()

    def _line(self, mismatch: Mismatch) -> str:
        actual = f"{mismatch.bits} (X or Z)" if mismatch.actual is None else self._codes("d", mismatch.actual)
        expected = self._codes("d", mismatch.expected)
        if mismatch.flags is not None:
            wanted, came = (self._codes("flags", codes) for codes in mismatch.flags)
            expected += f" with flags {wanted}"
            actual += f" with flags {came}" * (mismatch.actual is not None)
        given = " ".join(f"{name}={self._codes(name, codes)}" for name, codes in mismatch.operands.items())
        return f"  result {mismatch.index}: got {actual}, expected {expected} for {given}"

    def _codes(self, name: str, codes: Bits) -> str:
        bits = next(field.bits for field in self.layout.fields if field.name == name)
        flat = [f"{int(code):0{(bits + 3) // 4}x}" for code in np.ravel(codes)]
        return "0x" + flat[0] if len(flat) == 1 else "[" + " ".join(flat) + "]"


def unpack_bits(results: Sequence[str], layout: WordLayout) -> tuple[dict[str, Bits], Bits]:
    """Turns results as strings into codes by name (d and, where there are any, flags) and a mask.

    Returns:
        (codes, unknown): codes (count,) or (count, m, n), unknown bits are 0; unknown (count,), where a bit
        is X or Z.
    """
    text = np.frombuffer("".join(results).encode("ascii"), np.uint8).reshape(
        len(results), layout.result_width
    )
    ones = text == ord("1")
    unknown = ~(ones | (text == ord("0"))).all(axis=1)
    words = np.packbits(ones[:, ::-1], axis=1, bitorder="little")
    return layout.unpack_results(words), unknown
