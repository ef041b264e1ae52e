"""The built site: complete, nothing leads nowhere, nothing comes from elsewhere,
and its numbers are the model's."""

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from docutils.core import publish_doctree
from long_run import long_after
from sphinx.ext.napoleon import GoogleDocstring

import golden
from golden.errors import DocsError, ToolMissing
from golden.explain.markdown import link
from golden.publish import api_page, families, links, sphinx_source, stale
from golden.publish import site as builder
from golden.publish.explorer.address import INDEX
from golden.publish.sphinx_extension import as_restructured, marked, with_current, without_current
from golden.publish.templating import Page

ROOT = Path(__file__).resolve().parents[3]
TAG = re.compile(r"<[a-zA-Z][^>]*>")
ATTRIBUTE = re.compile(r'\s(id|name|href|src|srcset|poster|data)="([^"]*)"')


# What is there ----------------------------------------------------------------------------------------------


def test_there_is_a_page_for_every_group_of_instructions(site: Path) -> None:
    wanted = {group.path for name in golden.architectures() for group in families.groups(name)}
    assert len(wanted) > 250
    assert not {path for path in wanted if not (site / path).with_suffix(".html").is_file()}


def test_there_is_a_page_for_every_architecture_and_format(site: Path) -> None:
    wanted = [f"architectures/{name}.html" for name in golden.architectures()]
    formats = yaml.safe_load((ROOT / "spec" / "formats" / "formats.yaml").read_text("utf-8"))["formats"]
    wanted += [f"formats/{name}.html" for name in formats] + [
        "comparison.html",
        "studies/index.html",
        "api/index.html",
    ]
    wanted += [path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")]
    assert not [path for path in wanted if not (site / path).is_file()]


def test_side_bar_is_small_and_reaches_every_hand_written_page(site: Path) -> None:
    text = (site / "index.html").read_text("utf-8")
    listed = re.findall(r'<a class="reference" href="([^"]+)"', text[: text.index('<div class="main">')])
    assert len(listed) < 120
    assert {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")} - {"index.html"} <= set(
        listed
    )


def test_claims_do_not_reach_the_reader(site: Path) -> None:
    claim = re.compile(r"spec: \w+:\S+ [\w.]+ = ")
    assert not [path for path in site.glob("*.html") if claim.search(path.read_text("utf-8"))]


# Where things lead ------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """The addresses and anchors of one page."""

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen = Seen()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.seen.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag in ("a", "area") and "href" in given:
            self.seen.links.add(given["href"])
        elif "href" in given:  # link, use, image
            self.seen.loads.add(given["href"])
        self.seen.loads.update(given[name] for name in ("src", "srcset", "poster", "data") if name in given)
        if "url(" in given.get("style", ""):
            self.seen.loads.update(re.findall(r"url\(([^)]*)\)", given["style"]))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Seen]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        # Only tags that carry an address or an anchor: the cells of the pictures are most of the text.
        text = path.read_text("utf-8")
        reader.feed("\n".join(tag for tag in TAG.findall(text) if ATTRIBUTE.search(tag)))
        found[path.resolve()] = reader.seen
    return found


def targets(page: Path, addresses: set[str]) -> Iterator[tuple[str, Path, str]]:
    """The addresses inside the site: as written, as a path, and the anchor."""
    for address in addresses:
        parts = urlsplit(address)
        if not parts.scheme and not parts.netloc:
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            yield address, path, unquote(parts.fragment)


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[Path, Seen]) -> None:
    wrong, count = [], 0
    for page, seen in pages.items():
        for address, path, anchor in targets(page, seen.links | seen.loads):
            count += 1
            known = path in pages or path.is_file()
            state = path == site.resolve() / INDEX  # behind the #: what the explorer shows
            if not known or (anchor and not state and path in pages and anchor not in pages[path].anchors):
                wrong.append(f"{page.relative_to(site.resolve())}: {address}")
    assert not wrong, "\n".join(wrong[:40])
    assert count > 10_000


