"""One document to hand on: an instruction, a designer's own unit or an architecture as Markdown,
HTML, PDF or JSON.

    export("hopper:HMMA.16816.F32", "pdf", "hmma.pdf")
    export("my_unit.yaml", "html", "my_unit.html")
    export("hopper", "pdf", "hopper.pdf")

Markdown, HTML and PDF are made of the text of the site's pages. HTML is one file that needs nothing else;
Markdown written to a file has its pictures in a folder next to it, on standard output it has none; PDF is set
by Typst. JSON holds `golden.explain.specification.specification` with variants, captured vectors and times.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden import __version__
from golden.catalog import architectures
from golden.catalog.lookup import resolve
from golden.catalog.resolver import resolver
from golden.catalog.unit_text import unit_text
from golden.errors import DocsError, UnknownNameError, counted, missing, nearest
from golden.explain.markdown import SITE
from golden.explain.modes import modes_markdown
from golden.explain.specification import specification, sum_text
from golden.files import escape
from golden.files.escape import table
from golden.files.output import check, is_stream, write_folder, write_text, write_whole
from golden.model.instruction import Instruction
from golden.paths import plain_name
from golden.publish import instruction_page, typst_writer
from golden.publish.evidence import figures
from golden.publish.families import Group, group_of, groups, own_group
from golden.publish.variants import captured_cell, captured_entry, sass_text
from golden.vectors.c_header import identifier

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FORMS = ("md", "html", "pdf", "json")
_LINK = re.compile(r"\[((?:[^\[\]`]|`[^`]*`)*)\]\(" + re.escape(SITE) + r"[^()\s]*\)")
_HREF = re.compile(r'<a [^>]*href="' + re.escape(SITE) + r'[^"]*"[^>]*>(.*?)</a>', re.S)
_FENCE = re.compile(r"^(`{3,}|~{3,})")
_TEMPLATES = Path(__file__).parent / "templates"


def export(what: Instruction | str, form: str = "md", out: str | Path | None = None) -> None:
    """Writes a document.

    Args:
        what: an Instruction (also one of golden.load_instruction), or a name as the command line takes it:
            "architecture:instruction", the path of a unit's YAML file, or an architecture.
        form: md, html, pdf or json.
        out: the file to write; None: standard output, which takes all forms but pdf.

    Raises:
        UnknownNameError: no such name or form.
        DocsError: pdf without a file; a package that the form needs is not installed.
        SpecError, OperandError: the unit's file is wrong; the output cannot be written.
    """
    if form not in FORMS:
        raise UnknownNameError(
            f"format is '{form}', expected one of {', '.join(FORMS)}{nearest(form, FORMS)}"
        )
    if form == "pdf" and out is None:
        raise DocsError("a pdf goes to a file, none was given; expected --out FILE.pdf")
    subject = _subject(what)
    if form == "json":
        _write(json.dumps(as_dict(subject), indent=2) + "\n", out)
    elif form == "pdf":
        content = to_pdf(subject)
        write_whole(str(out), lambda file: file.write(content))
    elif form == "html":
        _write(to_html(subject), out)
    else:
        _export_markdown(subject, out)


def file_name(name: str, form: str) -> Path:
    """The file of a document that was given no name: hopper_HMMA.16816.F32.pdf in the current folder."""
    stem = Path(name).stem if name.endswith((".yaml", ".yml")) else plain_name(name)
    return Path(f"{stem}.{form}")


def _subject(what: Instruction | str) -> Instruction | str:
    """The instruction, or the name of an architecture."""
    if isinstance(what, Instruction):
        return what
    return resolver().meant(what) or resolve(what)


def _write(text: str, out: str | Path | None) -> None:
    if out is None:
        _print(text)
    else:
        write_text(out, text)


def _print(text: str) -> None:
    """A document is UTF-8 on standard output, too, whatever the terminal's encoding."""
    sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)  # a notebook's has none
    if raw is None:
        sys.stdout.write(text)
    else:
        raw.write(text.encode("utf-8", "backslashreplace"))  # bytes of a file name that is no text
        raw.flush()


# Text -------------------------------------------------------------------------------------------------------


def to_markdown(subject: Instruction | str) -> str:
    """The document as one Markdown text with the pictures as inline SVG and without links into the site."""
    text = _architecture(subject) if isinstance(subject, str) else _one(subject)
    return _HREF.sub(r"\1", _LINK.sub(r"\1", text))


def _one(ins: Instruction) -> str:
    """An instruction's page; of a unit with modes, that of its first mode and what the others change."""
    group = group_alone(ins)
    title, rest = instruction_page.markdown(group).split("\n\n", 1)
    text = f"{title}\n\n{_key_figures(group)}\n\n{rest}"
    modes = "\n\n".join(modes_markdown(ins, table))
    return text.replace("\n## Formats\n", f"\n{modes}\n\n## Formats\n", 1) if modes else text


