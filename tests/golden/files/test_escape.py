"""Whatever a unit is called, no document, model or vector file that is made of it says
or does anything else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from long_run import long_after
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import golden
from golden.cli import app
from golden.files import escape

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a */ int x; /* b",
    "/*/ b",
    "ends in \\",
    "`include `d ``` ~~~",
    "**b** _i_ [l](javascript:x) ![i](x) | # h",
    "1. + - * = ${prefix} $(x) %d {0} \"'",
    "]]> </svg></title></style>",
    "&lt;script&gt; &amp;",
    "??/",
    "ümläut 行",
]
each = pytest.mark.parametrize("text", long_after(2, HOSTILE))
STEPS = [
    {"multiply": {"to": "products"}},
    {"special_values": {"of": ["products", "c"], "nan": 0x7FFFFFFF}},
    {"align": {"of": ["products", "c"], "fraction_bits": 24, "rounding": "toward_zero"}},
    {"sum": {"of": ["products", "c"], "to": "total"}},
    {"round": {"of": "total", "rounding": "toward_zero", "overflow": "infinity", "zero": "positive"}},
]


def unit(**keys: Any) -> dict[str, Any]:
    formats = dict.fromkeys("ab", "f16") | dict.fromkeys("cd", "f32")
    return {"unit": "plain", "title": "Plain", "shape": {"k": 4}, "formats": formats, "steps": STEPS} | keys


def saved(path: Path, text: str | None = None) -> Path:
    foreign = (
        {}
        if text is None
        else {"unit": text, "title": f"{text}\n\n{text}", "source": f"{text}\n\n{text}", "notes": [text]}
    )
    path.write_text(yaml.safe_dump(unit(**foreign), allow_unicode=True))
    return path


def call(*arguments: str) -> str:
    done = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
    assert done.exit_code == 0, (done.output, done.exception)
    return str(done.stdout)


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def elements(text: str) -> list[tuple[str, list[str]]]:
    return Page(MarkdownIt("commonmark").enable("table").render(text)).tags


DOCUMENTS = (("export",), ("docs", "export"), ("docs", "export", "--format", "html"))


def documents(path: Path) -> list[tuple[str, Page]]:
    """The documents of a unit, as written and as HTML."""
    found = []
    for command in DOCUMENTS:
        text = call(*command, str(path))
        html = text if "html" in command else MarkdownIt("commonmark").enable("table").render(text)
        found.append((text, Page(html)))
    return found


@pytest.fixture(scope="module")
def plain_elements(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[str, list[str]]]]:
    """The elements of the plain unit's documents."""
    path = saved(tmp_path_factory.mktemp("plain") / "plain.yaml")
    return [page.tags for _, page in documents(path)]


@each
def test_documents_have_the_elements_of_a_plain_unit(
    text: str, plain_elements: list[list[tuple[str, list[str]]]], tmp_path: Path
) -> None:
    other = saved(tmp_path / "other.yaml", text)
    found = documents(other)
    assert [page.tags for _, page in found] == plain_elements
    for _, page in found[:2]:
        assert " ".join(text.split()) in " ".join(" ".join(page.words).split()), "the words are still there"
    assert "<script>" not in found[0][0] and "<img" not in found[0][0]
    assert json.loads(call("export", str(other), "--format", "json"))["instruction"] == text


@pytest.mark.parametrize("text", long_after(1, HOSTILE[:6]))
def test_a_pdf_is_made(text: str, tmp_path: Path) -> None:
    pytest.importorskip("typst")
    call(
        "docs",
        "export",
        str(saved(tmp_path / "u.yaml", text)),
        "--format",
        "pdf",
        "--out",
        str(tmp_path / "u.pdf"),
    )
    assert (tmp_path / "u.pdf").read_bytes().startswith(b"%PDF")


def code_of(text: str) -> str:
    """C or SystemVerilog without its comments, as a lexer removes them: lines are spliced first."""
    spliced = text.replace("??/", "\\").replace("\\\n", "")
    return re.sub(
        r"/\*.*?\*/|//[^\n]*|(\"(?:[^\"\\\n]|\\.)*\")", lambda match: match[1] or " ", spliced, flags=re.S
    )


