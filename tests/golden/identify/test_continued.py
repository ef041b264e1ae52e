"""A dissection that its limits ended goes on from its file, with the same box and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.errors import FileFormatError, OperandError
from golden.identify.blackbox import asking, dissecting, memory
from golden.identify.blackbox.box import BudgetEnded
from golden.identify.blackbox.product_groups import Groups
from golden.unit import FunctionUnit

FORMATS = {"a": "u8", "b": "u8", "c": "s32", "d": "s32"}
LIMITS: dict[str, Any] = {"seconds": 300, "asks": 8_000}


def wrapping(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.uint32) * b).sum(axis=1, dtype=np.uint32) + c


def other(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.uint32) * b).sum(axis=1, dtype=np.uint32) - c


def unit(function: Any, k: int = 2, name: str = "box") -> FunctionUnit:
    return FunctionUnit(function, FORMATS, k, name)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A dissection whose limits ended before its candidate was checked."""
    path = tmp_path_factory.mktemp("ended") / "kept.npz"

    def stop(search: Any) -> bool:
        raise BudgetEnded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dissecting._Search, "_check", stop)
        return path, golden.dissect(unit(wrapping), resume=path, **LIMITS)


def test_it_goes_on_with_what_it_knew(ended: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path, first = ended
    assert not first.explains and first.wrong == 0
    monkeypatch.setattr(asking, "find_order", None)  # what is known is not looked for again
    monkeypatch.setattr(dissecting.fitting, "rank", None)
    before = path.read_bytes()
    found = golden.dissect(unit(wrapping), resume=path, **LIMITS)
    assert found.explains and found.fresh > 3000 and found.asked > first.asked + 3000
    assert path.read_bytes() != before
    path.write_bytes(before)


@pytest.mark.parametrize(
    ("function", "k", "name", "error", "said"),
    [
        (other, 2, "box", OperandError, "of 512 of its questions, repeated, had another answer"),
        (wrapping, 3, "box", FileFormatError, "is a dissection of box as it was then"),
        (wrapping, 2, "another", FileFormatError, "not of another as it is"),
    ],
)
def test_another_box_is_refused(
    ended: tuple[Path, Any], function: Any, k: int, name: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        golden.dissect(unit(function, k, name), resume=ended[0], **LIMITS)


def test_another_version_or_file_is_refused(ended: tuple[Path, Any], tmp_path: Path) -> None:
    arrays = dict(np.load(ended[0]))
    head = json.loads(bytes(arrays["head"])) | {"version": "0.0.0"}
    path = tmp_path / "old.npz"
    np.savez(path, **arrays | {"head": np.frombuffer(json.dumps(head).encode(), np.uint8)})
    with pytest.raises(FileFormatError, match=r"was written by mmagold 0\.0\.0"):
        golden.dissect(unit(wrapping), resume=path, **LIMITS)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(FileFormatError, match="is no dissection that can be continued"):
        golden.dissect(unit(wrapping), resume=path, **LIMITS)
    checked = json.loads(bytes(arrays["head"])) | {"differing": {"wide": [0, 1_000_000]}}
    forged = {name: code for name, code in arrays.items() if name != "sum"}
    for bad in ({"text": 5}, {"changes": "x"}, {"kinds": {}}, {"groups": 4}):
        wrong = json.loads(bytes(arrays["head"])) | bad
        whole = forged | {"head": np.frombuffer(json.dumps(wrong).encode(), np.uint8)}
        np.savez(path, **whole | {"sum": memory._sum(whole)})
        with pytest.raises(FileFormatError, match="is no dissection that can be continued"):
            golden.dissect(unit(wrapping), resume=path, **LIMITS)
    whole = forged | {
        "head": np.frombuffer(json.dumps(head_of(arrays) | {"text": "unit: ["}).encode(), np.uint8)
    }
    np.savez(path, **whole | {"sum": memory._sum(whole)})
    with pytest.raises(FileFormatError, match="the candidate that was kept cannot be read"):
        golden.dissect(unit(wrapping), resume=path, **LIMITS)
    edits = {"answers": arrays["answers"][:5], "head": np.frombuffer(json.dumps(checked).encode(), np.uint8)}
    for name, edited in edits.items():
        np.savez(path, **arrays | {name: edited})
        with pytest.raises(FileFormatError, match="was edited or cut short"):
            golden.dissect(unit(wrapping), resume=path, **LIMITS)


def head_of(arrays: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(arrays["head"]))
    return found


def test_an_unwritable_file_is_reported_before_the_search(tmp_path: Path) -> None:
    asked: list[int] = []

    def dot(a: Any, b: Any, c: Any) -> Any:
        asked.append(len(a))
        return wrapping(a, b, c)

    with pytest.raises(FileFormatError, match="cannot be written"):
        golden.dissect(unit(dot), resume=tmp_path / "none" / "kept.npz", **LIMITS)
    assert not asked


def test_the_groups_that_were_asked_for_are_known_again(tmp_path: Path) -> None:
    """Only their questions show them, and these are not asked again."""
    path, box = tmp_path / "kept.npz", unit(wrapping, k=4)
    first, again = (dissecting._Search(box, 60, 8_000, 0, None) for _ in range(2))
    first.groups = Groups(((0, 2), (1, 3)))
    first.bank.add("masks", *first.dense.ask(stimuli.generate(first.takes, "wide", 8, first._rng(1))))
    first.keep(path)
    again.remember(path)
    assert again.groups == first.groups
    edited = dict(np.load(path))
    head = head_of(edited) | {"groups": [["x"]]}
    edited = {k: v for k, v in edited.items() if k != "sum"} | {
        "head": np.frombuffer(json.dumps(head).encode(), np.uint8)
    }
    np.savez(path, **edited | {"sum": memory._sum(edited)})
    with pytest.raises(FileFormatError, match="was edited or cut short"):
        again.remember(path)


def test_a_function_of_a_file_is_that_text(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text("def dot(a, b, c): ...")
    takes, name = unit(wrapping), f"python:{tmp_path}/box.py:dot"
    first = memory.digest(name, takes)
    assert memory.digest(name, takes) == first
    (tmp_path / "box.py").write_text("def dot(a, b, c): return c")
    assert memory.digest(name, takes) != first
