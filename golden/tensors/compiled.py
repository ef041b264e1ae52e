"""Which layouts Triton's compiler gives the sums of a kernel: it runs up to its own intermediate code, for
sm_90 and without a GPU, in the process that interprets the kernel.

The interpreter has replaced the functions that the compiler knows by its own; while the compiler runs, they
are changed back, in the language and in the globals of the kernel and of the functions that it calls.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, create_function_from_signature

from golden.kernels.reductions import Blocked

_TARGET = GPUTarget("cuda", 90, 32)
_LANGUAGE = "triton.language"
_SUM = "sum"
_STAGES = ("ttir", "ttgir")
Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True)
class Sum:
    """One `tl.sum` of compiled code.

    Attributes:
        places: lines of the kernel's files from which it was called, the innermost first.
        axis, shape: of what is summed.
        layout: of its elements; None: not a blocked one.
    """

    places: tuple[Place, ...]
    axis: int
    shape: tuple[int, ...]
    layout: Blocked | None


def has_sums(function: Callable[..., Any]) -> bool:
    """Whether a kernel, or a function that it calls, names a sum."""
    return any(_SUM in one.__code__.co_names for one in _called(function, set()))


def original(rewritten: Callable[..., Any]) -> Callable[..., Any]:
    """The function that the interpreter rewrote."""
    known = {new: old for old, new in InterpretedFunction.rewritten_fn.items()}
    found: Callable[..., Any] = known.get(rewritten, rewritten)
    return found


def sums_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Sum]:
    """The sums of a kernel as it is compiled for these arguments and options; none if it does not compile
    here."""
    if not _CLEAN:
        return []
    try:
        return _sums_in(_compiled(function, args, dict(kwargs)))
    except Exception:  # whatever the compiler raises: the kernel is interpreted all the same
        return []


def layout_here(
    sums: list[Sum], axis: int, shape: tuple[int, ...], frame: FrameType | None
) -> Blocked | None:
    """The layout of the `tl.sum` that runs in a frame; None if it is not known, or not the only one."""
    lines = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_package()):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    found = {
        one.layout for one in sums if (one.axis, one.shape) == (axis, shape) and _begins(lines, one.places)
    }
    return found.pop() if len(found) == 1 else None


def _begins(lines: list[Place], places: tuple[Place, ...]) -> bool:
    """Whether the places follow one another from some line on."""
    return any(tuple(lines[at : at + len(places)]) == places for at in range(len(lines))) if places else False


@cache
def _package() -> str:
    """Where Triton lies."""
    return str(triton.__file__).rpartition("/")[0]


# The compiler -----------------------------------------------------------------------------------------------


def _called(function: Callable[..., Any], seen: set[Any]) -> Iterator[Callable[..., Any]]:
    """A function of Python, and the kernel's own functions that it names."""
    if function in seen:
        return
    seen.add(function)
    yield function
    for name in function.__code__.co_names:
        one = function.__globals__.get(name)
        if isinstance(one, InterpretedFunction):
            yield from _called(one.fn, seen)


@cache
def _jit(function: Callable[..., Any]) -> Any:
    return JITFunction(function)


@contextmanager
def _for_the_compiler(function: Callable[..., Any]) -> Iterator[None]:
    """Functions as the compiler knows them, for a while. A loop's `range` in the globals of a kernel is that
    of a running emulation; the compiler has its own."""
    mine = {id(one.__globals__): one.__globals__ for one in _called(function, set())}
    before = [(owner, dict(owner)) for owner in mine.values()]
    now = [(owner, dict(vars(owner))) for owner, _ in _CLEAN]
    try:
        for names, _ in before:
            if getattr(names.get("range"), "__module__", "builtins").startswith(__package__):
                del names["range"]
            names.update(_for_it(names))
        for owner, clean in _CLEAN:
            _become(owner, clean | _for_it(clean))
        yield
    finally:
        for names, was in before:
            names.update(was)
        for owner, was in now:
            _become(owner, was)


