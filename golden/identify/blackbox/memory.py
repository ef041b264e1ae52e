"""A dissection that can be continued: its questions and answers in a file, with the candidate that it had.

The file is bound to the box (its name and what it takes), and to the version of the package, whose search it
was. Whoever continues asks some of the questions again first: a box that answers otherwise than it did is
refused.
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
from golden.kernels.sum_tree import Node
from golden.program.signature import Bits, Signature

FORM = 3
_HEAD = (
    "form",
    "version",
    "box",
    "name",
    "asked",
    "turn",
    "order",
    "told",
    "text",
    "tree",
    "groups",
    "end",
    "kinds",
    "differing",
)
_KINDS = {
    **{"asked": int, "turn": int, "order": str, "told": list},
    **{"text": str | None, "groups": list, "end": int | None, "kinds": list},
}


@dataclass
class Memory:
    """What a dissection knew when it ended.

    Attributes:
        bank: the questions kept, with their answers, of the dense view.
        tree: the order of the sum that masks showed.
        groups: the products that are added before they are cut, as questions showed them (`partners`).
        end: the exponent from which on products overflow, where most questions showed it.
        text: YAML of the candidate; None where there was none that could be written.
        order, told: its skeleton in words and the changes that made it.
        differing: the checks that it went through.
        asked: dot products that the box had answered. turn: rounds of checking so far.
    """

    bank: Bank
    tree: Node | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    text: str | None = None
    order: str = ""
    told: list[str] = field(default_factory=list)
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    asked: int = 0
    turn: int = 0
    end: int | None = None

    def candidate(self) -> Candidate | None:
        """The candidate; None where there was none."""
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
    """What a file is bound to: the box's name and what it takes; of a function of a file that file, too."""
    told = hashlib.sha256()
    kinds = {operand: str(fmt) for operand, fmt in takes.formats.items()}
    told.update(
        repr(
            (name, takes.k, kinds, str(takes.pattern), takes.scale_block, takes.state, *_loads(takes))
        ).encode()
    )
    for part in name.split(":"):
        if Path(part).suffix and Path(part).is_file():
            told.update(Path(part).read_bytes())
    return told.hexdigest()


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
        "asked": memory.asked,
        "turn": memory.turn,
        "order": memory.order,
        "told": memory.told,
        "text": memory.text,
        "tree": None if memory.tree is None else _listed(memory.tree),
        "groups": memory.groups,
        "end": memory.end,
        "kinds": bank.kinds,
        "differing": memory.differing,
    }
    arrays = {f"operand_{key}": codes for key, codes in bank.operands.items()}
    arrays |= {"answers": bank.answers, "numbers": bank.numbers}
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    arrays["sum"] = _sum(arrays)
    write_whole(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def load(path: str | Path, name: str, box: Signature, takes: Signature) -> Memory:
    """Reads the file of a dissection of this box.

    Args:
        name, box: of the box that is asked now. takes: what its dense view takes.

    Raises:
        FileFormatError: it is no such file, or one of another box or version.
    """
    arrays = read_arrays(path)
    try:
        head: dict[str, Any] = json.loads(bytes(arrays["head"]))
        if set(head) != set(_HEAD) or head["form"] != FORM:
            raise ValueError
        for key, kind in _KINDS.items():
            if not isinstance(head[key], kind):
                raise TypeError
    except (KeyError, ValueError, TypeError):
        raise FileFormatError(f"{path}: is no dissection that can be continued") from None
    if head["version"] != __version__:
        raise FileFormatError(f"{path}: was written by mmagold {head['version']}, expected {__version__}")
    if head["box"] != digest(name, box):
        raise FileFormatError(
            f"{path}: is a dissection of {head['name']} as it was then, not of {name} as it is"
        )
    told = arrays.pop("sum", np.zeros(0, np.uint8))
    if not np.array_equal(told, _sum(arrays)):
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
    except (KeyError, IndexError, ValueError, TypeError, MmagoldError) as error:
        raise FileFormatError(f"{path}: was edited or cut short: {error}") from None
    known = head["text"], head["order"], head["told"], differing, head["asked"], head["turn"]
    return Memory(bank, tree, groups, *known, end=head["end"])


def _sum(arrays: dict[str, Bits]) -> Bits:
    """SHA-256 of everything that a file holds: checks that were not made are not read from it by mistake."""
    told = hashlib.sha256()
    for name in sorted(arrays):
        codes = np.ascontiguousarray(arrays[name])
        told.update(repr((name, codes.dtype.str, codes.shape)).encode() + codes.tobytes())
    return np.frombuffer(told.digest(), np.uint8)


def _listed(node: Node) -> list[Any]:
    return [node.exact, *(one if isinstance(one, int) else _listed(one) for one in node.children)]


def _node(listed: list[Any]) -> Node:
    children = (int(one) if isinstance(one, int) else _node(one) for one in listed[1:])
    return Node(tuple(children), bool(listed[0]))
