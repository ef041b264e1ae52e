"""What pages claim of the specs is true, and a changed spec makes the old text fail: pages, README and the
built site."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from golden.errors import DocsError
from golden.publish import claims, stale

ROOT = Path(__file__).resolve().parents[3]
HOPPER, AMPERE = "hopper:HMMA.16816.F32", "ampere:HMMA.16816.F32"
FILES = [
    (path, str(path.relative_to(ROOT)))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
]


def problems(text: str) -> list[str]:
    return [problem for claim in claims.claims(text, "page.md") if (problem := claim.problem())]


def test_every_claim_of_the_pages_and_the_readme_holds() -> None:
    assert claims.check(FILES) > 15
    assert claims.check([FILES[0]]) >= 2


@pytest.mark.parametrize(
    "claim",
    [
        f"{HOPPER} fraction_bits = 25",
        f"{HOPPER} nan = 0x7fffffff",
        f"{HOPPER} exponent_floor = -133",
        f"{HOPPER} formats.d.name = f32",
        f"{AMPERE} operations.1.k = 8-15",
        f"{HOPPER} special_values.0.d = 0x7fffffff",
    ],
)
def test_true_claims(claim: str) -> None:
    value = claim.rpartition(" ")[2]
    assert problems(f"# Page\n\nIt is {value}. <!-- spec: {claim} -->\n") == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            f"24 <!-- spec: {HOPPER} fraction_bits = 24 -->",
            "page.md:3: the page says fraction_bits of .* = 24, the spec says 25",
        ),
        (
            f"keeps 24\nbits <!-- spec: {HOPPER} fraction_bits = 25 -->",
            "page.md:4: .* claims .* = 25, but its paragraph does not",
        ),
        (
            f"25\n\n<!-- spec: {HOPPER} fraction_bits = 25 -->",
            "page.md:5: .* but its paragraph does not say 25",
        ),
        (
            f"| 24 | <!-- spec: {HOPPER} fraction_bits = 25 -->\n| 25 |",
            "page.md:3: .* but its paragraph does not say 25",
        ),
        ("25 <!-- spec: hopper:HMMA.1 fraction_bits = 25 -->", "page.md:3: .*HMMA.1.*"),
        (
            f"25 <!-- spec: {HOPPER} fraction_bit = 25 -->",
            "page.md:3: .*no 'fraction_bit', expected one of .*fraction_bits",
        ),
        (
            f"25 <!-- spec: {HOPPER} = 25 -->",
            "page.md:3: claim .*, expected 'architecture:instruction path = value'",
        ),
    ],
)
def test_false_claims_name_file_line_page_and_spec(text: str, complaint: str) -> None:
    import re

    found = problems(f"# Page\n\n{text}\n")
    assert len(found) == 1
    assert re.match(complaint, found[0]), found[0]


def test_the_reader_does_not_see_claims() -> None:
    text = f"It keeps <!-- spec: {HOPPER} fraction_bits = 25 -->25 bits <!-- spec: {HOPPER} nan = 1 -->.\n"
    assert claims.without_claims(text) == "It keeps 25 bits.\n"


@pytest.fixture(scope="module")
def changed_spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the specs in which Hopper's fused dot-adds keep one fraction bit less."""
    folder = tmp_path_factory.mktemp("changed") / "spec"
    shutil.copytree(ROOT / "spec", folder)
    path = folder / "architectures" / "common" / "nvidia_f25.yaml"
    text = path.read_text("utf-8")
    assert "fraction_bits: 25" in text
    path.write_text(text.replace("fraction_bits: 25", "fraction_bits: 24"), "utf-8")
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MMAGOLD_SPEC": str(folder)}
    command = [sys.executable, "-m", "golden.cli.app", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)


def test_changed_spec_makes_the_built_site_stale(changed_spec: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    stale.write(site, stale.inputs())
    done = run(changed_spec, "docs", "check", str(site))
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == ["spec/architectures/common/nvidia_f25.yaml: changed"]
    assert "stale" in done.stderr


def test_changed_spec_makes_the_old_text_fail(changed_spec: Path, tmp_path: Path) -> None:
    done = run(changed_spec, "docs", "build", "--out", str(tmp_path / "site"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "the page says fraction_bits of hopper:HMMA.16816.F32 = 25, the spec says 24" in done.stderr
    assert "docs/index.md:" in done.stderr
    assert not list(tmp_path.iterdir())


def test_new_and_missing_inputs_are_named(tmp_path: Path) -> None:
    now = stale.inputs()
    first = next(iter(now))
    stale.write(
        tmp_path, {name: value for name, value in now.items() if name != first} | {"spec/older.yaml": "0"}
    )
    assert stale.changes(tmp_path) == [f"{first}: new", "spec/older.yaml: gone"]
    stale.write(tmp_path, now)
    assert stale.changes(tmp_path) == []


def test_wrong_spec_folder_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, "list")
    assert done.returncode == 2
    assert "MMAGOLD_SPEC" in done.stderr


def test_check_gathers_all_complaints(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"1 <!-- spec: {HOPPER} fraction_bits = 1 --> <!-- spec: {AMPERE} fraction_bits = 1 -->", "utf-8"
    )
    with pytest.raises(DocsError, match=r"page\.md:1: .*the spec says 25; page\.md:1: .*the spec says 24"):
        claims.check([(page, "page.md")])