def _for_it(names: Mapping[str, Any]) -> dict[str, Any]:
    """The interpreted functions among some names, as those of the compiler."""
    return {name: _jit(one.fn) for name, one in names.items() if isinstance(one, InterpretedFunction)}


def _become(owner: Any, wanted: Mapping[str, Any]) -> None:
    """Gives a module or a class other attributes, where they differ."""
    for name in [name for name in vars(owner) if name not in wanted]:
        delattr(owner, name)
    for name, one in wanted.items():
        if vars(owner).get(name, _MISSING) is not one:
            setattr(owner, name, one)


_MISSING = object()
_OWNERS = [
    *(module for name, module in sorted(sys.modules.items()) if name.startswith(_LANGUAGE)),
    *(one for one in vars(tl.core).values() if isinstance(one, type) and one.__module__ == tl.core.__name__),
]
"""What the interpreter changes when a kernel runs, and does not always change back."""
_CLEAN = [(owner, dict(vars(owner))) for owner in _OWNERS] if tl.core.is_builtin(tl.load) else []
"""As Triton made it. Empty: a kernel was interpreted before this module was imported."""


def _compiled(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """The text of the code after layouts were chosen."""
    backend = make_backend(_TARGET)
    with _for_the_compiler(function):
        kernel = _jit(function)
        bind = create_function_from_signature(kernel.signature, kernel.params, backend)
        bound, specialised, more = bind(*args, **options)
        chosen, signature, constants, attributes = kernel._pack_args(
            backend, options, bound, specialised, more
        )
        source = ASTSource(kernel, signature, constants, attributes)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        code = source.make_ir(
            _TARGET, chosen, backend.get_codegen_implementation(chosen), backend.get_module_map(), context
        )
        stages: dict[str, Callable[[Any, Any], Any]] = {}
        backend.add_stages(stages, chosen, source.language)
        facts = {"target": _TARGET, **chosen.__dict__}
        for stage in _STAGES:
            code = stages[stage](code, facts)
        return str(code)


# Its text ---------------------------------------------------------------------------------------------------

_ALIAS = re.compile(r"^(#\w+) = (.*)$", re.M)
_REDUCE = re.compile(
    r'"tt\.reduce"\([^)]*\) <\{axis = (\d+) : i32\}> \(\{(.*?)\}\) : \(tensor<([\dx]+)xf32, ([^)]*)>\) '
    r"-> [^\n]* loc\((#\w+)\)",
    re.S,
)
_SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (#\w+)\}>")
_LINE = re.compile(r'"([^"]+)":(\d+):\d+')
_PARTS = re.compile(r"#\w+")


def _sums_in(text: str) -> list[Sum]:
    names = dict(_ALIAS.findall(text))
    found = []
    # Names of values in the body of a reduction that is one addition: two arguments, a sum and its operands,
    # the result.
    one_addition = 6
    for axis, body, shape, layout, place in _REDUCE.findall(text):
        if "arith.addf" in body and body.count("%") <= one_addition:
            sizes = tuple(map(int, shape.split("x")))
            lines = [one for one in _lines(place, names) if not one[0].startswith(_package())]
            found.append(Sum(tuple(lines), int(axis), sizes, _layout(layout.strip(), names)))
    return found


def _layout(word: str, names: Mapping[str, str]) -> Blocked | None:
    """A blocked layout, or what is left of one along the other axes."""
    sliced = _SLICE.fullmatch(word)
    if sliced is not None:
        parent = _layout(sliced.group(2), names)
        dim = int(sliced.group(1))
        return None if parent is None else parent.without(dim)
    text = names.get(word, word)
    return Blocked.of(text) if text.startswith("#ttg.blocked") else None


def _lines(name: str, names: Mapping[str, str]) -> list[Place]:
    """The lines of a location, the innermost first."""
    text = names.get(name, "")
    line = _LINE.search(text)
    if line is not None:
        return [(line.group(1), int(line.group(2)))]
    return [place for part in _PARTS.findall(text) for place in _lines(part, names)]