@each
def test_models_differ_in_comments_alone(text: str, tmp_path: Path) -> None:
    plain, other = saved(tmp_path / "plain.yaml"), saved(tmp_path / "other.yaml", text)
    for path in (plain, other):
        call("export", "dpi", str(path), "--out", str(tmp_path / path.stem), "--prefix", "u")
    for name in ("u_dpi.c", "u_pkg.sv", "u_tb.sv"):
        first, second = ((tmp_path / folder / name).read_text() for folder in ("plain", "other"))
        assert code_of(first) == code_of(second) and first.count("\n") == second.count("\n")
    for name in ("Makefile", "u_vectors.hex"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    readmes = [elements((tmp_path / folder / "README.md").read_text()) for folder in ("plain", "other")]
    assert readmes[0] == readmes[1]
    if shutil.which("gcc"):
        command = [
            "gcc",
            "-std=gnu11",
            "-Wall",
            "-Werror=comment",
            "-fsyntax-only",
            str(tmp_path / "other" / "u_dpi.c"),
        ]
        assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0


@each
@pytest.mark.parametrize("form", long_after(1, ["sv", "readmemh"]))
def test_vector_files_differ_in_comments_alone(text: str, form: str, tmp_path: Path) -> None:
    texts = []
    for name in (None, text):
        path, file = saved(tmp_path / "u.yaml", name), tmp_path / "v.x"
        call("vectors", str(path), "--count", "5", "--format", form, "--out", str(file))
        call("vectors", str(path), "--check", str(file))
        texts.append(file.read_text())
    assert code_of(texts[0]) == code_of(texts[1]) and texts[0].count("\n") == texts[1].count("\n")


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a\x07", "a\u202eb", "a\u2028b", "x" * 201])
def test_a_name_is_one_printable_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    path.write_text(yaml.safe_dump(unit(unit=text)))
    with pytest.raises(golden.errors.SpecError, match="printable characters in one line"):
        golden.load_instruction(path)


@each
def test_formats_and_results_are_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    own = {
        "kind": "float",
        "storage": 8,
        "exponent_bits": 4,
        "fraction_bits": 3,
        "bias": 7,
        "specials": "ieee",
    }
    path.write_text(yaml.safe_dump(unit(define_formats={text: own}), allow_unicode=True))
    with pytest.raises(golden.errors.SpecError, match="expected a word"):
        golden.load_instruction(path)
    keys = unit()
    steps = keys.pop("steps")
    keys["program"] = [
        {"steps": steps, "k": {"from": 0, "to": 1}, "to": text},
        {"steps": steps, "k": {"from": 2, "to": 3}},
    ]
    path.write_text(yaml.safe_dump(keys, allow_unicode=True))
    with pytest.raises(golden.errors.SpecError, match="key 'to'"):
        golden.load_instruction(path)


@pytest.mark.parametrize("text", HOSTILE)
def test_round_trips(text: str) -> None:
    assert escape.plain(escape.markdown(text)) == text
    rendered = MarkdownIt("commonmark").renderInline(f"x {escape.markdown(text)}")
    assert Page(rendered).tags == [] and "".join(Page(rendered).words) == f"x {text}"
    for comment in (f"/* {escape.block_comment(text)} */int x;", f"// {escape.line_comment(text)}\nint x;"):
        assert code_of(comment).split() == ["int", "x;"]
    assert re.fullmatch(r"[\w.-]+", escape.file_stem(text), re.ASCII)


@pytest.mark.parametrize(
    "k",
    [
        *({"list": [true, 0, 2, 3]} for true in (True, 1.0, "1", "x", None, [1], -1, 4)),
        *(
            {"modulo": 4, "residues": [value, 1, 2, 3]}
            for value in (True, False, 0.0, "0", "x", None, [0], -1, 4, 7)
        ),
        *({"from": value, "to": 3} for value in (False, 0.0, "0", -1, [0])),
        *({"from": 0, "to": value} for value in (True, 3.0, "3", 4)),
        {"list": [0, 1, 2, 3, 3]},
        {"modulo": True, "residues": [0]},
        *(True, 0, 0.0, "x", "All", ["all"], {}, {"list": "all"}),
    ],
)
def test_k_takes_integers_alone(k: Any, tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    keys = unit()
    keys["program"] = [{"steps": keys.pop("steps"), "k": k}]
    path.write_text(yaml.safe_dump(keys))
    with pytest.raises(golden.errors.SpecError):
        golden.load_instruction(path)


@pytest.mark.parametrize(
    "k",
    [
        "all",
        {"list": [3, 2, 1, 0]},
        {"modulo": 2, "residues": [1, 0]},
        {"modulo": 4, "residues": [0, 1, 2, 3]},
    ],
)
def test_k_as_it_should_be(k: Any, tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    keys = unit()
    keys["program"] = [{"steps": keys.pop("steps"), "k": k}]
    path.write_text(yaml.safe_dump(keys))
    assert len(golden.load_instruction(path).program.operations[0].k_index) == 4
