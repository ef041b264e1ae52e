"""Coverage as UCIS: read back by PyUCIS, every bin has the hits that it had."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.cover.coverage import Coverage, save
from golden.errors import FileFormatError
from golden.vectors.vectorset import default_set
from rtl_tb.flows.ucis import export, read_coverage


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    coverage = Coverage(golden.instruction("volta", "HMMA.884.F32.F32"))
    coverage.sample_set(default_set(coverage.instruction, 60))
    path = tmp_path_factory.mktemp("ucis") / "coverage.json"
    save([coverage], path)
    assert coverage.holes()
    return path


def test_every_bin_keeps_its_hits(saved):
    pytest.importorskip("ucis")
    from ucis import CoverageReportBuilder
    from ucis.xml.xml_factory import XmlFactory

    run = CliRunner().invoke(app, ["rtl", "ucis", str(saved), "--out", str(saved.with_suffix(".xml"))])
    assert run.exit_code == 0, run.output
    (found,) = CoverageReportBuilder.build(XmlFactory.read(str(saved.with_suffix(".xml")))).covergroups
    (wanted,) = json.loads(saved.read_text())
    groups = found.covergroups or [found]
    points = {point.name: {each.name: each.count for each in point.bins} for point in groups[0].coverpoints}
    assert points == {name: bins for name, bins in wanted["coverpoints"].items() if bins}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "another"}, "this is no saved coverage"),
        ({"coverpoints": {"class of a": {"zero": "many"}}}, "key 'zero' is \"many\", expected an integer"),
        ({"coverpoints": {"class of a": [1]}}, "a list stands where an object belongs"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_what_is_no_coverage_is_refused(saved, tmp_path, change, message):
    (coverage,) = json.loads(saved.read_text())
    (tmp_path / "c.json").write_text(json.dumps([coverage | change]))
    with pytest.raises(FileFormatError, match=message):
        read_coverage(tmp_path / "c.json")
    with pytest.raises(FileFormatError):
        export(tmp_path / "c.json", tmp_path / "c.xml")
    assert not (tmp_path / "c.xml").exists()
