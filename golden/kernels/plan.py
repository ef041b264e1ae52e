"""An accumulation plan: an instruction, and everything else that a kernel decides about a whole matrix
product.

plan = golden.plan("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", promote=128, out="bf16")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from golden.errors import OperandError
from golden.kernels.conversion import can_convert
from golden.kernels.options import Options, check_options
from golden.model.instruction import Evidence, Instruction
from golden.number.formats import Format, get_format

Fail = Callable[[str, str], Exception]
"""Makes the error of a message about a key."""
OWN = Evidence("derived", "a plan of one's own: nothing is claimed of any kernel")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `golden.gemm` computes; made by `golden.plan`, `golden.plans` or `golden.find_plan`.

    `others`: for a plan that was found, the plans with the same bits on the same data. `seen`: kernels with
    which a named plan was observed.
    """

    instruction: Instruction
    options: Options
    name: str = ""
    title: str = ""
    seen: tuple[str, ...] = ()
    evidence: Evidence = OWN
    others: tuple[Plan, ...] = ()

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.given.items()]
        return f"<Plan {self.name or 'of'} {', '.join([self.full_instruction, *words])}>"

    @property
    def full_instruction(self) -> str:
        """architecture:instruction."""
        return f"{self.instruction.architecture}:{self.instruction.name}"

    @cached_property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        plain = Options()
        return {
            one.name: getattr(self.options, one.name)
            for one in fields(Options)
            if getattr(self.options, one.name) != getattr(plain, one.name)
        }

    @cached_property
    def formats(self) -> dict[str, Format]:
        """The formats of A, B, C and D as `golden.gemm` takes and gives them, by a, b, c and d."""
        own, options = self.instruction.formats, self.options
        out = get_format(options.out) if options.out else own["d"]
        c = out if out.storage <= self._computes(out).storage else self._computes(out)
        c = own["c"] if options.c == "seed" else c
        return {
            "a": get_format(options.a) if options.a else own["a"],
            "b": get_format(options.b) if options.b else own["b"],
            "c": get_format(options.c_format) if options.c_format else c,
            "d": out,
        }

    @cached_property
    def tile_steps(self) -> int:
        """Steps of the instruction in a tile of K; of operands in parts, the steps of all products."""
        return self.tile // self.instruction.k * len(self.options.products or [None])

    @property
    def tile(self) -> int:
        """Elements of K in a tile."""
        return self.options.tile_k or self.instruction.k * self.options.slices

    @property
    def promoted_steps(self) -> int:
        """Steps of the instruction after which a sum is promoted; 0: none is."""
        if self.options.products:
            return self.tile_steps
        return (self.options.promote or 0) // self.instruction.k

    @cached_property
    def accumulates(self) -> Format:
        """The format of sums after the instruction: f32, f64 of f64, s32 of integers."""
        d = self.instruction.formats["d"]
        return d if d.name in ("f64", "s32") else get_format("f32")

    @property
    def computes(self) -> Format:
        """The format in which scales, alpha, beta and bias are applied: that of sums, f32 of integers with
        results that are none."""
        return self._computes(self.formats["d"])

    def is_plain(self, has_c: bool) -> bool:
        """Whether results of one chain are results of the plan as they are, NaN words too."""
        options = self.options
        after = options.c == "after" and has_c and options.beta != 0
        same = self.formats["d"] == self.instruction.formats["d"]
        no_more = options.scales == options.bias == options.activation == "none"
        no_more = no_more and options.reduce_format in (None, self.accumulates.name)
        return same and not after and options.alpha == 1 and no_more

    def _computes(self, out: Format) -> Format:
        if self.accumulates.is_float or not out.is_float:
            return self.accumulates
        return get_format("f64" if out.name == "f64" else "f32")

    def but(self, **options: Any) -> Plan:
        """The plan with other options; it is no named one any more.

        Raises:
            OperandError: an option is wrong, or does not go with the others.
        """
        own = {one.name: getattr(self.options, one.name) for one in fields(Options)} | options
        return build(self.instruction, own)


