"""The plugin for pytest: a marker says which units to check, and a test fails where one differs.

    @pytest.mark.mmagold("units/*/dut.yaml", engines=["fast", "selfcheck/icarus"], seeds=3)
    def test_unit(rtl_check):
        assert rtl_check.coverage.percent > 95

The test fails where the unit is not the instruction, whatever its body says; the body runs where it is.
A unit that cannot be run is an error of the test, no failure.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rtl_tb.check.options import Options
    from rtl_tb.check.record import Check

MARKER = "mmagold"
FIXTURE = "rtl_check"
_OPTIONS = ("count", "kinds", "idle", "backpressure", "resets", "timeout_cycles", "wall_timeout")
_KNOWN = ("engines", "seeds", *_OPTIONS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the folders."""
    group = parser.getgroup("mmagold", "checks of RTL against an instruction")
    group.addoption("--mmagold-build", default="build", help="Folder for what is compiled.")
    group.addoption("--mmagold-failures", default="failures", help="Folder for capsules of failures.")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*files, {', '.join(f'{name}=' for name in _KNOWN)}): the units that the fixture "
        f"{FIXTURE} checks, one test for each unit, engine and seed",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each unit, engine and seed that the marker names."""
    if FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: {FIXTURE} needs @pytest.mark.{MARKER}(dut.yaml)"
        )
    try:
        found = _checks(metafunc.definition.path.parent, marker)
    except Exception as error:
        from golden.errors import MmagoldError

        if isinstance(error, MmagoldError):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from None
        raise
    metafunc.parametrize(
        FIXTURE, [check for _, check in found], ids=[name for name, _ in found], indirect=True
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuses a test that has the marker and does not ask for the fixture: nothing would check its units."""
    if item.get_closest_marker(MARKER) and FIXTURE not in getattr(item, "fixturenames", ()):
        raise pytest.UsageError(
            f"{item.nodeid}: it is marked {MARKER} and does not take the argument {FIXTURE}: its units would "
            "not be checked"
        )


def _checks(folder: Path, marker: pytest.Mark) -> list[tuple[str, tuple[Path, Options]]]:
    """Names of tests, and what each checks."""
    from golden.errors import OperandError, nearest
    from golden.files.inputs import elsewhere
    from golden.vectors.vectorset import shares_of
    from rtl_tb import engines
    from rtl_tb.check.options import Options
    from rtl_tb.dut.sources import matching
    from rtl_tb.engines.job import Traffic
    from rtl_tb.regress.plan import split_engine

    given = dict(marker.kwargs)
    for key in given:
        if key not in _KNOWN:
            raise OperandError(
                f"unknown argument '{key}', expected {', '.join(_KNOWN)}{nearest(key, _KNOWN)}"
            )
    chosen = given.pop("engines", ["fast"])
    seeds = given.pop("seeds", 1)
    seeds = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    if given.get("kinds") is not None:
        shares_of(given["kinds"])
    given = {"weights" if key == "kinds" else key: value for key, value in given.items()}
    files = [(pattern, matching(folder, str(pattern), ())) for pattern in marker.args]
    for pattern, matches in files or [("", [])]:
        if not matches:
            near = elsewhere(folder / str(pattern)) if pattern else ""
            raise OperandError(f"'{pattern}' is no file in {folder}, expected a dut.yaml{near}")
    found = []
    for file in dict.fromkeys(file for _, matches in files for file in matches):
        for text in [chosen] if isinstance(chosen, str) else chosen:
            engine, simulator = split_engine(text)
            engines.check_choice(engine, simulator)
            for seed in seeds:
                options = Options(engine, simulator, seed=seed, **given)
                options.traffic(Traffic())  # refuses what no run could finish
                name = f"{file.relative_to(folder) if file.is_relative_to(folder) else file}"
                found.append((f"{name}-{engine}-{simulator}-seed{seed}", (file, options)))
    if not found:
        raise OperandError("the marker names no engine, or no seed; a check of nothing proves nothing")
    return found


@pytest.fixture
def rtl_check(request: pytest.FixtureRequest) -> Check:
    """The finished check (rtl_tb.check.check.Check) of the test's unit, engine and seed."""
    from dataclasses import replace

    from golden.errors import MmagoldError
    from rtl_tb.check.check import check

    file, options = request.param
    build, failures = (Path(request.config.getoption(f"--mmagold-{name}")) for name in ("build", "failures"))
    try:
        return check(file, replace(options, build=build, failures=failures))
    except MmagoldError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Fails the test of a unit that differs before its body runs."""
    result: Any = pyfuncitem.funcargs.get(FIXTURE) if pyfuncitem.get_closest_marker(MARKER) else None
    if result is not None and not result.passed:
        pytest.fail(_story(result), pytrace=False)
    return (yield)


def _story(result: Check) -> str:
    """What `mmagold rtl check` prints."""
    from golden.explain.terminal import PlainConsole
    from rtl_tb.check.report import print_text

    text = io.StringIO()
    print_text(result.as_dict(), PlainConsole(file=text), result.example)
    return text.getvalue()
