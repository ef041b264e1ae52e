"""The command `mmagold export`: one instruction or unit as a file for another tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from golden.cli import completion
from golden.cli.arguments import Arch
from golden.errors import DocsError, OperandError, UnknownNameError, nearest

if TYPE_CHECKING:
    from golden.model.instruction import Instruction


@dataclass(frozen=True)
class Request:
    """What the command line asks for. `out`: a file or folder, None for standard output. `prefix`: the start
    of the names in generated code. The others: the options of their names; `form` is --format."""

    name: str
    out: Path | None
    prefix: str | None
    arch: str | None
    form: str | None
    pipeline: str | None = None
    synth: bool = False

    def instruction(self) -> Instruction:
        """The instruction or unit."""
        from golden.catalog.lookup import resolve

        return resolve(self.name, self.arch)

    def folder(self, form: str) -> Path:
        """The folder to write into."""
        if self.out is None:
            raise typer.BadParameter(f"{form} writes several files; name a folder", param_hint="--out")
        return self.out

    def write(self, text: str) -> None:
        """Writes the file, or standard output."""
        from golden.files import output

        if self.out is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(self.out, text)


def _markdown(request: Request) -> None:
    from golden.explain.specification import to_markdown

    request.write(to_markdown(request.instruction()))


def _json(request: Request) -> None:
    from golden.explain.specification import specification

    request.write(json.dumps(specification(request.instruction()), indent=2) + "\n")


def _program(request: Request) -> None:
    from golden.explain.program_file import program_file

    request.write(json.dumps(program_file([request.instruction()]), indent=2) + "\n")


def _yaml(request: Request) -> None:
    from golden.catalog.unit_text import short_text
    from golden.vectors.c_header import identifier

    ins = request.instruction()
    text = short_text(ins, request.prefix or identifier(ins.name))
    if text is None:
        raise OperandError(
            f"{ins.architecture}:{ins.name} has no YAML of a unit: the schema has no sparse operands, and no "
            "modes that change the steps"
        )
    request.write(text)


def _c(request: Request) -> None:
    from golden.catalog.lookup import instructions
    from golden.catalog.resolver import resolver
    from golden.vectors import c_header

    chip = resolver().meant(request.name) if request.arch is None else None
    if chip is not None:
        units, title, prefix = list(instructions(chip)), f"Instructions of {chip}", c_header.identifier(chip)
    else:
        ins = request.instruction()
        title = f"{ins.architecture} {ins.name}"
        units, prefix = [ins], c_header.identifier(title)
    request.write(c_header.text(units, request.prefix or prefix, title))


def _dpi(request: Request) -> None:
    from golden.vectors import dpi

    for file in dpi.write(request.instruction(), request.folder("dpi"), request.prefix):
        typer.echo(str(file))


def _sv(request: Request) -> None:
    from golden.circuit import systemverilog
    from golden.vectors.dpi import default_prefix

    ins = request.instruction()
    prefix, unit = request.prefix or default_prefix(ins), Path(request.name) if ins.is_custom else None
    steps = tuple(filter(None, (request.pipeline or "").split(",")))
    files = systemverilog.write(ins, request.folder("sv"), prefix, steps, unit)
    for file in files:
        typer.echo(str(file))
    if request.synth:
        from golden.circuit.synthesis import synthesized

        texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.suffix == ".sv"}
        typer.echo(str(synthesized(texts, prefix)))


def document(request: Request) -> None:
    """A document to hand on; a PDF without --out goes to a file of its name."""
    from golden.publish import document

    form = request.form or "md"
    name = request.name if request.arch is None else f"{request.arch}:{request.name}"
    chosen = document.file_name(name, form) if form == "pdf" and request.out is None else None
    document.export(name, form, chosen or request.out)
    if chosen is not None:
        typer.echo(str(chosen), err=True)


TEXTS: dict[str, Callable[[Request], None]] = {"md": _markdown, "json": _json, "program": _program}
FORMATS: dict[str, Callable[[Request], None]] = {
    "yaml": _yaml,
    "sv": _sv,
    "c": _c,
    "dpi": _dpi,
    "docs": document,
}
"""The word before NAME, and what writes it. Other packages add theirs: rtl_tb has `uvm`."""


def export(
    first: Annotated[
        str,
        Argument(
            metavar="FORMAT",
            help="yaml: a unit to edit. sv: synthesizable SystemVerilog. c: a C header, also of a whole "
            "architecture. dpi: a DPI-C model for simulators. uvm: a UVM environment; NAME is a dut.yaml. "
            "docs: a document, also of a whole architecture. Without FORMAT: the specification.",
            autocompletion=completion.instruction,
            show_default=False,
        ),
    ],
    second: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="architecture:instruction (hopper:HMMA.16816.F32), or the .yaml file of a unit.",
            autocompletion=completion.instruction,
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "--format",
            help="Of docs: md, html, pdf or json. Without FORMAT: md, json or program (JSON of the "
            "compiled steps). Default: md.",
            autocompletion=lambda: ["md", "html", "pdf", "json", "program"],
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", help="File to write (default: stdout). Of dpi, sv and uvm: folder to write."),
    ] = None,
    prefix: Annotated[
        str | None,
        Option("--prefix", help="Of c, dpi and uvm: prefix of all names (default: made from NAME)."),
    ] = None,
    pipeline: Annotated[
        str | None,
        Option("--pipeline", help="Of sv: put a register after each of these steps, such as align,sum."),
    ] = None,
    synth: Annotated[
        bool,
        Option(
            "--synth",
            help="Of sv: also print the number of cells and the longest path, from Yosys' synthesis.",
        ),
    ] = False,
    arch: Arch = None,
) -> None:
    """Writes an instruction or unit for another tool: YAML, C, DPI-C, UVM, or a document."""
    if second is None and first in FORMATS:
        raise UnknownNameError(f"argument is '{first}' alone, expected '{first} NAME'")
    writers, word = (TEXTS, form or "md") if second is None else (FORMATS, first)
    if word not in writers:
        what = "option --format" if second is None else "FORMAT"
        raise UnknownNameError(
            f"{what} is '{word}', expected one of {', '.join(writers)}{nearest(word, writers)}"
        )
    if form is not None and word not in (form, "docs"):
        raise DocsError(f"option --format goes with docs, or with no FORMAT; this is {word}")
    if pipeline is not None and word != "sv":
        raise typer.BadParameter("only 'export sv NAME' has a pipeline", param_hint="--pipeline")
    if synth and word != "sv":
        raise typer.BadParameter("only 'export sv NAME' is synthesized", param_hint="--synth")
    writers[word](Request(second or first, out, prefix, arch, form, pipeline, synth))
