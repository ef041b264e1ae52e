"""The plugin for pytest, in a pytest of its own."""

from __future__ import annotations

import re
import subprocess
import sys

import engine_dut as small
import pytest
from long_run import long_after

from golden.errors import MmagoldError
from rtl_tb.flows import pytest_plugin

TEST = """
import pytest

@pytest.mark.mmagold(FILES, engines="selfcheck/icarus", seeds=SEEDS, count=60)
def test_unit(rtl_check):
    print("body of", rtl_check.options.seed)
BODY
"""


def run(folder, *words):
    """A run of pytest in a folder that knows nothing of this project; (exit status, what it said)."""
    plugin = ["-p", "no:mmagold", "-p", "rtl_tb.flows.pytest_plugin"]  # installed or not
    command = [
        sys.executable,
        "-m",
        "pytest",
        *plugin,
        "-p",
        "no:cacheprovider",
        "--strict-markers",
        "-rA",
        *words,
    ]
    (folder / "pytest.ini").touch()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def suite(folder, files='"*/small.yaml"', body="", seeds=2):
    text = TEST.replace("FILES", files).replace("BODY", body).replace("SEEDS", str(seeds))
    (folder / "test_units.py").write_text(text)


@pytest.fixture(scope="module", params=long_after(1, [1, 2]))
def said(request, tmp_path_factory):
    """A unit that is right, one that is wrong, one that no simulator takes."""
    folder = tmp_path_factory.mktemp("suite")
    for name in ("right", "wrong", "broken"):
        small.write_small(folder / name)
    source = folder / "wrong" / "small.sv"
    source.write_text(source.read_text().replace("total = c;", "total = c ^ a[7];"))
    (folder / "broken" / "small.sv").write_text(small.RTL.replace("endmodule", "endmodul"))
    suite(folder, seeds=request.param)
    return folder, run(folder), request.param


def test_one_test_for_each_unit_engine_and_seed(said):
    _, (status, text), seeds = said
    errors = "1 error" if seeds == 1 else f"{seeds} errors"
    assert status == 1 and re.search(rf"{seeds} failed, {seeds} passed, {errors} in", text)
    for seed in range(1, seeds + 1):
        name = f"selfcheck-icarus-seed{seed}]"
        assert f"PASSED test_units.py::test_unit[right/small.yaml-{name}" in text
        assert f"FAILED test_units.py::test_unit[wrong/small.yaml-{name}" in text
        assert f"ERROR test_units.py::test_unit[broken/small.yaml-{name}" in text


def test_a_body_without_an_assertion_does_not_pass_a_wrong_unit(said):
    _, (_, text), seeds = said
    assert text.count("body of") == seeds and "FAIL: small against small_unit.yaml" in text
    assert "The smallest operands that fail" in text and "Traceback" not in text


@pytest.mark.long
def test_a_known_failure_is_an_xfail(said):
    folder, _, _ = said
    text = (folder / "test_units.py").read_text().replace("*/", "wrong/").replace("seeds=2", "seeds=1")
    (folder / "test_units.py").write_text(text.replace("@pytest", "@pytest.mark.xfail\n@pytest"))
    status, text = run(folder)
    assert status == 0 and "1 xfailed" in text


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        (["none/*.yaml"], {}, r"'none/\*.yaml' is no file in .*expected a dut.yaml"),
        ([], {}, "expected a dut.yaml"),
        (["small.yaml"], {"engins": ["fast"]}, "unknown argument 'engins', expected engines"),
        (["small.yaml"], {"engines": ["fast/icarus"]}, "engine 'fast' needs Verilator"),
        (["small.yaml"], {"seeds": []}, "names no engine, or no seed"),
        (["small.yaml"], {"idle": 2.0}, "traffic 'idle' is 2.0"),
        (["small.yaml"], {"kinds": {"tied": 1}}, "unknown stimulus kind 'tied'"),
    ],
)
def test_a_wrong_marker_is_reported(tmp_path, files, given, message):
    small.write_small(tmp_path)
    with pytest.raises(MmagoldError, match=message):
        pytest_plugin._checks(tmp_path, pytest.Mark("mmagold", tuple(files), given, _ispytest=True))


@pytest.mark.long
def test_a_wrong_marker_is_no_failure_of_a_test(tmp_path):
    suite(tmp_path, '"none.yaml"')
    status, text = run(tmp_path)
    assert status not in (0, 1) and "'none.yaml' is no file in" in text and "Traceback" not in text


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n@pytest.mark.mmagold('small.yaml')\ndef test_unit(): pass\n",
        "import pytest, unittest\n@pytest.mark.mmagold('small.yaml')\nclass TestUnit(unittest.TestCase):\n"
        "    def test_unit(self): pass\n",
    ],
    ids=["function", "unittest"],
)
def test_a_marker_without_the_fixture_is_no_pass(tmp_path, text):
    """Nothing would check the unit, whatever it is."""
    (tmp_path / "test_units.py").write_text(text)
    status, said = run(tmp_path)
    assert status not in (0, 1) and "does not take the argument rtl_check" in said