def _key_figures(group: Group) -> str:
    """A table: shape, operands, sum, and, of an instruction of the catalogue, parameters, names and
    evidence."""
    return table(("Key figures", ""), list(_key_rows(group)))


def _key_rows(group: Group) -> Iterator[tuple[str, str]]:
    from golden.publish.architecture_page import algorithm_text, parameter_text

    ins = group.representative
    operations = len(ins.program.operations)
    yield "Shape", "m = {}, n = {}, k = {}".format(*ins.shape)
    yield "Operands", ", ".join(f"{name} {fmt.name}" for name, fmt in ins.own_formats.items())
    many = counted(operations, "operation")
    yield "d", f"{sum_text(ins)}, in {many}"
    if group.architecture not in architectures.architectures():
        return
    yield "Algorithm", algorithm_text(group)
    yield "Parameters", parameter_text(group)
    if ins.sass:
        yield "SASS", sass_text(ins)
    yield "Evidence", f"{ins.evidence.kind}; captured results: {captured_cell(group.variants)}"


def group_alone(ins: Instruction) -> Group:
    """The page's group with only this instruction, under its own name; of a unit with modes its first."""
    slug = (
        group_of(ins).slug
        if ins.architecture in architectures.architectures()
        else escape.file_stem(ins.name)
    )
    return replace(own_group(ins.plain), slug=slug, title=ins.variables.get("title", ins.name))


def _architecture(name: str) -> str:
    """The architecture's page, then what each group of its instructions computes."""
    from golden.publish import architecture_page

    parts = [architecture_page.markdown(name).rstrip()]
    parts.append(
        "## Instructions in detail\n\nEach with its computation; formats and examples stand on the "
        "instruction's own page."
    )
    for number, group in enumerate(groups(name)):
        parts += [
            f"### {group.title}",
            _deeper(_own_ids("\n\n".join(instruction_page.brief(group)), f"g{number}-")),
        ]
    return "\n\n".join(parts) + "\n"


def _own_ids(text: str, prefix: str) -> str:
    """Gives the pictures ids that differ from the ids of the same picture in another group."""
    for name in dict.fromkeys(re.findall(r'\bid="([^"]+)"', text)):
        text = re.sub(
            rf'(\bid="|aria-labelledby="|href="#|url\(#){re.escape(name)}(?=["\)])',
            rf"\g<1>{prefix}{name}",
            text,
        )
    return text


def _deeper(text: str) -> str:
    """Moves the headings of a text down by two levels, except in code."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= bool(_FENCE.match(line))
        lines.append("##" + line if line.startswith("#") and not fenced else line)
    return "\n".join(lines)


def _export_markdown(subject: Instruction | str, out: str | Path | None) -> None:
    text = to_markdown(subject)
    if out is None:
        _print(re.sub(r"\n{3,}", "\n\n", typst_writer.without_figures(text)))
        return
    folder = Path(out).with_suffix("").name + "_pictures"
    found = list(typst_writer.figures(text))
    numbers = {match.start(): number for number, match in enumerate(found, 1)}

    def image(match: re.Match[str]) -> str:
        caption = html.unescape(match["caption"]).replace("[", "(").replace("]", ")")
        return f"![{caption}](<{folder}/figure{numbers[match.start()]}.svg>)"

    if found and is_stream(out):
        raise DocsError(
            f"{out}: Markdown's pictures go to a folder next to it; expected the name of a file, or no --out"
        )
    check(out)
    files = {Path(out).name: typst_writer.without_figures(text, image)}
    files |= {f"{folder}/figure{number}.svg": match["svg"] + "\n" for number, match in enumerate(found, 1)}
    write_folder(Path(out).parent, files)


def _reader() -> MarkdownIt:
    """CommonMark with tables, as the site reads it."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise missing("markdown-it-py") from None
    return MarkdownIt("commonmark").enable("table")


def _titled(text: str) -> tuple[str, str]:
    """The first heading, as plain text, and the rest."""
    head, _, body = text.partition("\n")
    return escape.plain(head.removeprefix("# ").strip()), body


def _subtitle(subject: Instruction | str) -> str:
    if isinstance(subject, str):
        return (
            f"Specification of {architectures.get_architecture(subject).title}, generated by mmagold "
            f"{__version__}"
        )
    if subject.architecture not in architectures.architectures():
        return (
            f"Specification of the unit {subject.name}, generated by mmagold {__version__} from "
            f"{Path(subject.source).name}"
        )
    title = architectures.get_architecture(subject.architecture).title
    return f"Specification of an instruction of {title}, generated by mmagold {__version__}"