def build(instruction: Instruction, given: dict[str, Any], fail: Fail | None = None, **more: Any) -> Plan:
    """The plan of an instruction and options; `more`: name, title, seen and evidence.

    Raises:
        OperandError, or what `fail` makes: an option is wrong, or does not go with the others.
    """
    fail = fail or (lambda message, key: OperandError(f"plan: {message}"))
    made = Plan(instruction=_usable(instruction, fail), options=check_options(given, fail), **more)
    for check in (_check_operands, _check_k, _check_products, _check_sums, _check_result):
        check(made, fail)
    return made


def _usable(instruction: Instruction, fail: Fail) -> Instruction:
    if instruction.modes is not None:
        raise fail(
            f"{instruction.name} has modes, expected a unit of one mode (ins.of_mode(code))", "instruction"
        )
    if instruction.absent:
        raise fail(
            f"{instruction.name} has no {' and no '.join(instruction.absent)}, expected a unit that adds "
            f"products to c",
            "instruction",
        )
    return instruction.stateless


def _check_operands(made: Plan, fail: Fail) -> None:
    own = made.instruction.formats
    for key in ("a", "b"):
        if not can_convert(made.formats[key], own[key], made.options.convert):
            raise fail(
                f"{made.formats[key].name} codes cannot be converted to {own[key].name} by "
                f"'{made.options.convert}'",
                key,
            )
    plain = made.instruction.pattern is None and made.instruction.scale_block is None
    if not plain:
        for key, is_plain in (("order", made.options.order is None), ("edge", made.options.edge != "first")):
            if not is_plain:
                raise fail("elements of sparse and of block-scaled operands have no other order", key)
    if made.options.scales != "none" and made.instruction.scale_block is not None:
        raise fail("the instruction has block scales of its own", "scales")


def _check_k(made: Plan, fail: Fail) -> None:
    options, k = made.options, made.instruction.k
    if (options.tile_k or made.tile) % (k * options.slices):
        raise fail(
            f"a tile of {options.tile_k} elements does not divide into {options.slices} slices of steps of "
            f"{k}",
            "tile_k",
        )
    if options.order is not None and sorted(options.order) != list(range(made.tile)):
        raise fail(f"'order' has to hold each of 0 to {made.tile - 1}, the elements of a tile, once", "order")
    said = {
        "part": options.part is not None,
        "parts": options.parts is not None,
        "split_k": options.split_k > 1,
    }
    keys = [key for key, is_said in said.items() if is_said]
    if len(keys) > 1:
        raise fail(f"'{keys[0]}' and '{keys[1]}' both say how K is split, expected one of them", keys[0])
    if options.edge == "first" and (options.order is not None or options.slices > 1 or options.promote):
        raise fail("'first' goes with neither 'order' nor 'slices' nor 'promote'", "edge")
    if options.part is not None and options.part % made.tile and options.edge != "first":
        raise fail(f"'part' is {options.part}, expected a multiple of the tile of {made.tile}", "part")
    if options.parts is not None:
        _check_parts(made, options.parts, fail)
    _check_order_of_sums(made, fail)
    if options.promote is not None and options.promote % k:
        raise fail(
            f"'promote' is {options.promote}, expected a multiple of the instruction's k, which is {k}",
            "promote",
        )


def _check_products(made: Plan, fail: Fail) -> None:
    options = made.options
    if options.products is None:
        return
    unit = made.instruction
    if unit.pattern is not None or unit.scale_block is not None or not unit.formats["d"].is_float:
        raise fail("operands in parts go with dense float instructions alone", "products")
    if {made.formats[key].name for key in ("a", "b")} != {"f32"} or options.convert == "none":
        raise fail(
            "A and B in parts are f32 codes that are rounded: expected a: f32, b: f32 and no 'none'",
            "products",
        )
    if options.promote != made.tile:
        raise fail(
            f"the sum of each tile is promoted: expected 'promote' to be its {made.tile} elements",
            "products",
        )
    plain = options.order is None and options.slices == 1 and options.edge != "first"
    if not plain or options.scales == "block":
        raise fail("goes with neither 'order', 'slices', 'edge: first' nor scales of blocks", "products")


