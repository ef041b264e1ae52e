"""Builds the docs site: claims are checked, pages written, Sphinx run, and the site put in place as a
whole or not at all."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from golden.catalog import architectures
from golden.errors import DocsError, listed, missing
from golden.files.output import put_folder, workplace
from golden.paths import docs_folder
from golden.publish import claims, document, schema, slots, sphinx_source, stale
from golden.publish.explorer import build as explorer
from golden.publish.families import groups
from golden.publish.sphinx_source import Progress

_PACKAGES = ("sphinx", "myst_parser", "furo", "sphinx_copybutton", "matplotlib")
_PERCENT = re.compile(r"^(reading sources|writing output)\.\.\. \[ *(\d+)%\]")


def build(
    out: Path,
    jobs: int | None = None,
    progress: Progress = lambda what, done, total: None,
    vectors: bool = False,
) -> int:
    """Builds the site into the folder `out`, which is new, empty or an earlier site;
    returns the number of pages.

    jobs: processes (default: one for each processor). progress: called with what is being done,
        how much and of how much. vectors: whether the recorded vectors (45 MB) are copied into the site.

    Raises:
        DocsToolMissing: Sphinx, MyST or furo is not installed.
        DocsError: `out` is something else, a claim or a link fails, the page of the schema is stale, or
            Sphinx warns; `out` is as it was.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise missing(package)
    out = Path(os.path.realpath(out))  # of a link the folder behind it is replaced
    check_out(out)
    jobs = jobs or os.cpu_count() or 1
    progress("checking claims and tables", 0, 0)
    made_from = stale.inputs()
    folder = docs_folder()
    claims.check(
        (path, f"docs/{path.relative_to(folder).as_posix()}") for path in sorted(folder.rglob("*.md"))
    )
    schema.check()
    progress("listing the pages", 0, 0)
    with workplace(out) as work:
        pages = sphinx_source.all_pages()
        source, site = work / "source", work / "site"
        source.mkdir()
        sphinx_source.write(source, pages, jobs, progress, vectors)
        progress("starting Sphinx", 0, 0)
        _run_sphinx(source, site, work / "doctrees", jobs, progress)
        progress("putting pictures and files in", 0, 0)
        shutil.rmtree(site / "_sources", ignore_errors=True)
        slots.put(work / slots.FOLDER, site)
        sphinx_source.copy_files(site, vectors)
        for path, text in _for_programs():
            (site / path).write_text(text, "utf-8")
        progress("explorer", 0, 1)
        explorer.write_into(site)
        progress("putting the site in place", 0, 0)
        stale.write(site, made_from)
        put_folder(site, out)
    return len(pages)


def _for_programs() -> Iterator[tuple[str, str]]:
    for architecture in architectures.architectures():
        for group in groups(architecture):
            yield from document.files(group)


def check_out(out: Path) -> None:
    """Refuses a folder that holds something else than an earlier site."""
    if out.exists() and not out.is_dir():
        raise DocsError(f"'{out}' is a file, expected a folder for the site")
    if out.is_dir() and any(out.iterdir()) and not stale.is_site(out):
        raise DocsError(f"'{out}' holds something that is no earlier site, expected a new or empty folder")


def _run_sphinx(source: Path, site: Path, doctrees: Path, jobs: int, progress: Progress) -> None:
    """Runs Sphinx; its warnings are errors."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-E",
        "--no-color",
        "-j",
        str(jobs),
    ]
    command += ["-d", str(doctrees), str(source), str(site)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", env=_environment()
        ) as sphinx:
            assert sphinx.stdout is not None
            try:
                for line in sphinx.stdout:  # carriage returns end lines, too
                    if found := _PERCENT.match(line):
                        progress(f"Sphinx: {found[1]}", int(found[2]), 100)
            except BaseException:
                sphinx.terminate()
                raise
        errors.seek(0)
        complaints = [line.replace(f"{source}/", "").strip() for line in errors if line.strip()]
    if sphinx.returncode:
        shown = [line for line in complaints if "WARNING" in line or "ERROR" in line] or complaints[-3:]
        most = 10  # complaints that the message repeats
        raise DocsError(
            f"Sphinx refused the pages (exit status {sphinx.returncode}): {listed(shown, most, '; ')}"
        )


def _environment() -> dict[str, str]:
    """Sphinx imports the same package as this process, whatever the folder,
    and prints plain English lines in UTF-8.

    On a CI server (CI=true) or with FORCE_COLOR it would put terminal codes before its progress, --no-color
    or not; with LANGUAGE=de it would print progress in German.
    """
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    path = f"{root}{os.pathsep}{inherited}" if inherited else root
    plain = {"NO_COLOR": "1", "LANGUAGE": "en", "LC_ALL": "C", "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
    return os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"} | plain
