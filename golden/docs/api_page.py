"""The API reference: which modules and classes it shows; Sphinx takes the words from their docstrings."""

from __future__ import annotations

from functools import partial

from golden.docs.page import Page
from golden.explain.markdown import code, link, table

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
            "golden.explain.trace.Trace",
        ),
    ),
    (
        "formats",
        "Number formats",
        "Raw bits to values and back.",
        (
            "golden.number.formats.formats",
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
            "golden.dissect.comparing.compare",
            "golden.dissect.comparing.Comparison",
            "golden.dissect.comparing.Example",
            "golden.dissect.diagnosis.diagnose",
            "golden.dissect.diagnosis.Diagnosis",
            "golden.dissect.diagnosis.Hypothesis",
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


def pages() -> list[Page]:
    """The pages of the API reference, the list first."""
    return [
        Page("api/index.md", "API reference", write_index),
        *(
            Page(f"api/{name}.md", title, partial(write, title, text, things))
            for name, title, text, things in _PAGES
        ),
    ]


def write_index() -> str:
    """The list of the pages."""
    rows = [(link(title, f"api/{name}.md"), text) for name, title, text, _ in _PAGES]
    return "\n\n".join(["# API reference", "Made from the docstrings.", table(("Page", "For"), rows)])


def write(title: str, text: str, things: tuple[str, ...]) -> str:
    """One page; a thing is a class, a function or a module."""
    return "\n\n".join([f"# {title}", text, *map(_directive, things)])


def _directive(thing: str) -> str:
    """The lines that have Sphinx describe one thing."""
    last = thing.rpartition(".")[2]
    if last == "errors":
        return f"## {thing}\n\n" + code(
            f".. automodule:: {thing}\n   :members:\n   :show-inheritance:", "{eval-rst}"
        )
    if last[0].isupper():
        special = "\n   :special-members: __call__" if last == "Instruction" else ""
        return f"## {last}\n\n" + code(f".. autoclass:: {thing}\n   :members:{special}", "{eval-rst}")
    return f"## {last}\n\n" + code(f".. autofunction:: {thing}", "{eval-rst}")
