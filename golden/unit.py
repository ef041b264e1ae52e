"""A unit: whatever answers dot products.

An instruction is one, and so is a DUT behind an engine (rtl_tb.runs.unit), an instruction on a GPU
(hw_capture.record.unit) and a function of one's own:

    unit = FunctionUnit(my_dot, {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, k=8)

Probes, comparing, minimising, diagnosis and numeric profiles take any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.number.formats import Format, get_format
from golden.program.signature import Bits, Operands, Signature


class Unit(Protocol):
    """Formats by operand ("a", "b", "c", "d" and scales), the number of products, and the answer."""

    @property
    def formats(self) -> Mapping[str, Format]: ...

    @property
    def k(self) -> int: ...

    def dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
        mode: npt.ArrayLike | None = None,
        clear: npt.ArrayLike | None = None,
    ) -> Bits:
        """Raw codes in, raw codes out: a, b (..., k), c (...), or clear (...), to d (...)."""
        ...


def signature_of(unit: Unit | Signature) -> Signature:
    """What a unit takes: its own signature, or that of a dense unit with these formats."""
    if isinstance(unit, Signature):
        return unit
    return Signature(getattr(unit, "name", type(unit).__name__), 1, 1, unit.k, dict(unit.formats))


def answers_of(unit: Unit, operands: Operands) -> dict[str, Bits]:
    """All that a unit gives for a batch of dot products by name: d and, if it has them, status flags."""
    if isinstance(unit, Signature) and unit.status and hasattr(unit, "answers"):
        found: dict[str, Bits] = unit.answers(unit.check_named(operands))
        return found
    return {"d": unit.dot(**operands)}


def name_of(unit: Unit) -> str:
    """What messages call a unit: "hopper:HMMA.16816.F32", or its name alone."""
    architecture = getattr(unit, "architecture", "")
    return f"{architecture}:{signature_of(unit).name}" if architecture else signature_of(unit).name


def check_comparable(x: Signature, y: Signature) -> None:
    """Two units take the same operands, but for K.

    Raises:
        OperandError: they do not, or K differs and neither a nor b has a zero.
    """
    if x.k != y.k:
        check_can_pad(x)
    for unit in (x, y):
        if unit.state:
            raise OperandError(f"cannot compare: {unit.name} takes no c, it keeps its accumulator")
    for operand in ("a", "b", "c", "scale_a", "scale_b"):
        fx, fy = x.formats.get(operand), y.formats.get(operand)
        if fx != fy:
            names = [fmt.name if fmt else "none" for fmt in (fx, fy)]
            if fx and fy and names[0] == names[1]:  # two units define formats of one name
                names = [f"{name} ({said})" for name, said in zip(names, _differences(fx, fy), strict=True)]
            raise OperandError(
                f"cannot compare: operand {operand} is {names[0]} in {x.name} but {names[1]} in {y.name}"
            )
    if x.modes is not None and x.modes == y.modes:
        for code, _ in x.modes.codes():
            check_comparable(x.of_mode(code), y.of_mode(code))
        return
    if x.modes != y.modes:
        raise OperandError(
            f"cannot compare: {x.name} and {y.name} have different modes; compare one mode of each "
            "(`mode_units`)"
        )
    if x.pattern != y.pattern:
        raise OperandError(f"cannot compare: {x.name} and {y.name} have different sparsity")
    if x.scale_block != y.scale_block:
        raise OperandError(f"cannot compare: scale blocks are {x.scale_block} and {y.scale_block}")


def _differences(x: Format, y: Format) -> tuple[str, str]:
    """What one format has and the other has not, key by key."""
    differ = [one.name for one in fields(Format) if getattr(x, one.name) != getattr(y, one.name)]
    left, right = (", ".join(f"{name} {getattr(fmt, name)}" for name in differ) for fmt in (x, y))
    return left, right


def check_can_pad(takes: Signature) -> None:
    """Elements that are appended along K count as nothing: a factor of their products is zero.

    Raises:
        OperandError: neither a nor b has a zero.
    """
    if not any(not fmt.is_float or fmt.has_zero for fmt in (takes.formats["a"], takes.formats["b"])):
        raise OperandError(
            f"cannot append to K of {takes.name}: a is {takes.formats['a'].name} and b "
            f"{takes.formats['b'].name}, which have no zero, expected K of one length"
        )


def pad(operands: Operands, unit: Unit | Signature) -> Operands:
    """Appends zeros (scales: ones, metadata: a legal nibble) to operands (..., k) until they fit a longer
    unit."""
    takes = signature_of(unit)
    shapes = takes.operand_shapes(matrices=False)
    padded = {}
    for name, codes in operands.items():
        missing = shapes[name][0] - codes.shape[-1] if shapes[name] else 0
        tail = np.full((*codes.shape[:-1], missing), takes.at_rest(name), codes.dtype) if missing else None
        padded[name] = codes if tail is None else np.concatenate([codes, tail], axis=-1)
    return padded


Function = Callable[..., npt.ArrayLike | Mapping[str, npt.ArrayLike]]


class FunctionUnit(Signature):
    """A function f(a, b, c[, scale_a, scale_b, metadata, mode]) -> d on raw codes, a and b (n, k), c and d
    (n,), as a unit. Operands are C-contiguous, and given by these names; a function whose parameters have
    other names is given them in this order. With status flags it may answer {"d": ..., "flags": ...}."""

    function: Function
    takes: Signature | None = None
    """The unit that it takes the operands of, where it was made like one."""
    in_order: dict[tuple[str, ...], list[str]]
    """By the operands of a query the ones that the function takes by their places."""
    tile: Function | None = None
    """What answers whole tiles, D = A * B + C (tiles, m, n), where the unit behind the function does."""

    def __init__(
        self,
        function: Function,
        formats: Mapping[str, str | Format],
        k: int,
        name: str = "function",
        **more: Any,
    ) -> None:
        """`formats`: names or formats by operand; `more`: pattern, scale_block and others of Signature."""
        found = {key: get_format(fmt) if isinstance(fmt, str) else fmt for key, fmt in formats.items()}
        Signature.__init__(self, name, more.pop("m", 1), more.pop("n", 1), k, found, **more)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "in_order", {})

    @classmethod
    def like(
        cls, takes: Signature, function: Function, name: str | None = None, tile: Function | None = None
    ) -> FunctionUnit:
        """A function that takes what another unit takes."""
        given = {one.name: getattr(takes, one.name) for one in fields(Signature)}
        made = cls(function, given.pop("formats"), given.pop("k"), **given | {"name": name or takes.name})
        object.__setattr__(made, "takes", takes)
        object.__setattr__(made, "tile", tile)
        return made

    def of_mode(self, code: int) -> Signature:
        """What the unit takes in one mode, whose formats can be others."""
        chosen = Signature.of_mode(self, code) if self.takes is None else self.takes.of_mode(code)
        return Signature(**{one.name: getattr(chosen, one.name) for one in fields(Signature)})

    def dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        **others: npt.ArrayLike | None,
    ) -> Bits:
        """Asks the function; see `Unit.dot`.

        Raises:
            ShapeError, DTypeError, OperandError: of the operands. OperandError: the function answers with
                another number of results, or with codes that d does not have.
        """
        return self.answers(self.check_named({"a": a, "b": b, "c": c, **others}))["d"]

    def answers(self, operands: Operands) -> dict[str, Bits]:
        """All that the function gives for checked operands, by name: d and, if it has them, flags.

        Raises:
            OperandError: as `dot`; also of flags.
        """
        if self.state:
            operands = operands | {"clear": self._starting_each(operands)}
        results: dict[str, Bits] = {}

        def ask(batch: Operands) -> npt.ArrayLike:
            # what software answers can depend on how its operands lie in memory, never on who asks
            given = {name: np.ascontiguousarray(codes) for name, codes in batch.items()}
            names = tuple(given)
            if names not in self.in_order:  # a question of microseconds that each query would pay again
                self.in_order[names] = _in_order(self.function, names)
            by_place = [given.pop(name) for name in self.in_order[names]]
            found = self.function(*by_place, **given)
            if not isinstance(found, Mapping):
                return found
            if "flags" in found:
                results["flags"] = np.asarray(found["flags"])
            return found["d"]

        d = self.in_batches(operands, ask)
        if self.flags_format is None or not results:
            return {"d": d}
        if results["flags"].size != d.size:
            raise OperandError(
                f"{self.name} gave {results['flags'].size} words of flags for {d.size} results"
            )
        self.flags_format.check(results["flags"], "flags")
        return {"d": d, "flags": results["flags"].reshape(d.shape)}

    def _starting_each(self, operands: Operands) -> Bits:
        """`clear` for batches that follow one another: set where each begins but with a load."""
        batch = self.batch_of(operands)
        clear, load = (
            np.array(np.broadcast_to(operands.get(name, 0), batch or (1,))) for name in ("clear", "load")
        )
        clear[..., :1] |= (load[..., :1] == 0).astype(clear.dtype)
        return clear.reshape(batch)


_POSITIONS = ("a", "b", "c", "scale_a", "scale_b", "metadata", "mode", "clear", "load")
"""The order in which a function is given operands that it does not take by name."""


def _in_order(function: Function, names: Sequence[str]) -> list[str]:
    """The operands that a function takes by their places, since its parameters have other names; none if it
    takes them by name."""
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return []
    in_order = [name for name in _POSITIONS if name in names]
    by_place = not _accepts(taken, (), dict.fromkeys(names)) and _accepts(taken, in_order, {})
    return in_order if by_place else []


def _accepts(taken: inspect.Signature, given: Sequence[object], named: Mapping[str, object]) -> bool:
    try:
        taken.bind(*given, **named)
    except TypeError:
        return False
    return True
