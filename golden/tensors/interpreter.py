"""Triton's interpreter with a chip's arithmetic: `with emulate("hopper"): kernel[grid](...)`.

TRITON_INTERPRET=1 runs a kernel on the CPU, operation by operation, in NumPy; every operation is a method
`create_...` of one builder. Inside `emulate` each method is wrapped: some compute as the chip does
(golden.tensors.operations), and each result remembers of its operands what a compiler would see of them
(`Provenance`), because a `tl.dot` or a sum depends on it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import min_dot_size
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as runtime
from triton.runtime.interpreter import TensorHandle as Handle

from golden.errors import MmagoldError, OperandError, UnknownNameError, nearest
from golden.kernels import reductions, triton_dot
from golden.tensors import compiled, operations
from golden.tensors.operations import Launch, Provenance

CHIPS = ("hopper",)
_PATCHED = "create_"
"""How the builder's methods begin."""


class emulate:
    """Gives the kernels that run inside its `with` the arithmetic of a chip, on the CPU.

    TRITON_INTERPRET=1 has to be set before Triton is imported and the kernels are defined.

    Args:
        chip: "hopper".

    Attributes:
        dots: how often each instruction (with its order of K) computed a `tl.dot`.
        cpu: how often an operation ran whose result is the CPU's, or not known to be the chip's, by name. If
            it is empty, all arithmetic was the chip's.
        launch, last, block: of the kernel that runs: what its launch said, the block of numbers that it made
            last, and the block of its code, counted: it changes wherever a turn of a loop begins or ends.

    Raises:
        UnknownNameError: no such chip. OperandError: Triton does not interpret; inside, a kernel uses what
            has no rule here (`tl.dot_scaled`, several CTAs), and which one.
    """

    def __init__(self, chip: str) -> None:
        if chip not in CHIPS:
            raise UnknownNameError(
                f"chip '{chip}' is unknown, expected one of {', '.join(CHIPS)}{nearest(chip, CHIPS)}"
            )
        self.chip = chip
        self.dots: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()
        self.launch = Launch()
        self.last: Any = None
        self.block = 0
        self.sums: list[compiled.Sum] = []
        self._compiled: dict[Any, list[compiled.Sum]] = {}
        self._ranges: list[dict[str, Any]] = []
        self._open: ExitStack | None = None
        self._depth = 0

    def __enter__(self) -> emulate:
        if not triton.knobs.runtime.interpret:
            raise OperandError(
                "TRITON_INTERPRET is not set, expected TRITON_INTERPRET=1 before Triton is imported"
            )
        if not triton_dot.RELEASES[0] <= operations.release() <= triton_dot.RELEASES[1]:
            first, last = (".".join(map(str, one)) for one in triton_dot.RELEASES)
            raise OperandError(
                f"Triton is {triton.__version__}, expected {first} to {last}: the code of other releases was "
                "not compared"
            )
        if self._open is not None:
            raise OperandError("this emulate(...) is entered already, expected a new one")
        builder = runtime.interpreter_builder
        methods = {name: getattr(builder, name) for name in dir(builder) if name.startswith(_PATCHED)}
        # Of sm_90, and its threads.
        capability, warp = 90, 32
        with ExitStack() as stack:
            for name, own in methods.items():
                stack.enter_context(_set(builder, name, partial(self._operation, name, own)))
            stack.enter_context(_set(TritonSemantic, "dot_scaled", _refuse_scaled))
            options = replace(
                builder.options,
                allowed_dot_input_precisions=triton_dot.PRECISIONS,
                max_num_imprecise_acc_default=triton_dot.NO_LIMIT,
            )
            stack.enter_context(_set(builder, "options", options))
            sizes = min_dot_size(GPUTarget("cuda", capability, warp))
            stack.enter_context(_set(builder, "codegen_fns", builder.codegen_fns | {"min_dot_size": sizes}))
            stack.enter_context(_set(runtime, "_implicit_cvt", partial(_argument, runtime._implicit_cvt)))
            stack.enter_context(
                _set(runtime, "_patch_lang_tensor", partial(_index, runtime._patch_lang_tensor))
            )
            stack.enter_context(_set(runtime, "_patch_lang", self._with_turns(runtime._patch_lang)))
            stack.callback(self._drop_ranges)
            executor = runtime.GridExecutor
            stack.enter_context(_set(executor, "__call__", self._launched(executor.__call__)))
            reduce, scan = runtime.ReduceOps, runtime.ScanOps
            stack.enter_context(_set(reduce, "sum", self._summed(reduce.sum)))
            for owner, name, shown in (
                (reduce, "generic_reduce", "tl.reduce"),
                (scan, "apply_impl", "tl.associative_scan"),
            ):
                stack.enter_context(_set(owner, name, self._counted(getattr(owner, name), shown)))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *reason: Any) -> None:
        stack, self._open = self._open, None
        if stack is not None:
            stack.__exit__(*reason)

    def _launched(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """The launch of a grid: what the compiler is given with the kernel. The interpreter raises what a
        kernel raised as its own error; ours are raised as they are."""

        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self.launch = Launch.of(kwargs)
            self.sums = self._sums_of(compiled.original(executor.fn), args, kwargs)
            try:
                return own(executor, *args, **kwargs)
            except runtime.InterpreterError as error:
                cause: BaseException | None = error
                while cause is not None and not isinstance(cause, MmagoldError):
                    cause = cause.__cause__
                if cause is None:
                    raise
                raise cause from None

        return call

    def _sums_of(self, function: Any, args: Any, kwargs: Any) -> list[compiled.Sum]:
        """The sums of a kernel as the compiler lays them out, compiled once for each kind of arguments."""
        if not compiled.has_sums(function):
            return []
        given = [*args, *kwargs.items()]
        kind = (function, tuple(str(_kind(one)) for one in given))
        if kind not in self._compiled:
            self._compiled[kind] = compiled.sums_of(function, args, kwargs)
        return self._compiled[kind]

    def _with_turns(self, own: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """What the interpreter does to the language before it calls a function; loops that count as well."""

        def call(function: Any) -> Any:
            scope = own(function)
            scope.set_attr(tl, "range", self._turns(tl.range))
            if "range" not in function.__globals__:
                function.__globals__["range"] = self._turns(range)
                self._ranges.append(function.__globals__)
            return scope

        return call

    def _turns(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
            try:
                for one in own(*args, **kwargs):
                    self.block += 1
                    yield one
            finally:
                self.block += 1

        return call

    def _drop_ranges(self) -> None:
        while self._ranges:
            del self._ranges.pop()["range"]

    def _summed(self, own: Callable[..., Any]) -> Callable[..., Any]:
        """`tl.sum`: in the order of the threads where it is known."""

        def call(reduction: Any, values: Any) -> Any:
            handle = values.handle
            past = operations.provenance_of(handle)
            data = handle.data
            axis = 0 if reduction.axis is None and data.ndim == 1 else reduction.axis
            if data.dtype == np.float32 and axis is not None:
                axis %= data.ndim
                layout = compiled.layout_here(self.sums, axis, data.shape, sys._getframe())
                total = None
                if layout is not None:
                    total = operations.canonical(reductions.sums(data, axis, layout))
                elif past.rows_of_quads and data.ndim == 2 and axis == 1:
                    total = operations.sum_of_quads(data)
                if total is not None:
                    if past.product is not None and self.launch.fusion:
                        self.cpu["tl.sum of a product"] += 1
                    kept = np.expand_dims(total, axis) if reduction.keep_dims else total
                    return reduction.to_tensor(kept, values.dtype)
            if handle.dtype.scalar.is_floating():
                self.cpu["tl.sum"] += 1
            return own(reduction, values)

        return call

    def _counted(self, own: Callable[..., Any], shown: str) -> Callable[..., Any]:
        """Other reductions and scans: the CPU's order, which matters to floats."""

        def call(reduction: Any, inputs: Any) -> Any:
            if any(one.dtype.is_floating() for one in inputs):
                self.cpu[shown] += 1
            return own(reduction, inputs)

        return call

    def _operation(self, name: str, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One operation of the builder. Methods call each other: only the outermost one is the kernel's."""
        if self._depth:
            return own(*args, **kwargs)
        operands = [one for one in _flat(args) if isinstance(one, Handle)]
        self._depth += 1
        try:
            chip = operations.OF_THE_CHIP.get(name)
            with np.errstate(all="ignore"):  # infinities and NaNs are results like others
                found = own(*args, **kwargs) if chip is None else chip(self, own, *args, **kwargs)
            if name in operations.OF_THE_CPU:
                self.cpu[operations.OF_THE_CPU[name]] += 1
        finally:
            self._depth -= 1
        for operand in operands:
            operations.use(operand)
        if isinstance(found, Handle) and operations.PAST not in found.attr:
            found.attr[operations.PAST] = self._past(name, own, args, operands, found)
        self.last = found
        return found

    def _past(self, name: str, own: Any, args: Any, operands: list[Any], found: Any) -> Provenance:
        """What a result remembers of its operands."""
        if name in operations.FORGETS:
            return Provenance()
        loads = name in operations.LOADS
        past = operations.elementwise(operands, (found.dtype.scalar.primitive_bitwidth,) if loads else ())
        past.joined = past.joined or name == "create_join"
        if name in operations.VIEWS:
            past.rows_of_quads = False
            product = operations.provenance_of(operands[0]).product
            if product is not None:  # the view of a product is the product of the views
                one, two = (own(factor, *args[1:]) for factor in (product.one, product.two))
                past.product = replace(product, one=one, two=two)
        return past


def _kind(argument: Any) -> Any:
    """What the compiler sees of an argument: of a tensor its type and alignment."""
    if not hasattr(argument, "data_ptr"):
        return argument
    # Bytes of an address that the compiler distinguishes.
    aligned = 16
    return argument.dtype, argument.data_ptr() % aligned


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _refuse_scaled(*args: Any, **kwargs: Any) -> Any:
    raise OperandError(
        "tl.dot_scaled has no rule here: Hopper has no instruction for it, and how Triton splits it was not "
        "measured"
    )


def _index(own: Callable[..., None], tensor: Any, scope: Any) -> None:
    """What the interpreter gives tensors for a while; a scalar as the end of a `range` too, which Triton 3.6
    takes from an array of one element, as NumPy allows up to 2.3."""
    own(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def _argument(own: Callable[[Any], Any], value: Any) -> Any:
    """An argument of a kernel: the compiler passes a float as f32, where the interpreter keeps 53 bits."""
    if isinstance(value, float):
        return tl.tensor(Handle(np.array([value], np.float32), tl.float32), tl.float32)
    return own(value)


@contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute of an object, for a while."""
    had, before = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
