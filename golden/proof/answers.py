"""What a solver has answered, kept in a file: a proof that was interrupted does not ask it again.

    <hexadecimal SHA-256 of a question> never
    <hexadecimal SHA-256 of a question> unknown 12.5
    <hexadecimal SHA-256 of a question> holds 3c00 0 ff

A question is the whole text that a solver gets (solver.Question): the words of netlist and specification that
it is about, the facts, and what is assumed. So an answer does not depend on the version of a tool, on the
unit or on the rest of the proof, and a unit that was changed asks only what the change touches. `unknown` has
the seconds that were not enough, and `holds` has the values of the variables.

Nothing here is trusted. An answer saves the search a question; each lemma of a proof is solved again by other
solvers (golden/proof/checker.py), which do not read this file, and values are tried on the circuits. A false
line can make a verdict OPEN, but never PROVED or REFUTED.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

_LINE = re.compile(
    r"^([0-9a-f]{64}) (?:(never)|unknown ([0-9]+\.[0-9]+)|holds((?: [0-9a-f]+)*))$", re.MULTILINE
)


class Answers:
    """Answers by question.

    Attributes:
        taken: answers of earlier runs.

    Args:
        file: what earlier runs found, to which this one adds; None: nothing is kept. Lines that are none are
            ignored, such as the last one of a run that was killed.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._seconds: dict[str, float] = {}
        self._holds: dict[str, tuple[int, ...]] = {}
        if file is not None and file.is_file():
            with contextlib.suppress(OSError):
                text = file.read_text(encoding="ascii", errors="replace")
                for key, never, seconds, numbers in _LINE.findall(text):
                    if never or seconds:
                        self._seconds[key] = math.inf if never else float(seconds)
                    else:
                        self._holds[key] = tuple(int(one, 16) for one in numbers.split())
        self.taken = len(self._seconds) + len(self._holds)

    def seconds(self, text: str) -> float:
        """For how long the solver searched in vain; infinity: it has the answer NEVER."""
        return self._seconds.get(_key(text), 0.0)

    def holds(self, text: str) -> tuple[int, ...] | None:
        """The values for which all holds that a question is about; None: they are not known."""
        return self._holds.get(_key(text))

    def keep(self, text: str, seconds: float) -> None:
        """Notes that a question had no answer within `seconds`; infinity: the answer NEVER."""
        key = _key(text)
        if seconds > self._seconds.get(key, 0.0):
            self._seconds[key] = seconds
            self._write(key, "never" if seconds == math.inf else f"unknown {seconds:.2f}")

    def keep_values(self, text: str, numbers: Sequence[int]) -> None:
        """Notes the values for which all holds that a question is about."""
        key = _key(text)
        self._holds[key] = tuple(numbers)
        self._write(key, " ".join(["holds", *(f"{number:x}" for number in numbers)]))

    def _write(self, key: str, said: str) -> None:
        if self.file is not None:
            # A line begins with its break: the rest of one that was cut short spoils no other.
            with contextlib.suppress(OSError):  # a full disk costs the answer, not the proof
                self.file.parent.mkdir(parents=True, exist_ok=True)
                with self.file.open("a", encoding="ascii") as file:
                    file.write(f"\n{key} {said}")

    def drop(self) -> bool:
        """Forgets everything; whether earlier runs had a part in it."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.unlink()
        taken, self.taken = self.taken, 0
        self._seconds.clear()
        self._holds.clear()
        return taken > 0


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
