"""The command `mmagold study`, the files that it writes, and the pages."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden import studies
from golden.cli import app
from golden.errors import OperandError, UnknownNameError
from golden.publish import study_page
from golden.studies.study import Study, Table, csv_text, number, percent, write

FEW = {"fp8-accumulation": 20, "cdna2-range": 50, "cdna3-rounding": 2000, "numeric-profile": 200}


def call(*arguments: str, status: int = 0) -> Any:
    result = CliRunner().invoke(app.app, ["study", *arguments], prog_name="mmagold")
    assert result.exit_code == status, (result.output, result.exception)
    return result


@pytest.fixture(scope="module", params=long_after(1, studies.names()))
def study(request: pytest.FixtureRequest) -> Study:
    return studies.run(request.param, FEW.get(request.param, 100))


def test_every_module_is_a_study_under_its_own_name() -> None:
    for name in studies.names():
        module = importlib.import_module(f"golden.studies.{name.replace('-', '_')}")
        assert (
            name == module.NAME
            and studies.question(name).endswith("?")
            and studies.default_samples(name) >= 1
        )


def test_a_study_is_whole_plain_and_says_what_makes_it_again(study: Study) -> None:
    assert (
        study.findings.startswith("- ") and "{" not in study.findings and "nan" not in study.findings.split()
    )
    assert study.command == f"mmagold study {study.name}"
    assert study.units and all(
        unit["evidence"] in ("captured", "published", "derived") for unit in study.as_dict()["units"]
    )
    for table in study.tables:
        assert table.rows and all(len(row) == len(table.head) for row in table.rows)
    assert len({table.name for table in study.tables}) == len(study.tables)
    assert json.loads(json.dumps(study.as_dict()))["study"] == study.name


def test_its_files_are_complete(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first = write(study, tmp_path)
    names = [path.name for path in first]
    assert names[0] == f"{study.name}.md" and len(set(names)) == len(names)
    assert len(names) == 1 + len(study.tables) + 2 * len(study.figures)
    assert first[0].read_text().startswith(f"# {study.words.title}\n") and "site:" not in first[0].read_text()


def test_the_same_study_gives_the_same_numbers_and_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = (studies.run("product-overflow", 50) for _ in range(2))
    for one, other in zip(write(first, tmp_path / "first"), write(second, tmp_path / "second"), strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    assert first.as_dict() == second.as_dict() != studies.run("product-overflow", 60).as_dict()


def test_progress_ends_at_its_total() -> None:
    seen: list[tuple[int, int]] = []
    studies.run("consistency", 10, lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] and [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_csv_keeps_all_digits() -> None:
    table = Table("t", "caption", ("a", "b"), [("`x`, y", 1 / 3)])
    assert list(csv.reader(io.StringIO(csv_text(table)))) == [["a", "b"], ["x, y", str(1 / 3)]]


def test_numbers_as_text() -> None:
    assert [number(x) for x in (0.0, 1234567.0, 12.345, -0.000123456, 99999.0)] == [
        "0",
        "1.23e6",
        "12.3",
        "-1.23e-4",
        "99999",
    ]
    assert [percent(x) for x in (0.0, 1.0, 0.5, 0.012, 0.0001, 0.9999)] == [
        "0 %",
        "100 %",
        "50.0 %",
        "1.20 %",
        "0.010 %",
        "99.990 %",
    ]


# Command ----------------------------------------------------------------------------------------------------


def test_without_a_name_the_list() -> None:
    shown = call().stdout
    assert all(name in shown for name in studies.names())
    assert [row["name"] for row in json.loads(call("--json").stdout)] == list(studies.names())


def test_findings_and_tables_are_printed() -> None:
    shown = call("tf32-nan", "--samples", "10").stdout
    assert "0x7F800001" in shown and "site:" not in shown and "`" not in shown
    assert "cdna3-rounding --out" not in shown
    assert (
        "2 figures (histogram, growth): mmagold study cdna3-rounding --out FOLDER"
        in call("cdna3-rounding", "--samples", "100").stdout
    )


def test_json_and_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = call("accumulation-precision", "--json", "--out", str(tmp_path / "new" / "folder"))
    assert json.loads(result.stdout)["data"]["hopper e4m3"]["product_bits"] == 13
    assert sorted(Path(line).name for line in result.stderr.split()) == sorted(
        p.name for p in (tmp_path / "new" / "folder").iterdir()
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cdna3-roundin",), ("unknown study 'cdna3-roundin'", "nearest: cdna3-rounding")),
        (("tf32-nan", "--samples", "0"), ("samples is 0", "expected 1 to")),
        (("summation-order", "--samples", "9" * 20), ("samples is 9", "expected 1 to")),
    ],
)
def test_mistakes_are_one_line_and_exit_status_2(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = call(*arguments, status=2)
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in words)
    with pytest.raises((UnknownNameError, OperandError)):
        studies.run(arguments[0], 0)


def test_without_matplotlib_tables_are_printed_and_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = call("accumulation-precision")
    assert "e4m3fnuz" in shown.stdout and "matplotlib>=" in shown.stderr
    refused = call("accumulation-precision", "--out", str(tmp_path / "out"), status=2)
    assert refused.stderr.count('"matplotlib>=') == 1 and not (tmp_path / "out").exists()


# Pages ------------------------------------------------------------------------------------------------------


def test_each_study_has_a_page_and_the_index_links_it() -> None:
    pages = {page.path: page for page in study_page.pages()}
    assert set(pages) == {"studies/index.md", *(f"studies/{name}.md" for name in studies.names())}
    index = pages["studies/index.md"].write()
    assert all(
        f"(site:studies/{name}.md)" in index and studies.question(name) in index for name in studies.names()
    )


def test_a_page_has_findings_figures_tables_and_the_command() -> None:
    pytest.importorskip("matplotlib")
    text = study_page.write_study("accumulation-precision")
    assert text.startswith("# Accumulation precision and rounding\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["Findings", "Figures", "Tables", "Units", "Run it"]
    assert "[Hopper](site:architectures/hopper.md)" in text and "(site:instructions/hopper/" in text
    assert "mmagold study accumulation-precision --out figures" in text
    svg = re.search(r"<figure.*?</figure>", text, re.S)
    assert svg is not None and "\n\n" not in svg[0] and "width:min(100%" in svg[0] and "#000000" not in svg[0]