def test_links_go_to_pages_and_files_of_the_site_alone(site: Path, pages: dict[Path, Seen]) -> None:
    root = site.resolve()
    outside = [
        (page, path)
        for page, seen in pages.items()
        for _, path, _ in targets(page, seen.links)
        if root not in path.parents
    ]
    assert not outside


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Seen]) -> None:
    foreign = re.compile(r"(https?:)?//")
    loads = {
        (page.name, address)
        for page, seen in pages.items()
        for address in seen.loads
        if foreign.match(address)
    }
    assert not loads
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        assert not re.search(r"""(url\(\s*["']?|@import\s+["']?)(https?:)?//""", text), style
    for script in site.rglob("*.js"):
        text = script.read_text("utf-8") if script.name != "searchindex.js" else ""
        assert not re.search(
            r"""(fetch\(|import\(|\.src\s*=|\.href\s*=|importScripts\()\s*["'`](https?:)?//""", text
        ), script


# How it is built --------------------------------------------------------------------------------------------


def page_of(text: str) -> str:
    return text


def small(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Has the next build make a site of two pages."""
    two = [
        Page("index.md", "Start", partial(page_of, "# Start\n\nHere.")),
        Page("a/b.md", "B", partial(page_of, text)),
    ]
    monkeypatch.setattr(sphinx_source, "all_pages", lambda: two)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder that looks like an earlier site."""
    folder = tmp_path / "site"
    folder.mkdir()
    stale.write(folder, stale.inputs())
    (folder / "old.html").write_text("old")
    return folder


def unchanged(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {"old.html", stale.MANIFEST} and [folder] == list(
        folder.parent.iterdir()
    )


def test_link_without_target_fails_with_page_and_link(monkeypatch: pytest.MonkeyPatch, earlier: Path) -> None:
    small(monkeypatch, f"# B\n\nSee {link('there', 'formats/e4m4.md')}.")
    with pytest.raises(DocsError, match=r"a/b\.md: link 'site:formats/e4m4\.md' leads nowhere"):
        builder.build(earlier, 1)
    assert unchanged(earlier)


@pytest.mark.long
def test_link_to_a_missing_heading_fails_with_the_page(
    monkeypatch: pytest.MonkeyPatch, earlier: Path
) -> None:
    small(monkeypatch, f"# B\n\nSee {link('there', 'index.md#nowhere')}.")
    with pytest.raises(DocsError, match=r"a/b\.md:\d+: WARNING: .*nowhere"):
        builder.build(earlier, 1)
    assert unchanged(earlier)


ENVIRONMENTS = [
    {},
    {"CI": "true", "GITHUB_ACTIONS": "true", "FORCE_COLOR": "1", "COLUMNS": "20", "TERM": "xterm-256color"}
    | {"LANGUAGE": "de", "LANG": "de_DE.UTF-8", "PYTHONIOENCODING": "latin-1"},
    {"NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    | {"TZ": "Asia/Kathmandu", "SOURCE_DATE_EPOCH": "1"}
    | {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere", "XDG_CONFIG_HOME": "/proc/nowhere"},
]
"""Everything that an environment could change at once, in two that do not contradict themselves."""
GREEK = "# B\n\n\u03b1 \u00d7 \u03b2 \u2264 1, \u201ccut\u201d."


def set_environment(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    """These variables, and none of the others of ENVIRONMENTS but HOME."""
    for name in {name for one in ENVIRONMENTS for name in one} - {"HOME"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a site but the one that says what it was made from."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != stale.MANIFEST]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def plain_site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small site."""
    folder = tmp_path_factory.mktemp("plain") / "site"
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_environment(monkeypatch, {})
        small(monkeypatch, GREEK)
        builder.build(folder, 1)
    return contents(folder)


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVIRONMENTS[1:], ids=str)
def test_the_site_does_not_depend_on_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plain_site: dict[str, bytes], environment: dict[str, str]
) -> None:
    """Byte by byte, in a folder with a space, readable only by its owner; its progress is reported, too."""
    set_environment(monkeypatch, environment)
    small(monkeypatch, GREEK)
    reported: list[str] = []
    before = os.umask(0o077)
    try:
        builder.build(tmp_path / "my site", 1, lambda what, done, total: reported.append(what))
    finally:
        os.umask(before)
    found = contents(tmp_path / "my site")
    assert {name for name in found | plain_site if found.get(name) != plain_site.get(name)} == set()
    assert {what for what in reported if what.startswith("Sphinx")} == {
        "Sphinx: reading sources",
        "Sphinx: writing output",
    }


@pytest.mark.long
@pytest.mark.parametrize("terminal", long_after(1, [*ENVIRONMENTS[1:], ENVIRONMENTS[0]]), ids=str)
def test_interrupted_build_leaves_the_earlier_site(
    monkeypatch: pytest.MonkeyPatch, earlier: Path, terminal: dict[str, str]
) -> None:
    """Sphinx's progress is understood, whatever it thinks of the terminal."""
    set_environment(monkeypatch, terminal)
    small(monkeypatch, "# B\n\nText.")

    def interrupt(what: str, done: int, total: int) -> None:
        if what.startswith("Sphinx"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.build(earlier, 1, interrupt)
    assert unchanged(earlier)


@pytest.mark.long
def test_interrupted_processes_leave_nothing(monkeypatch: pytest.MonkeyPatch, earlier: Path) -> None:
    """Pages that were being written when the interrupt came do not bring the folder back."""
    # A function of the package: the other processes cannot import the tests.
    write = partial(links.write_file, "spec/timing/hopper_h200.yaml")
    pages = [Page(f"a/{number}.md", "A", write) for number in range(200)]
    monkeypatch.setattr(sphinx_source, "all_pages", lambda: pages)

    def interrupt(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.build(earlier, 2, interrupt)
    time.sleep(0.5)
    assert unchanged(earlier)


def test_a_killed_process_is_one_line() -> None:
    with pytest.raises(DocsError, match="was killed"):
        list(sphinx_source._results([partial(os._exit, 9)] * 2, (frozenset(), False, Path()), 2))


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DocsError, match="no earlier site"):
        builder.build(tmp_path)
    with pytest.raises(DocsError, match="is a file"):
        builder.build(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("written", "became"),
    [
        ("[a](dut.md#ports)", "[a](dut.md#ports)"),
        ("[a](timing/figure06.svg)", '<a href="timing/figure06.svg">a</a>'),
        ("[a](../vectors/hopper/manifest.json)", '<a href="vectors/hopper/manifest.json">a</a>'),
        ("[a](../vectors/hopper)", "[a](vectors/hopper/index.md)"),
        ("[a](../spec/formats/formats.yaml)", "[a](sources/spec/formats/formats.yaml.md)"),
        ("[`a`](../setup.py)", "[`a`](sources/setup.py.md)"),
        ("[a](https://example.org/b) and [c](#d)", "[a](https://example.org/b) and [c](#d)"),
        ("`[a](b.md)` and\n```\n[a](b.md)\n```", "`[a](b.md)` and\n```\n[a](b.md)\n```"),
    ],
)
def test_links_of_hand_written_pages(written: str, became: str) -> None:
    known = frozenset({"dut.md", "vectors/hopper/index.md"})
    assert links.Links(known).relink(written, "timing.md", hand_written=True) == became


def test_every_link_of_a_hand_written_page_leads_somewhere() -> None:
    """What the site's own build would refuse, found without building it."""
    known = frozenset(page.path for page in sphinx_source.all_pages())
    for page in sphinx_source.hand_written():
        links.Links(known).relink(page.write(), page.path, hand_written=True)


def test_links_are_relative_to_their_page() -> None:
    vectors = link("v", "vectors/hopper/manifest.json")
    text = f'{link("F", "formats/f16.md#range")}\n<a href="site:architectures/hopper.md#f">x</a> {vectors}'
    known = frozenset({"formats/f16.md", "architectures/hopper.md"})
    assert links.Links(known).relink(text, "instructions/hopper/x.md") == (
        '[F](../../formats/f16.md#range)\n<a href="../../architectures/hopper.html#f">x</a> '
        '<a href="../../vectors/hopper/manifest.json">v</a>'
    )


def test_vectors_that_are_not_installed_are_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "checkout", lambda: None)
    text = f"see {link('the file', 'vectors/hopper/x.npz')} and [README](../README.md)"
    assert links.Links(frozenset()).relink(text, "a.md", hand_written=True) == "see the file and README"


# What it belongs to -----------------------------------------------------------------------------------------


def docs_check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "golden.cli.app", "docs", "check", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_passes_for_the_site_of_today(site: Path) -> None:
    done = docs_check(site)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_check_of_something_else_is_an_error(tmp_path: Path) -> None:
    done = docs_check(tmp_path)
    assert done.returncode == 2
    assert "holds no site" in done.stderr


def test_docstrings_keep_their_text_and_their_code() -> None:
    """A line that hangs below text goes on with it; an indented block of its own is code."""
    reported = [
        "What.",
        "",
        "failed: some",
        "    of it.",
        "differ: none",
        "",
        "    run(x)",
        "",
        "Args:",
        "    a: one",
        "        line.",
    ]
    assert as_restructured(reported) == [
        *("What.", "", "failed: some", "of it.", "differ: none", ""),
        *("", ".. code-block:: python", "", "    run(x)", ""),
        *("Args:", "    a: one", "        line."),
    ]


def described(thing: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a thing of the API reference and of its members, by name."""
    module, _, last = thing.rpartition(".")
    try:
        found = import_module(thing) if last == "errors" else getattr(import_module(module), last)
    except ToolMissing:  # without PyTorch
        return
    members = vars(found) if inspect.isclass(found) or inspect.ismodule(found) else {}
    for name, member in {"": found, **members}.items():
        text = getattr(getattr(member, "__func__", member), "__doc__", None)
        if (
            text
            and not name.startswith("_")
            and (callable(member) or not name or isinstance(member, property))
        ):
            yield f"{thing} {name}", inspect.cleandoc(text)


@pytest.mark.parametrize("page", api_page.PAGES)
def test_docutils_reads_the_docstrings_of_the_api_without_a_warning(page: str) -> None:
    """A warning ends the build of the site."""
    template = (api_page.FOLDER / "api" / f"{page}.md.j2").read_text("utf-8")
    things = re.findall(r"[\w.]+", " ".join(re.findall(r"describe\((.*?)\)", template, re.S)))
    assert things
    for thing in things:
        for name, text in described(thing):
            warned = io.StringIO()
            read = str(GoogleDocstring(as_restructured(text.split("\n"))))
            publish_doctree(read, settings_overrides={"report_level": 2, "warning_stream": warned})
            said = [line for line in warned.getvalue().splitlines() if "(WARNING/2)" in line]
            assert not said, (name, said)


def test_side_bar_of_a_page_is_that_of_another_with_its_own_entry_marked() -> None:
    """As Sphinx 9 wrote them: of a page below another one, and of the first page."""
    of_b = (
        '<p class="caption"><span class="caption-text">One</span></p>\n<ul>\n'
        '<li class="toctree-l1"><a class="reference internal" href="first.html">First</a></li>\n</ul>\n'
        '<p class="caption"><span class="caption-text">Two</span></p>\n<ul class="current">\n'
        '<li class="toctree-l1"><a class="reference internal" href="x.html">X</a><ul>\n'
        '<li class="toctree-l2"><a class="reference internal" href="y.html">Y</a></li>\n</ul>\n</li>\n'
        '<li class="toctree-l1 current"><a class="reference internal" href="a.html">A</a>'
        '<ul class="current">\n'
        '<li class="toctree-l2 current"><a class="current reference internal" href="#">B</a></li>\n'
        "</ul>\n</li>\n</ul>\n"
    )
    of_first = (
        '<p class="caption"><span class="caption-text">One</span></p>\n<ul class="current">\n'
        '<li class="toctree-l1 current"><a class="current reference internal" href="#">First</a></li>\n'
        "</ul>\n"
        '<p class="caption"><span class="caption-text">Two</span></p>\n<ul>\n'
        '<li class="toctree-l1"><a class="reference internal" href="x.html">X</a><ul>\n'
        '<li class="toctree-l2"><a class="reference internal" href="y.html">Y</a></li>\n</ul>\n</li>\n'
        '<li class="toctree-l1"><a class="reference internal" href="a.html">A</a><ul>\n'
        '<li class="toctree-l2"><a class="reference internal" href="b.html">B</a></li>\n'
        "</ul>\n</li>\n</ul>\n"
    )
    plain = without_current(of_b, "b.html")
    assert plain == without_current(of_first, "first.html")
    assert with_current(plain, "b.html") == of_b and with_current(plain, "first.html") == of_first
    assert with_current(plain, "search.html") == plain


def test_side_bar_marks_the_way_to_a_page_that_it_does_not_list() -> None:
    entry = '<li class="toctree-l{}"><a class="reference internal" href="../../{}">x</a>'
    bar = "".join(
        entry.format(level, name) for level, name in ((1, "a/index.html"), (2, "a/b.html"), (2, "a/c.html"))
    )
    shown = marked(bar, ["../../a/index.html", "../../a/b.html"])
    assert re.findall(r'class="([^"]+)"><a', shown) == [
        "toctree-l1 current",
        "toctree-l2 current",
        "toctree-l2",
    ]
