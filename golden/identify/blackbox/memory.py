"""The file of a dissection that can be resumed: its questions and answers, with its candidate.

The file is bound to the box (its name and signature), and to the version of the package that wrote it. A
resumed dissection first repeats some of the questions: a box with other answers is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from golden import __version__, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.errors import FileFormatError, MmagoldError, SpecError
from golden.files.npyfile import read_arrays
from golden.files.output import write_whole
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.parts import Pass
from golden.kernels.sum_tree import Node
from golden.program.signature import Bits, Signature

FORM = 5
"""Version of the file's layout; another one is refused."""
_HEAD: dict[str, Any] = {
    **dict.fromkeys(("form", "asked", "turn"), int),
    **dict.fromkeys(("version", "box", "name", "order"), str),
    **dict.fromkeys(("changes", "groups", "passes", "kinds"), list),
    **{"text": str | None, "tree": list | None, "differing": dict},
}
"""The keys of the head, and what each holds."""


@dataclass
class Memory:
    """The state of a dissection when it ended.

    Attributes:
        bank: the recorded questions, with their answers, of the dense view.
        tree: the order of the sum that masks showed.
        groups: the products that are added before they are cut (`product_groups`).
        passes: possible lists of passes (`parts`).
        text: YAML of the candidate; None if there was none that could be written.
        order, changes: its skeleton in words and the changes that made it.
        differing: the checks that it went through.
        queries: dot products that the box had answered. turn: rounds of checking so far.
    """

    bank: Bank
    tree: Node | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    passes: list[tuple[Pass, ...]] = field(default_factory=list)
    text: str | None = None
    order: str = ""
    changes: list[str] = field(default_factory=list)
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    queries: int = 0
    turn: int = 0

    def candidate(self) -> Candidate | None:
        """The candidate; None if there was none."""
        if self.text is None:
            return None
        try:
            ins = build_instruction(yamlfile.parse(self.text))
        except SpecError as error:
            raise FileFormatError(f"the candidate that was kept cannot be read: {error}") from None
        return Candidate(self.bank.takes, ins.program.operations, self.order)


def _loads(takes: Signature) -> tuple[object, ...]:
    return (takes.load, takes.alone) if takes.load or takes.alone else ()


def digest(name: str, takes: Signature) -> str:
    """What a file is bound to: the name and signature of the box; for a function in a file that file, too."""
    hashed = hashlib.sha256()
    kinds = {operand: str(fmt) for operand, fmt in takes.formats.items()}
    hashed.update(
        repr(
            (name, takes.k, kinds, str(takes.pattern), takes.scale_block, takes.state, *_loads(takes))
        ).encode()
    )
    for part in name.split(":"):
        if Path(part).suffix and Path(part).is_file():
            hashed.update(Path(part).read_bytes())
    return hashed.hexdigest()


def save(path: str | Path, name: str, box: Signature, memory: Memory) -> None:
    """Writes the file, whole or not at all.

    Raises:
        FileFormatError: it cannot be written.
    """
    bank = memory.bank
    head = {
        "form": FORM,
        "version": __version__,
        "box": digest(name, box),
        "name": name,
        "asked": memory.queries,
        "turn": memory.turn,
        "order": memory.order,
        "changes": memory.changes,
        "text": memory.text,
        "tree": None if memory.tree is None else _listed(memory.tree),
        "groups": memory.groups,
        "passes": memory.passes,
        "kinds": bank.kinds,
        "differing": memory.differing,
    }
    # The checksum covers questions and answers: an edited file would mislead every fit.
    arrays = {f"operand_{key}": codes for key, codes in bank.operands.items()}
    arrays |= {"answers": bank.answers, "numbers": bank.numbers}
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    arrays["sum"] = _sum(arrays)
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def load(path: str | Path, name: str, box: Signature, takes: Signature) -> Memory:
    """Reads the file of a dissection of this box.

    Args:
        name, box: of the box that is queried now. takes: the signature of its dense view.

    Raises:
        FileFormatError: it is no such file, or one of another box or version.
    """
    # 1. The head: this form, this version, this box; nothing else of the file is read before.
    arrays = read_arrays(path)
    try:
        head: dict[str, Any] = json.loads(bytes(arrays["head"]))
        if set(head) != set(_HEAD) or head["form"] != FORM:
            raise ValueError
        if not all(isinstance(head[key], kind) for key, kind in _HEAD.items()):
            raise TypeError
    except (KeyError, ValueError, TypeError):
        raise FileFormatError(f"{path}: is no dissection that can be continued") from None
    if head["version"] != __version__:
        raise FileFormatError(f"{path}: was written by mmagold {head['version']}, expected {__version__}")
    if head["box"] != digest(name, box):
        raise FileFormatError(
            f"{path}: is a dissection of {head['name']} as it was then, not of {name} as it is"
        )
    # 2. The questions with their answers, as they were written.
    checksum = arrays.pop("sum", np.zeros(0, np.uint8))
    if not np.array_equal(checksum, _sum(arrays)):
        raise FileFormatError(f"{path}: was edited or cut short: its checksum is another")
    bank = Bank(takes)
    try:
        numbers = arrays["numbers"]
        for number, kind in enumerate(head["kinds"]):
            rows = np.flatnonzero(numbers == number)
            operands = {key: arrays[f"operand_{key}"][rows] for key in bank.operands}
            bank.add(kind, takes.check_named(operands), arrays["answers"][rows])
        differing = {kind: (int(wrong), int(count)) for kind, (wrong, count) in head["differing"].items()}
        tree = None if head["tree"] is None else _node(head["tree"])
        groups = tuple(tuple(map(int, one)) for one in head["groups"])
        listed = head["passes"]
        passes = [tuple(((int(a), int(n)), (int(b), int(m))) for (a, n), (b, m) in one) for one in listed]
    except (KeyError, IndexError, ValueError, TypeError, MmagoldError) as error:
        raise FileFormatError(f"{path}: was edited or cut short: {error}") from None
    # The candidate stays text: it is read as any unit when it is needed.
    known = head["text"], head["order"], head["changes"], differing, head["asked"], head["turn"]
    return Memory(bank, tree, groups, passes, *known)


def _sum(arrays: dict[str, Bits]) -> Bits:
    """SHA-256 of the whole content: a damaged file cannot pass for checks that were made."""
    hashed = hashlib.sha256()
    for name in sorted(arrays):
        codes = np.ascontiguousarray(arrays[name])
        hashed.update(repr((name, codes.dtype.str, codes.shape)).encode() + codes.tobytes())
    return np.frombuffer(hashed.digest(), np.uint8)


def _listed(node: Node) -> list[Any]:
    return [node.exact, *(one if isinstance(one, int) else _listed(one) for one in node.children)]


def _node(listed: list[Any]) -> Node:
    children = (int(one) if isinstance(one, int) else _node(one) for one in listed[1:])
    return Node(tuple(children), bool(listed[0]))
