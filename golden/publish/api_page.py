"""The API reference: which modules and classes it shows; Sphinx takes the words from their docstrings."""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from pathlib import Path

from golden.errors import ToolMissing
from golden.explain.markdown import code, link, table
from golden.publish.page import Page

# Page, title, what it is for, and the objects in order: a class or function by its name, a module as
# "module:name, name".
_PAGES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "golden",
        "Instructions",
        "Find an instruction, call it, explain it; load a unit of your own.",
        (
            "golden.architectures",
            "golden.instructions",
            "golden.instruction",
            "golden.load_instruction",
            "golden.Instruction",
            "golden.Evidence",
            "golden.modified",
            "golden.Modifiers",
            "golden.explain.trace.Trace",
        ),
    ),
    (
        "products",
        "Matrix products",
        "Whole products as kernels compute them, models of PyTorch, and kernels in Triton.",
        (
            "golden.gemm",
            "golden.plan",
            "golden.plans",
            "golden.load_plan",
            "golden.find_plan",
            "golden.sum_tree",
            "golden.invariance",
            "golden.tensor_parallel",
            "golden.Plan",
            "mmagold.torch.emulate",
            "mmagold.torch.emulated_matmul",
            "mmagold.triton.emulate",
        ),
    ),
    (
        "formats",
        "Number formats",
        "Raw bits to values and back.",
        (
            "golden.formats",
            "golden.get_format",
            "golden.from_float",
            "golden.to_float",
            "golden.Format",
        ),
    ),
    (
        "fragments",
        "Register fragments",
        "Matrices to the registers of the lanes and back.",
        (
            "golden.registers.fragments.Fragments",
            "golden.registers.fragments.matrix_layout",
            "golden.registers.layouts.Layout",
        ),
    ),
    (
        "vectors",
        "Vectors and stimuli",
        "Operands by structure, packed words, files with manifests.",
        (
            "golden.vectors.default_set",
            "golden.vectors.stream",
            "golden.vectors.VectorSet",
            "golden.vectors.WordLayout",
            "golden.vectors.Field",
            "golden.vectors.files.write_stream",
            "golden.vectors.files.write",
            "golden.vectors.files.read",
            "golden.vectors.files.check",
            "golden.stimuli.generate",
            "golden.stimuli.describe",
            "golden.vectors.captured.load",
        ),
    ),
    (
        "compare",
        "Compare and diagnose",
        "Where two units differ, and what a set of results says of the unit that gave them.",
        (
            "golden.dissect",
            "golden.identify.comparing.compare",
            "golden.identify.comparing.Comparison",
            "golden.identify.comparing.Example",
            "golden.identify.diagnosis.diagnose",
            "golden.identify.diagnosis.Diagnosis",
            "golden.identify.diagnosis.Hypothesis",
            "golden.explain.specification.specification",
        ),
    ),
    (
        "cocotb",
        "cocotb library",
        "Agents, scoreboard and testbench for tests of your own.",
        (
            "rtl_tb.DotProductTB",
            "rtl_tb.Bench",
            "rtl_tb.Scoreboard",
            "rtl_tb.Source",
            "rtl_tb.Sink",
            "rtl_tb.Monitor",
            "rtl_tb.Channel",
            "rtl_tb.Bus",
            "rtl_tb.Clocked",
        ),
    ),
    (
        "capture",
        "Capture and replay",
        "Record a GPU, replay what was recorded.",
        (
            "hw_capture.record.capture.capture",
            "hw_capture.record.capture.Options",
            "hw_capture.record.capture.Report",
            "hw_capture.record.verify.verify",
            "hw_capture.record.verify.Report",
            "hw_capture.record.verify.Difference",
        ),
    ),
    (
        "errors",
        "Errors",
        "What is raised for bad input. All derive from `golden.MmagoldError`.",
        ("golden.errors", "rtl_tb.errors", "hw_capture.errors"),
    ),
)