# PDF and HTML -----------------------------------------------------------------------------------------------


def to_pdf(subject: Instruction | str) -> bytes:
    """The document as PDF."""
    return text_pdf(to_markdown(subject), _subtitle(subject), deep=isinstance(subject, str))


def to_html(subject: Instruction | str) -> str:
    """The document as one HTML file: pictures, styles and scripts inside it, nothing loaded from anywhere."""
    return text_html(to_markdown(subject), _subtitle(subject), deep=isinstance(subject, str))


def text_pdf(text: str, subtitle: str, deep: bool = False) -> bytes:
    """A Markdown text as PDF; its first heading is the title. `deep`: a table of contents of three levels."""
    title, body = _titled(text)
    depth = 3 if deep else 2
    note = f"mmagold {__version__}"
    return typst_writer.pdf(_reader().parse(body), title, subtitle, note, depth)


def text_html(text: str, subtitle: str, deep: bool = False) -> str:
    """A Markdown text as one HTML file."""
    title, body = _titled(text)
    reader = _reader()
    tokens = reader.parse(body)
    contents = _with_anchors(tokens)
    rendered = str(reader.renderer.render(tokens, reader.options, {}))
    rendered = rendered.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    listed = "\n".join(
        f'<li class="{tag}"><a href="#{anchor}">{html.escape(text)}</a></li>'
        for tag, anchor, text in contents
        if deep or tag == "h2"
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, '
        f'initial-scale=1">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n<h1>{html.escape(title)}</h1>\n"
        f"<p>{html.escape(subtitle)}</p>\n<nav>\n<ul>\n{listed}\n</ul>\n</nav>\n{rendered}"
        f"<footer>mmagold {__version__}</footer>\n</main>\n<script>\n{_script()}</script>\n</body>\n</html>\n"
    )


def _with_anchors(tokens: Sequence[Token]) -> list[tuple[str, str, str]]:
    """Gives every heading an id; returns (tag, id, text) of the second and third level."""
    contents: list[tuple[str, str, str]] = []
    used: set[str] = set()
    for token, inner in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = escape.plain(inner.content)
        anchor = base = re.sub(r"[^\w-]+", "-", text.lower()).strip("-")
        while anchor in used:
            anchor = f"{base}-{sum(name.startswith(base) for name in used)}"
        used.add(anchor)
        token.attrSet("id", anchor)
        if token.tag in ("h2", "h3"):
            contents.append((token.tag, anchor, text))
    return contents


def _style() -> str:
    pictures = Path(__file__).parent / "pictures" / "fragments.css"
    return "\n".join(path.read_text("utf-8") for path in (_TEMPLATES / "document.css", pictures))


def _script() -> str:
    return (Path(__file__).parent / "pictures" / "fragments.js").read_text("utf-8")


# JSON -------------------------------------------------------------------------------------------------------


def as_dict(subject: Instruction | str) -> dict[str, Any]:
    """The document for machines: plain values."""
    if not isinstance(subject, str):
        return {**specification(subject), "variants": [_variant_dict(subject)], "timing": _timing(subject)}
    chip = architectures.get_architecture(subject)
    return {
        "architecture": chip.name,
        "title": chip.title,
        "vendor": chip.vendor,
        "targets": list(chip.targets),
        "devices": list(chip.devices),
        "source": " ".join(chip.source.split()),
        "groups": [
            {
                "slug": group.slug,
                "title": group.title,
                **specification(group.representative),
                "variants": [_variant_dict(variant) for variant in group.variants],
            }
            for group in groups(subject)
        ],
    }


def _variant_dict(ins: Instruction) -> dict[str, Any]:
    entry = captured_entry(ins)
    return {
        "instruction": ins.name,
        "shape": list(ins.shape),
        "sass": list(ins.sass),
        "evidence": ins.evidence.kind,
        "captured": None
        if entry is None
        else {key: entry[key] for key in ("file", "sha256", "tiles", "dots")},
    }


def _timing(ins: Instruction) -> list[dict[str, Any]]:
    keys = ("quantity", "warps", "ilp", "low", "high", "unit", "device", "table")
    return [{**{key: getattr(one, key) for key in keys}, "variant": one.key.variant} for one in figures(ins)]


def files(group: Group) -> Iterator[tuple[str, str]]:
    """The files of the site that hold a page's example variant for programs: path and content."""
    stem, ins = group.path.removesuffix(".md"), group.representative
    yield f"{stem}.json", json.dumps(as_dict(ins), indent=1) + "\n"
    unit = unit_text(ins, identifier(ins.name))
    if unit is not None:
        yield f"{stem}.yaml", unit
