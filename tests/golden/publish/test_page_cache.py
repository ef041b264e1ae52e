"""Texts of pages that a later build takes: only of the same files, and only of what the package writes."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from long_run import long_after

from golden.paths import spec_folder
from golden.publish import format_page, page_cache
from golden.publish.templating import Page


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the formats whose page was written; the cache folder is empty."""
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    names: list[str] = []

    def markdown(name: str) -> str:
        names.append(name)
        return f"# {name}\n"

    markdown.__module__ = format_page.__name__
    monkeypatch.setattr(format_page, "markdown", markdown)
    return names


def page(name: str = "bf16") -> Page:
    return Page(f"formats/{name}.md", name, partial(format_page.markdown, name))


def test_a_text_is_written_once(written: list[str]) -> None:
    kept = page_cache.place()
    assert [page_cache.text(page(name), kept) for name in ("bf16", "f16", "bf16")] == [
        "# bf16\n",
        "# f16\n",
        "# bf16\n",
    ]
    assert written == ["bf16", "f16"]
    page_cache.remove_old(kept)
    assert page_cache.text(page(), kept) == "# bf16\n" and written == ["bf16", "f16"]


@pytest.mark.parametrize("change", long_after(1, ["edited", "added", "removed"]))
def test_a_change_of_any_file_makes_all_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: list[str], change: str
) -> None:
    """A file of the specs stands for all: the texts of before it are gone, too."""
    spec = tmp_path / "spec"
    shutil.copytree(spec_folder(), spec)
    monkeypatch.setenv("MMAGOLD_SPEC", str(spec))
    before = page_cache.place()
    page_cache.text(page(), before)
    file = next(path for path in sorted(spec.rglob("*.yaml")) if path.stat().st_size > 100)
    if change == "edited":  # of the same size and time
        stamp = file.stat()
        file.write_bytes(file.read_bytes()[:-1] + b" ")
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    elif change == "added":
        (spec / "new.yaml").write_text("")
    else:
        file.unlink()
    after = page_cache.place()
    assert after != before
    page_cache.text(page(), after)
    assert written == ["bf16", "bf16"]
    page_cache.remove_old(after)
    assert after.is_dir() and not before.exists()


def test_a_hand_written_page_decides_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: list[str]
) -> None:
    """What a campaign found is read by pages; a guide is not."""
    docs = tmp_path / "docs"
    (docs / "campaigns").mkdir(parents=True)
    monkeypatch.setattr(page_cache, "docs_folder", lambda: docs)
    before = page_cache.place()
    (docs / "guide.md").write_text("# Guide\n")
    assert page_cache.place() == before
    (docs / "campaigns" / "new.json").write_text("{}")
    assert page_cache.place() != before


def test_what_was_written_while_a_file_changed_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, written: list[str]
) -> None:
    kept = page_cache.place()
    page_cache.text(page(), kept)
    monkeypatch.setattr(page_cache, "_LIBRARIES", ())  # another digest
    page_cache.remove_old(kept)
    assert not kept.exists()


def test_pages_of_others_are_written_each_time(written: list[str]) -> None:
    """Their text may be of anything; so may be a page that shows a file of the repository."""
    kept, texts = page_cache.place(), iter(["one", "two"])
    other = Page("a.md", "A", lambda: next(texts))
    assert [page_cache.text(other, kept) for _ in range(2)] == ["one", "two"]


def test_a_cache_that_cannot_be_written_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    kept = tmp_path / "file" / "pages"
    assert page_cache.text(page(), kept) == "# bf16\n"