def _check_order_of_sums(made: Plan, fail: Fail) -> None:
    options = made.options
    if isinstance(options.reduce, str):
        return
    split = options.split_k > 1 or options.part or options.parts
    if bool(split) == (options.slices > 1):
        raise fail(
            "'reduce' has numbers, which are those of parts or of slices: expected one of both", "reduce"
        )


def _check_parts(made: Plan, parts: tuple[int, ...], fail: Fail) -> None:
    if not parts:
        raise fail("'parts' is empty, expected the elements of K of each part", "parts")
    if made.options.edge == "first":
        raise fail("'first' goes with 'part' or 'split_k'", "edge")
    for length in parts[:-1]:
        if length % made.tile:
            raise fail(
                f"'parts' has {length} before its last one, expected multiples of the tile of {made.tile}",
                "parts",
            )


def _check_sums(made: Plan, fail: Fail) -> None:
    options, own = made.options, made.instruction.formats
    if options.promote is not None and not own["d"].is_float:
        raise fail("sums of integers are not promoted: they are exact, or wrap, either way", "promote")
    if own["c"] != own["d"] and options.promote != made.instruction.k:
        raise fail(
            f"results in {own['d'].name} cannot be the next step's c in {own['c'].name}, expected "
            f"promote={made.instruction.k}",
            "promote",
        )
    reduced = options.reduce_format
    if reduced is not None and (reduced == "s32") == own["d"].is_float:
        raise fail(f"sums in {own['d'].name} are not reduced in {reduced}", "reduce_format")
    if reduced is not None and get_format(reduced).storage > made.accumulates.storage:
        raise fail(f"sums in {made.accumulates.name} are not reduced in {reduced}", "reduce_format")
    many = options.split_k > 1 or options.part or options.parts or options.slices > 1 or options.promote
    if options.c == "seed" and many:
        raise fail("there is one first step for C to enter only where there is one chain", "c")
    if options.scales != "none" and not own["d"].is_float:
        raise fail("sums of integers have no f32 scales here; use alpha with a float 'out'", "scales")
    if options.scales != "block":
        if options.scale_order != "product":
            raise fail(
                "only scales of blocks have an order here, expected 'scales' to be block", "scale_order"
            )
        return
    for name in ("scale_a_block", "scale_b_block"):
        extent = getattr(options, name)[1 if name == "scale_a_block" else 0]
        if options.promote is None or extent % options.promote:
            raise fail(
                f"scales of blocks multiply the sums that are promoted, expected 'promote' to divide the "
                f"{extent} elements of a block",
                name,
            )


def _check_result(made: Plan, fail: Fail) -> None:
    options, out, d = made.options, made.formats["d"], made.instruction.formats["d"]
    if d.is_float and not out.is_float:
        raise fail(f"sums in {d.name} are not rounded to {out.name}", "out")
    if not out.is_float and (options.alpha != 1 or options.beta not in (0, 1)):
        raise fail("results in s32 have alpha 1, and beta 0 or 1", "alpha" if options.alpha != 1 else "beta")
    for key, factor in (("alpha", options.alpha), ("beta", options.beta)):
        if made.computes.name == "f32" and abs(factor) > float(np.finfo(np.float32).max):
            raise fail(f"'{key}' is {factor}, more than f32 holds", key)
    seed = made.instruction.formats["c"]
    if options.c == "seed" and made.formats["c"] != seed:
        raise fail(f"the c of the first step is {seed.name}", "c_format")
    c = made.formats["c"]
    if options.c == "after" and (
        c.is_float != made.computes.is_float or c.fraction_bits > made.computes.fraction_bits
    ):
        raise fail(f"C in {c.name} cannot be added in {made.computes.name}", "c_format")
