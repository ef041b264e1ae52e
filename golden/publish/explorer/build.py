"""Builds the explorer: the page, its script as one file, the core, the index, and a file for each
architecture."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

from golden.errors import DocsError, missing
from golden.files import output
from golden.files.output import put_folder, workplace
from golden.publish.explorer import catalog, wasm
from golden.publish.explorer.address import INDEX
from golden.publish.explorer.catalog import as_json, presets

PAGE = Path(__file__).parent / "page"
COLOURS = PAGE.parents[1] / "pictures" / "fragments.css"
MODULES = (
    *("dom", "core", "numbers", "values", "trace", "difference", "library", "link"),
    *("picture", "steps", "errors", "operands", "finder", "main"),
)
"""The script's modules, each after those that it imports."""
_IMPORT = re.compile(r'^import (?P<names>\{[^}]*\}) from "\./(?P<module>\w+)\.js";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (?P<name>\w+))", re.M)


def script() -> str:
    """The modules as one classic script, each a function that returns its exports: a browser refuses modules
    and fetch of pages that are opened as files, without a server.

    Raises:
        DocsError: a module imports one that does not stand before it, or in a form that this does not know.
    """
    return '"use strict";\n(() => {\n' + "".join(map(_module, range(len(MODULES)))) + "})();\n"


def _module(number: int) -> str:
    name = MODULES[number]
    text = (PAGE / f"{name}.js").read_text("utf-8")
    late = {found["module"] for found in _IMPORT.finditer(text)} - set(MODULES[:number])
    names = [found["name"] for found in _EXPORT.finditer(text)]
    body = _EXPORT.sub("", _IMPORT.sub(r"const \g<names> = \g<module>_js;", text))
    wrong = re.search(r"^(import|export)\b.*", body, re.M)
    if late or wrong:
        raise DocsError(f"{name}.js: {wrong[0] if wrong else f'imports {min(late)}.js, which comes later'}")
    return f"const {name}_js = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


_NAV = '<nav aria-label="Site"><a href="../index.html">mmagold documentation</a></nav>\n'


def files(in_site: bool = False) -> dict[str, str]:
    """The explorer's files by name; in a site the page leads back to it.

    Raises:
        DocsToolMissing: what compiles the core is not installed.
        DocsError: see `script` and `wasm.compile_core`.
    """
    core = base64.b64encode(wasm.compile_core()).decode()
    index, programs = catalog.index_and_programs()
    words = as_json({"core": core, "words": catalog.core_words(), "index": index, "presets": presets()})
    return {
        "index.html": (PAGE / "index.html")
        .read_text("utf-8")
        .replace("<!-- nav -->\n", _NAV if in_site else ""),
        "explorer.css": (PAGE / "explorer.css").read_text("utf-8"),
        "colours.css": COLOURS.read_text("utf-8"),
        "explorer.js": script(),
        "data.js": f"globalThis.mmagoldExplorer = {words};\n",
        **{f"programs/{name}.js": _program_script(name, spec) for name, spec in programs.items()},
    }


def _program_script(name: str, programs: object) -> str:
    return f"globalThis.mmagoldExplorer.deliver({as_json(name)}, {as_json(programs)});\n"


def write_into(site: Path) -> None:
    """Writes the explorer into a site; without the compiler a page that says what is missing. Raises
    DocsError as `files`."""
    page = site / INDEX
    if wasm.available():
        _write(page.parent, files(in_site=True))
    else:
        _write(page.parent, {page.name: _absent()})


def _absent() -> str:
    reason = html.escape(str(missing(wasm.COMPILER)))
    text = f"<h1>No explorer</h1><p>This site was built without the explorer: {reason}.</p>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>No explorer</title>{text}</html>\n'


def _write(folder: Path, texts: dict[str, str]) -> list[Path]:
    written = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(path, text)
        written.append(path)
    return written


def build(out: Path) -> list[Path]:
    """Builds the explorer into the folder `out`, which is new, empty or an earlier explorer; returns its
    files.

    Raises:
        DocsError: `out` holds something else; else as `files`. `out` is as it was.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "explorer.js").is_file())):
        raise DocsError(
            f"'{out}' holds something that is no earlier explorer, expected a new or empty folder"
        )
    with workplace(out) as work:
        made = work / "explorer"
        made.mkdir()
        names = [path.relative_to(made) for path in _write(made, files())]
        put_folder(made, out)
    return [out / name for name in names]
