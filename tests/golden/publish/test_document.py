"""Exported documents: every form of an instruction, of designers' own units and of an architecture."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from long_run import long_after

import golden
from golden.catalog.lookup import resolve
from golden.errors import DocsError, DocsToolMissing, MmagoldError, UnknownNameError
from golden.publish import document

EXAMPLES = sorted((Path(__file__).parents[3] / "spec" / "examples").glob("*.yaml"))
NAME = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
SPARSE = "hopper:wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2"


class Loads(HTMLParser):
    """Collects everything that an HTML file would load, and its ids and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag in ("link", "script", "img", "iframe", "image", "use"):
            targets = [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
            self.loaded += [target for target in targets if not target.startswith("#")]
        if tag == "a":
            self.links.append(given.get("href") or "")


def pdf_text(content: bytes) -> list[str]:
    """The text of every page."""
    pypdfium2 = pytest.importorskip("pypdfium2")
    pages = pypdfium2.PdfDocument(content)
    return [pages[index].get_textpage().get_text_range() for index in range(len(pages))]


@pytest.mark.long
def test_html_stands_alone(tmp_path: Path) -> None:
    document.export(f"hopper:{NAME}", "html", tmp_path / "unit.html")
    text = (tmp_path / "unit.html").read_text("utf-8")
    found = Loads(text)
    assert found.loaded == [] and "@import" not in text and not re.search(r"url\((?!#)", text)
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert "site:" not in text and f"<h1>{NAME}</h1>" in text and "prefers-color-scheme: dark" in text
    assert text.count("<svg") == text.count("</svg>") > 8 and text.count('<div class="table">') == text.count(
        "<table>"
    )
    assert 'name="viewport"' in text and [p.name for p in tmp_path.iterdir()] == ["unit.html"]


@pytest.mark.long
def test_pdf_has_pages_pictures_and_the_name(tmp_path: Path) -> None:
    document.export(SPARSE, "pdf", tmp_path / "unit.pdf")
    pages = pdf_text((tmp_path / "unit.pdf").read_bytes())
    whole = "".join(pages)
    assert len(pages) >= 6 and all(f"{number} / {len(pages)}" in page for number, page in enumerate(pages, 1))
    unbroken = pages[0].replace("\r\n", "")  # a name may break behind its own points
    assert unbroken.count(SPARSE.removeprefix("hopper:")) >= 2 and "Contents" in pages[0], "title and table"
    for word in (
        "Datapath",
        "Special values",
        "Against IEEE 754",
        "Fragments",
        "SHA-256",
        "QGMMA.SP.64x8x64.F32.E4M3.E5M2",
    ):
        assert word in whole
    assert "\u200b" not in whole, "names copied from the PDF would not be found by the command line"
    assert "T0:r0" in whole, "the text of pictures"
    assert f"mmagold explain {SPARSE}" in whole.replace("\r\n", " ")


def test_a_pdf_is_tagged_where_typst_once_failed() -> None:
    """Typst 0.15.1 panicked on this one."""
    pytest.importorskip("typst")
    name = "ampere:mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"
    assert b"/StructTreeRoot" in document.to_pdf(resolve(name))


def test_no_page_of_a_pdf_is_cut_or_empty(tmp_path: Path) -> None:
    """Nothing but white within 10 mm of the paper's left and right edges, on every page; and each picture
    stands on the page of its heading, or on a page of its own: the datapath and its registers together."""
    pypdfium2 = pytest.importorskip("pypdfium2")
    document.export(f"rtx_blackwell:{SCALED}", "pdf", tmp_path / "unit.pdf")
    pages = pypdfium2.PdfDocument((tmp_path / "unit.pdf").read_bytes())
    texts = [pages[index].get_textpage().get_text_range() for index in range(len(pages))]
    (datapath,) = [text for text in texts if "Datapath of operation 0" in text]
    assert datapath.index("Datapath\r\n") < datapath.index("Registers of operation 0")
    margin = 28
    for index in range(len(pages)):
        image = pages[index].render(scale=1, grayscale=True).to_numpy()
        image = image.reshape(image.shape[:2])
        assert (image[:, :margin] == 255).all() and (image[:, -margin:] == 255).all(), (
            f"page {index + 1} is too wide"
        )
        assert (image < 128).any()


@pytest.mark.parametrize("path", long_after(2, EXAMPLES, [path.stem for path in EXAMPLES]))
def test_a_designer_s_unit_in_every_form(path: Path, tmp_path: Path) -> None:
    unit = golden.load_instruction(path)
    for form in document.FORMS:
        document.export(str(path) if form == "md" else unit, form, tmp_path / f"unit.{form}")
    text = (tmp_path / "unit.md").read_text("utf-8")
    title = unit.variables["title"]
    assert text.startswith(f"# {title.split('*')[0]}") and "A unit of its own file" in text
    assert "## Variants" not in text and "## Other architectures" not in text and "hopper" not in text
    pictures = re.findall(r"!\[[^\]]*\]\(<([^>]+)>\)", text)
    assert len(pictures) >= 3 and len(set(pictures)) == len(pictures)
    assert all((tmp_path / picture).read_text("utf-8").startswith("<svg") for picture in pictures)
    assert title.split()[0] in pdf_text((tmp_path / "unit.pdf").read_bytes())[0]
    data = json.loads((tmp_path / "unit.json").read_text("utf-8"))
    assert data["instruction"] == unit.name and data["operations"] and data["timing"] == []


def test_json_of_an_instruction(tmp_path: Path) -> None:
    document.export(f"hopper:{NAME}", "json", tmp_path / "unit.json")
    data = json.loads((tmp_path / "unit.json").read_text("utf-8"))
    assert data["operations"][0]["parameters"]["fraction_bits"] == 25
    manifest = json.loads(
        (EXAMPLES[0].parents[2] / "vectors" / "hopper" / "manifest.json").read_text("utf-8")
    )
    entry = manifest["instructions"][NAME]
    assert data["variants"][0]["captured"] == {key: entry[key] for key in ("file", "sha256", "tiles", "dots")}
    assert {one["device"] for one in data["timing"]} >= {"NVIDIA H200"}


def test_an_architecture(tmp_path: Path) -> None:
    for form in document.FORMS:
        document.export("cdna3", form, tmp_path / f"chip.{form}")
    found = Loads((tmp_path / "chip.html").read_text("utf-8"))
    assert len(found.ids) == len(set(found.ids)) and all(
        link[1:] in found.ids for link in found.links if link.startswith("#")
    )
    assert not found.loaded and not any(link.startswith("site:") for link in found.links)
    data = json.loads((tmp_path / "chip.json").read_text("utf-8"))
    names = [variant["instruction"] for group in data["groups"] for variant in group["variants"]]
    assert sorted(names) == sorted(ins.name for ins in golden.instructions("cdna3"))
    text = "".join(pdf_text((tmp_path / "chip.pdf").read_bytes()))
    assert all(name in text for name in names)


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    document.export(f"hopper:{NAME}")
    text = capsys.readouterr().out
    assert text.startswith(f"# {NAME}\n") and "<svg" not in text and "![" not in text and "site:" not in text
    document.export(f"hopper:{NAME}", "json")
    assert json.loads(capsys.readouterr().out)["instruction"] == NAME


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UnknownNameError, match=r"format is 'htm', expected one of md, html, pdf, json; nearest: html"
    ):
        document.export("hopper", "htm")
    with pytest.raises(DocsError, match=r"expected --out FILE\.pdf"):
        document.export("hopper", "pdf")
    with pytest.raises(MmagoldError, match="hoper"):
        document.export("hoper:HMMA.16816.F32", "md")
    unit = golden.load_instruction(EXAMPLES[0])
    with pytest.raises(MmagoldError, match="nowhere"):
        document.export(unit, "json", tmp_path / "nowhere" / "unit.json")
    for package in ("typst", "markdown_it"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            with pytest.raises(DocsToolMissing, match=r'pip install .*"typst>=') as caught:
                document.export(unit, "pdf", tmp_path / "unit.pdf")
            assert "\n" not in str(caught.value) and not (tmp_path / "unit.pdf").exists()


def test_text_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    """Typst, HTML and Markdown all have their own ideas of # $ * _ ` < @ and backslashes."""
    odd = r'a #let x = 1 $y$ *b* "c" <d> @e \f ~g // h'
    text = EXAMPLES[0].read_text("utf-8")
    title = re.search(r"^title: .*$", text, re.M)
    assert title is not None
    path = tmp_path / "odd.yaml"
    path.write_text(text.replace(title[0], f"title: '{odd}'"), "utf-8")
    document.export(str(path), "pdf", tmp_path / "odd.pdf")
    whole = " ".join("".join(pdf_text((tmp_path / "odd.pdf").read_bytes())).split())
    assert odd in whole
    document.export(str(path), "html", tmp_path / "odd.html")
    assert "<d>" not in (tmp_path / "odd.html").read_text("utf-8")


# Anywhere ---------------------------------------------------------------------------------------------------

ENVIRONMENTS = [
    {
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "FORCE_COLOR": "1",
        "CI": "true",
        "GITHUB_ACTIONS": "true",
    },
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "20", "TERM": "dumb"}
    | {"NO_COLOR": "1", "TZ": "Asia/Kathmandu"}
    | {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere", "XDG_CONFIG_HOME": "/proc/nowhere"},
]


EXPORT = """
import os, sys
from golden.cli import app
name, *forms = sys.argv[1:]
for form in forms:
    os.dup2(os.open(f"printed.{form}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    out = ["--out", "a b.pdf"] if form == "pdf" else []
    sys.argv = ["mmagold", "docs", "export", name, "--format", form, *out]
    try:
        app.main()
    except SystemExit as end:
        assert not end.code, form
"""


def exported(folder: Path, environment: dict[str, str]) -> dict[str, bytes]:
    """What `docs export` prints in every form, or for pdf writes, in a folder with a space
    that its owner alone may read."""
    place = folder / "my documents"
    place.mkdir()
    command = [sys.executable, "-c", EXPORT, f"hopper:{NAME}", *document.FORMS]
    root = str(Path(__file__).parents[3])
    variables = os.environ | {"PYTHONPATH": root, "SOURCE_DATE_EPOCH": "1"} | environment
    done = subprocess.run(command, cwd=place, env=variables, stderr=subprocess.PIPE, umask=0o077, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    files = {form: place / ("a b.pdf" if form == "pdf" else f"printed.{form}") for form in document.FORMS}
    return {form: file.read_bytes() for form, file in files.items()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every form of the document as this environment writes it."""
    return exported(tmp_path_factory.mktemp("plain"), {})


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_documents_do_not_depend_on_the_environment(
    environment: dict[str, str], plain: dict[str, bytes], tmp_path: Path
) -> None:
    found = exported(tmp_path, environment)
    assert [form for form in document.FORMS if found[form] != plain[form]] == []