_EXAMPLES = {
    "golden": (
        """import golden

ins = golden.instruction("hopper", "HMMA.16816.F32")
a = golden.from_float("f16", [1.5] + [0] * 15)
b = golden.from_float("f16", [2] + [0] * 15)
d = ins.dot(a, b, golden.from_float("f32", 1))
print(f"{int(d):#x}")
print(ins.evidence.kind)""",
        "0x40800000\ncaptured",
    ),
    "formats": (
        """import golden

print(golden.from_float("e4m3", [0.3, 1e9]))  # codes; what is too large for e4m3 is NaN
print(golden.to_float("e4m3", [0x2A, 0x7E]).tolist())
print(golden.get_format("e4m3").decode(0x7E).value)""",
        "[ 42 127]\n[0.3125, 448.0]\n448",
    ),
    "fragments": (
        """import numpy as np
import golden

layout = golden.instruction("hopper", "HMMA.16816.F32").fragments.a
A = np.arange(256, dtype=np.uint16).reshape(16, 16)
registers = layout.pack(A)  # lanes, registers of 32 bits
print(registers.shape, bool((layout.unpack(registers) == A).all()))""",
        "(32, 4) True",
    ),
    "vectors": (
        """import numpy as np
import golden
from golden import stimuli

ins = golden.instruction("hopper", "HMMA.16816.F32")
operands = stimuli.generate(ins, "tie", 4, np.random.default_rng(1))
print({name: codes.shape for name, codes in operands.items()})""",
        "{'a': (4, 16), 'b': (4, 16), 'c': (4,)}",
    ),
    "compare": (
        """import golden
from golden.identify.comparing import compare

hopper, ampere = (golden.instruction(name, "HMMA.16816.F32") for name in ["hopper", "ampere"])
found = compare(hopper, ampere, budget=5000)
print(found.numeric > 0, found.example is not None)""",
        "True True",
    ),
}
"""Python and what it prints; the tests run it. The other pages have guides."""
_GUIDES = {"products": "gemm.md", "cocotb": "cocotb.md", "capture": "capture-a-gpu.md"}


def pages() -> list[Page]:
    """The pages of the API reference, the list first."""
    return [
        Page("api/index.md", "API reference", write_index),
        *(
            Page(f"api/{name}.md", title, partial(write, name, title, text, things))
            for name, title, text, things in _PAGES
        ),
    ]


def write_index() -> str:
    """The list of the pages."""
    rows = [(link(title, f"api/{name}.md"), text) for name, title, text, _ in _PAGES]
    return "\n\n".join(["# API reference", "Made from the docstrings.", table(("Page", "For"), rows)])


def write(name: str, title: str, text: str, things: tuple[str, ...]) -> str:
    """One page; a thing is a class, a function or a module."""
    parts = [f"# {title}", text]
    if name in _EXAMPLES:
        shown, printed = _EXAMPLES[name]
        parts += [code(shown, "python"), code(printed, "text")]
    if name in _GUIDES:
        parts.append(f"{link('The guide', _GUIDES[name])} has examples.")
    return "\n\n".join([*parts, *map(_directive, things)])


def source(thing: str) -> str:
    """Where a thing is defined, as `golden/model/instruction.py, line 12`.

    Raises:
        ImportError: its module needs a package that is not installed.
    """
    module, _, name = thing.rpartition(".")
    found = inspect.unwrap(getattr(import_module(module), name))
    file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    top = import_module(thing.partition(".")[0]).__file__
    assert file is not None and top is not None
    return f"{Path(file).relative_to(Path(top).parents[1]).as_posix()}, line {line}"


def _directive(thing: str) -> str:
    """The lines that have Sphinx describe one thing."""
    last = thing.rpartition(".")[2]
    if last == "errors":  # a module
        return f"## {thing}\n\n" + code(
            f".. automodule:: {thing}\n   :members:\n   :show-inheritance:", "{eval-rst}"
        )
    try:
        head = f"## {last}\n\nIn {source(thing)}.\n\n"
    except (ImportError, ToolMissing):  # without cocotb, without PyTorch
        head = f"## {last}\n\n"
    if last[0].isupper() or last == "emulate":
        special = "\n   :special-members: __call__" if last == "Instruction" else ""
        return head + code(f".. autoclass:: {thing}\n   :members:{special}", "{eval-rst}")
    return head + code(f".. autofunction:: {thing}", "{eval-rst}")
