"""Regressions: what is run, what is used again and what must not be, workers that are killed, and reports."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import engine_dut as small
import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from golden.cli.app import app
from golden.errors import FileFormatError, SpecError, WorkerError
from golden.explain.terminal import PlainConsole
from golden.vectors import vectorset
from golden.vectors.vectorset import default_set
from golden.workers import pool
from rtl_tb.regress import fingerprints, runner
from rtl_tb.regress.fingerprints import simulator_digest, unit_state
from rtl_tb.regress.plan import load_plan
from rtl_tb.regress.report import junit, page, print_text
from rtl_tb.regress.runner import Store, regress
from rtl_tb.regress.shard import run_shard
from rtl_tb.regress.summary import add_to_history, coverages, summary

ICARUS = {"engine": "selfcheck", "sim": "icarus", "count": 100}
MANY = ICARUS | {"count": 16600, "shard": 100}
SHORT = ICARUS | {"count": 700, "shard": 100}
"""Two shards each: one block of the stream, and what is left. SHORT: with the blocks of `here`."""


def plan(folder, **keys):
    """A regress.yaml of the small unit."""
    if not (folder / "small.yaml").exists():
        small.write_small(folder)
    keys = {"units": ["small.yaml"], "engines": [ICARUS]} | keys
    (folder / "regress.yaml").write_text(yaml.safe_dump(keys))
    return folder / "regress.yaml"


@pytest.fixture
def here(monkeypatch):
    """The worker is a thread of this process, since a process takes a second to start; blocks are short."""

    @contextlib.contextmanager
    def workers(_jobs, _scheduler):
        with ThreadPoolExecutor(1) as executor:
            yield executor

    monkeypatch.setattr(runner, "workers", workers)
    monkeypatch.setattr(vectorset, "_BLOCK", 512)


def data_of(result):
    return summary(result, coverages(result))


# The plan ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"units": []}, "key 'units' is an empty list"),
        ({"units": ["smal.yaml"]}, r"'smal.yaml' is no file in .*small.yaml"),
        ({"units": ["small.yaml", "sm*.yaml"]}, "is named twice"),
        ({"engines": ["slow"]}, "key 'engines' holds 'slow', expected one of fast, .*selfcheck"),
        ({"engines": ["fast/icarus"]}, "engine 'fast' needs Verilator"),
        ({"engines": ["fast", "fast/verilator"]}, "holds fast/verilator twice"),
        ({"engines": [{"engine": "fast", "idle": 1.5}]}, "traffic 'idle' is 1.5"),
        ({"engines": [{"engine": "fast", "counts": 5}]}, "unknown key 'counts'.*count"),
        ({"kinds": {"ties": {"tied": 2}}}, "key 'tied', expected one of .*tie"),
        ({"seeds": [1, 1]}, "key 'seeds' holds 1 twice"),
        ({"seeds": 0}, "key 'seeds' is 0"),
        ({"unit": ["small.yaml"]}, "unknown key 'unit'"),
    ],
)
def test_a_wrong_plan_names_the_key(tmp_path, keys, message):
    with pytest.raises(SpecError, match=message):
        load_plan(plan(tmp_path, **keys))


def test_a_unit_may_have_engines_kinds_and_seeds_of_its_own(tmp_path):
    own = {"dut": "small.yaml", "engines": [ICARUS], "kinds": {"ties": {"tie": 1}}, "seeds": [7]}
    (unit,) = load_plan(plan(tmp_path, units=[own], engines=["fast"], seeds=3)).units
    assert [engine.name for engine in unit.engines] == ["selfcheck/icarus"]
    assert unit.kinds == {"ties": {"tie": 1.0}} and unit.seeds == (7,)


def test_two_units_of_one_name_are_distinguished_and_must_not_share_coverage(tmp_path):
    file = plan(tmp_path, units=["small.yaml", "other/small.yaml"])
    small.write_small(tmp_path / "other")
    assert [unit.name for unit in load_plan(file).units] == ["small.yaml", "other/small.yaml"]
    small.write_small(tmp_path / "third")
    (tmp_path / "third" / "small.yaml").write_text(small.DUT.replace("dut: small", "dut: small.yaml"))
    (tmp_path / "regress.yaml").write_text("units: [small.yaml, other/small.yaml, third/small.yaml]")
    assert [unit.name for unit in load_plan(file).units][2] == "third/small.yaml"
    text = small.UNIT.replace("k: 4", "k: 2")
    (tmp_path / "other" / "small_unit.yaml").write_text(text)
    with pytest.raises(SpecError, match="its unit is called small, and another one"):
        load_plan(file)


# Results ----------------------------------------------------------------------------------------------------


def test_every_vector_is_run_once_and_a_rerun_runs_none(tmp_path, here):
    file = plan(tmp_path, engines=[SHORT], seeds=[3])
    result = regress(file, tmp_path / "out")
    ranges = {(shard.seed, shard.first, shard.count) for shard in result.shards}
    assert ranges == {(3, 0, 512), (3, 512, 188)}
    data = data_of(result)
    assert (data["status"], data["vectors"], data["run"], data["reused"]) == (0, 700, 2, 0)
    kinds = [row for shard in result.shards for row in result.of(shard)["kinds"]]
    assert sum(row["tried"] for row in kinds) == 700
    (coverage,) = coverages(result)
    assert coverage.vectors == 700
    again = data_of(regress(file, tmp_path / "out"))
    assert (again["status"], again["vectors"], again["run"], again["reused"]) == (0, 700, 0, 2)


@pytest.mark.long
def test_another_seed_runs_its_own_shards_alone(tmp_path, here):
    for seeds, counts in (([3], (700, 2, 0)), ([3, 4], (1400, 2, 2))):
        data = data_of(regress(plan(tmp_path, engines=[SHORT], seeds=seeds), tmp_path / "out"))
        assert (data["vectors"], data["run"], data["reused"]) == counts


@pytest.mark.long
def test_a_shard_has_the_vectors_of_its_place_in_the_stream(tmp_path, here):
    """The fault is on vector 520 of the stream of seed 3, which the second shard has."""
    dut = small.write_small(tmp_path)
    wanted = default_set(dut.instruction, 700, 3)
    c, a, b = (wanted.operands[name] for name in "cab")
    assert ((c == c[520]) & (a == a[520]).all(axis=1) & (b == b[520]).all(axis=1)).sum() == 1
    x, y = (int.from_bytes(codes[520].tobytes(), "little") for codes in (a, b))
    text = small.RTL.replace("if (marked && c[3:0] == 7)", f"if (c == {c[520]} && a == {x} && b == {y})")
    (tmp_path / "small.sv").write_text(text)
    result = regress(plan(tmp_path, engines=[SHORT], seeds=[3]), tmp_path / "out")
    (shard,) = result.failing
    assert (shard.first, shard.count) == (512, 188) and result.status == 1
    (failure,) = result.of(shard)["first_failures"]
    assert failure["vector"] == 8 and failure["operands"]["c"] == [c[520]]
    assert int(failure["expected"], 16) == int(wanted.d[520])
    words = result.of(shard)["repeat"].split()
    run = CliRunner().invoke(app, [*words[1:], "--failures", str(tmp_path / "f"), "--json"])
    assert run.exit_code == 1 and json.loads(run.stdout)["wrong"] == 1


def edit_rtl(folder):
    (folder / "small.sv").write_text((folder / "small.sv").read_text() + "// saved\n")


def edit_header(folder):
    (folder / "far" / "part.svh").write_text("// another header\n")


def edit_unit(folder):
    (folder / "small_unit.yaml").write_text(small.UNIT + "title: another\n")


def edit_description(folder):
    (folder / "small.yaml").write_text((folder / "small.yaml").read_text() + "compare: {zero: any}\n")


def nearer_header(folder):
    """A header of the same name in an earlier include folder."""
    (folder / "near" / "part.svh").write_text("// nearer\n")


EDITS = [edit_rtl, edit_header, edit_unit, edit_description, nearer_header]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_whatever_changes_in_a_unit_changes_its_digest(tmp_path, edit):
    small.write_small(tmp_path)
    for name in ("near", "far"):  # a file next to the source would come first
        (tmp_path / name).mkdir()
    (tmp_path / "far" / "part.svh").write_text("// a header\n")
    (tmp_path / "small.sv").write_text('`include "part.svh"\n' + small.RTL)
    description = small.DUT.replace("sources:", "include: [near, far]\nsources:")
    (tmp_path / "small.yaml").write_text(description)
    before = unit_state(small.load_dut(tmp_path / "small.yaml"), "icarus").digest
    assert unit_state(small.load_dut(tmp_path / "small.yaml"), "icarus").digest == before
    edit(tmp_path)
    assert unit_state(small.load_dut(tmp_path / "small.yaml"), "icarus").digest != before


def test_a_header_that_the_other_simulator_alone_finds_counts_too(tmp_path):
    """Verilator looks into the include folders first, Icarus into the folder of the source."""
    small.write_small(tmp_path)
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "part.svh").write_text("// a header\n")
    (tmp_path / "small.sv").write_text('`include "part.svh"\n' + small.RTL)
    (tmp_path / "small.yaml").write_text(small.DUT.replace("sources:", "include: [far]\nsources:"))
    dut = small.load_dut(tmp_path / "small.yaml")
    before = unit_state(dut, "verilator").digest
    (tmp_path / "part.svh").write_text("// another header\n")
    assert unit_state(dut, "verilator").digest != before


def test_the_simulator_that_tries_more_than_the_other_counts_too(monkeypatch):
    """Units that pass on one of them run on the other as well."""
    before = {name: simulator_digest(name) for name in ("icarus", "verilator")}
    monkeypatch.setenv("MMAGOLD_VERILATOR", "nowhere")
    assert simulator_digest("icarus") != before["icarus"]
    monkeypatch.undo()
    monkeypatch.setenv("MMAGOLD_IVERILOG", "nowhere")
    assert simulator_digest("verilator") != before["verilator"]


def test_a_result_without_the_netlist_is_none_where_yosys_is(monkeypatch):
    """A unit that passes may fail as a netlist."""
    before = {name: simulator_digest(name) for name in ("icarus", "verilator")}
    monkeypatch.setenv("MMAGOLD_YOSYS", "nowhere")
    assert all(simulator_digest(name) != digest for name, digest in before.items())


@pytest.mark.long
def test_a_unit_that_may_read_other_files_is_run_every_time(tmp_path, here):
    small.write_small(tmp_path)
    text = small.RTL.replace(
        "initial {", 'reg [7:0] rom [0:1]; initial if (0) $readmemh("rom", rom); initial {'
    )
    (tmp_path / "small.sv").write_text(text)
    for _ in range(2):
        data = data_of(regress(plan(tmp_path), tmp_path / "out"))
        assert (data["status"], data["run"], data["reused"]) == (0, 1, 0)


def test_what_a_header_of_any_name_reads_is_in_no_list(tmp_path):
    small.write_small(tmp_path)
    (tmp_path / "part.inc").write_text("// a header\n")
    (tmp_path / "small.sv").write_text('`include "part.inc"\n' + small.RTL)
    (tmp_path / "small.yaml").write_text(small.DUT.replace("sources:", "include: [.]\nsources:"))
    dut = small.load_dut(tmp_path / "small.yaml")
    assert unit_state(dut, "icarus").listed
    (tmp_path / "part.inc").write_text("`define FILL $readmemh\n")
    assert not unit_state(dut, "icarus").listed


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ('FILE table : text OPEN read_mode IS "t";', True),
        ('file one, other : text open read_mode is "t";', True),
        ("file -- a table\n  \\t t\\ : text;", True),
        ('report "--"; file table : text;', True),
        ("ATTRIBUTE FOREIGN OF f : FUNCTION IS x;", True),
        ("-- this file holds: a table\nsignal profile : bit;", False),
    ],
)
def test_files_that_vhdl_reads_are_in_no_list(tmp_path, text, more):
    (tmp_path / "unit.vhd").write_text(text)
    assert fingerprints._reads_more(tmp_path / "unit.vhd") == more


@pytest.mark.long
def test_what_the_verdict_of_a_unit_leaves_open_stands_in_every_report(tmp_path, here):
    small.write_small(tmp_path)
    cell = "`ifdef SYNTHESIS\nvendor_cell theirs ();\n`endif\nendmodule"
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", cell))
    data = data_of(regress(plan(tmp_path), tmp_path / "out"))
    console = Console(record=True, width=400)
    print_text(data, tmp_path, console)
    reports = ("\n".join(data["rows"][0]["notes"]), junit(data), page(data, [data]), console.export_text())
    for text in reports:
        assert "vendor_cell" in text and "initial values of signals" in text


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-40])


def another_verdict(file):
    found = json.loads(file.read_text())
    found["result"] |= {"passed": True, "wrong": 0}
    file.write_text(json.dumps(found))


def of_another_shard(file):
    found = json.loads(file.read_text())
    file.write_text(json.dumps(found | {"key": "0" * 32}))


@pytest.mark.parametrize(
    "damage", [cut_short, another_verdict, of_another_shard], ids=lambda each: each.__name__
)
def test_a_damaged_result_is_none(tmp_path, damage):
    state = unit_state(small.write_small(tmp_path), "icarus")
    (unit,) = load_plan(plan(tmp_path)).units
    (shard,) = runner._shards(unit, unit.engines[0], state)
    store = Store(tmp_path / "out")
    with store.opened():
        store.put(shard, {"passed": False, "wrong": 3})
        assert store.get(shard) == {"passed": False, "wrong": 3}
        assert store.get(replace(shard, seed=9)) is None
        (file,) = (tmp_path / "out" / "shards").iterdir()
        damage(file)
        assert store.get(shard) is None
        with pytest.raises(ValueError, match="an error is no result"):
            store.put(shard, {"error": "it hangs"})


def test_a_unit_that_changes_while_it_is_run_has_no_result(tmp_path):
    state = unit_state(small.write_small(tmp_path), "icarus")
    (unit,) = load_plan(plan(tmp_path)).units
    (shard,) = runner._shards(unit, unit.engines[0], state)
    assert run_shard(replace(shard, code="0"), str(tmp_path / "build"))["error"].count("another mmagold") == 1
    edit_rtl(tmp_path)
    assert "was changed while the regression ran" in run_shard(shard, str(tmp_path / "build"))["error"]


def test_a_process_with_old_code_has_no_result(tmp_path, monkeypatch):
    """A worker of a cluster lives on while its files are replaced: what it runs is not what they say."""
    state = unit_state(small.write_small(tmp_path), "icarus")
    (unit,) = load_plan(plan(tmp_path)).units
    (shard,) = runner._shards(unit, unit.engines[0], state)
    stamps = dict(fingerprints._stamps())
    newer = next(iter(stamps))
    monkeypatch.setattr(fingerprints, "_stamps", lambda: stamps | {newer: (0,)})
    assert "had it loaded" in run_shard(shard, str(tmp_path / "build"))["error"]


def test_one_regression_at_a_time_in_a_folder(tmp_path):
    with (
        Store(tmp_path).opened(),
        pytest.raises(FileFormatError, match="another run"),
        Store(tmp_path).opened(),
    ):
        pass


# Failures, errors, reports ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A unit that is right, one that is wrong, one that does not compile; through the command."""
    folder = tmp_path_factory.mktemp("mixed")
    for name in ("right", "wrong", "broken"):
        small.write_small(folder / name)
        description = folder / name / "small.yaml"
        description.write_text(description.read_text().replace("dut: small", f"dut: {name}"))
    source = folder / "wrong" / "small.sv"
    source.write_text(source.read_text().replace("total = c;", "total = c ^ a[7];"))
    (folder / "broken" / "small.sv").write_text(small.RTL.replace("endmodule", "endmodul"))
    file = plan(folder, units=["*/small.yaml"], seeds=2)
    words = ["rtl", "regress", str(file), "--out", str(folder / "out"), "--jobs", "1"]
    runs = []
    for _ in range(2):
        runs.append(CliRunner().invoke(app, [*words, "--json"]))
    return folder, runs, words


@pytest.mark.long
def test_what_differs_is_1_and_what_cannot_be_run_does_not_hide_it(mixed):
    _, runs, _ = mixed
    assert [run.exit_code for run in runs] == [1, 1], runs[0].output
    data = json.loads(runs[0].stdout)
    rows = {row["unit"]: row for row in data["rows"]}
    assert (rows["right"]["failing"], rows["right"]["errors"], rows["right"]["vectors"]) == (0, 0, 200)
    assert rows["wrong"]["failing"] == 2 and rows["wrong"]["errors"] == 0
    assert rows["broken"]["errors"] == 1 and "small.sv" in rows["broken"]["error"]
    again = json.loads(runs[1].stdout)
    assert (again["run"], again["reused"]) == (0, 4) and again["failing"] == 2
    assert rows["wrong"]["reason"] == {row["unit"]: row for row in again["rows"]}["wrong"]["reason"]


def test_the_trace_stands_once_and_each_case_says_how_many_fail(mixed):
    folder, runs, _ = mixed
    root = ElementTree.parse(folder / "out" / "junit.xml").getroot()
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    wrong = suites["wrong.selfcheck.icarus"]
    assert (wrong.get("tests"), wrong.get("failures"), wrong.get("errors")) == ("2", "2", "0")
    row = next(row for row in json.loads(runs[0].stdout)["rows"] if row["unit"] == "wrong")
    trace = row["reason"]["trace"]
    assert trace in wrong.find("system-out").text
    assert (folder / "out" / "junit.xml").read_text().count(trace.splitlines()[1]) == 1
    counts = [case.find("failure").get("message").split(" ")[0] for case in wrong.iter("testcase")]
    assert sum(map(int, counts)) == row["failed_vectors"]
    assert suites["right.selfcheck.icarus"].get("failures") == "0"
    assert suites["broken.selfcheck.icarus"].find("testcase/error") is not None


def test_the_page_shows_the_failure_and_the_trend(mixed):
    folder, _, words = mixed
    text = (folder / "out" / "index.html").read_text()
    assert "wrong on selfcheck/icarus: 2 of 2 fail" in text and "Trend of 2 runs" in text
    assert text.count("<polyline") == 4 and "broken on selfcheck/icarus could not be run" in text
    assert json.loads((folder / "out" / "coverage.json").read_text())[0]["vectors"] == 400
    said = CliRunner().invoke(app, words).stdout
    capsule = next(folder.glob("out/failures/*"))
    assert said.startswith(
        "FAIL: regress: 400 vectors in 4 shards (4 of them from earlier runs): 2 shards fail"
    )
    assert str(capsule) in said.replace("\n", "")


@pytest.mark.long
def test_nothing_that_differs_but_something_that_cannot_be_run_is_2(mixed):
    folder, _, _ = mixed
    file = plan(folder / "right", units=["small.yaml", "../broken/small.yaml"])
    run = CliRunner().invoke(app, ["rtl", "regress", str(file), "--out", str(folder / "2"), "--jobs", "1"])
    assert run.exit_code == 2 and run.stdout.startswith(
        "ERROR: regress: 100 vectors in 1 shards: 1 could not"
    )


def test_a_failure_that_does_not_repeat_still_fails(mixed):
    data = json.loads(mixed[1][0].stdout)
    row = next(row for row in data["rows"] if row["unit"] == "wrong")
    row["reason"] = {"sentence": "passes when it is run again", "trace": None, "capsule": None}
    root = ElementTree.fromstring(junit(data).partition("\n")[2])
    assert len(root.findall(".//failure")) == 2
    assert "passes when it is run again" in page(data, [data | {"units": {}}])


def test_names_with_markup_do_no_harm(mixed):
    data = json.loads(mixed[1][0].stdout)
    data["regress"] = "<script>x</script>"
    text = page(data, [data])
    assert "<script>" not in text
    ElementTree.fromstring(junit(data).partition("\n")[2])


def test_no_line_is_cut_where_nobody_looks(mixed):
    data = json.loads(mixed[1][0].stdout)
    data["rows"][0]["unit"] = "a_unit_with_a_name_that_is_longer_than_most_names_of_units_are_but_not_by_much"
    text = io.StringIO()
    print_text(data, Path("out"), PlainConsole(file=text))
    (line,) = [line for line in text.getvalue().splitlines() if line.endswith("not run")]
    assert line.startswith(data["rows"][0]["unit"]) and "selfcheck  icarus" in line


def test_a_history_of_somebody_else_stays(tmp_path):
    (tmp_path / "history.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(FileFormatError, match="no history of regressions"):
        add_to_history(tmp_path, {})


# Workers that die -------------------------------------------------------------------------------------------


def test_a_worker_that_dies_takes_no_other_task_along(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import dying

    with pool.workers(2) as executor:
        always = executor.submit(dying.die, str(tmp_path))
        once = executor.submit(dying.die, str(tmp_path / "mark"))
        others = [executor.submit(dying.double, number) for number in range(4)]
        assert [future.result() for future in others] == [0, 2, 4, 6]
        assert once.result() > 0
        with pytest.raises(WorkerError, match="the worker was killed each of the 3 times"):
            always.result()


def workers_of(number):
    """The processes that the regression of that number started as workers."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == number and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def running():
    """Processes that are not finished."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def started(folder, *words):
    command = [sys.executable, "-m", "mmagold", "rtl", "regress", str(folder / "regress.yaml"), *words]
    return subprocess.Popen(
        [*command, "--out", str(folder / "out"), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for the workers in /proc")
def test_a_killed_worker_and_a_killed_regression_lose_and_double_nothing(tmp_path):
    plan(tmp_path, engines=[MANY], seeds=2)
    shards = tmp_path / "out" / "shards"
    first = started(tmp_path, "--jobs", "1")
    until(lambda: list(shards.glob("*.json")))
    (worker,) = workers_of(first.pid)
    first.kill()
    first.communicate()
    until(lambda: worker not in running())
    done = len(list(shards.glob("*.json")))
    assert 1 <= done < 4
    second = started(tmp_path, "--jobs", "2")
    until(lambda: len(list(shards.glob("*.json"))) > done and len(workers_of(second.pid)) == 2)
    os.kill(workers_of(second.pid)[0], signal.SIGKILL)
    said, errors = second.communicate(timeout=300)
    assert second.returncode == 0, errors.decode()
    data = json.loads(said)
    assert (data["shards"], data["reused"], data["run"], data["vectors"]) == (
        4,
        done,
        4 - done,
        2 * MANY["count"],
    )
    (coverage,) = json.loads((tmp_path / "out" / "coverage.json").read_text())
    assert coverage["vectors"] == 2 * MANY["count"] and len(list(shards.glob("*.json"))) == 4


def test_an_address_that_is_none_is_refused(tmp_path):
    pytest.importorskip("distributed")
    with (
        pytest.raises(WorkerError, match="expected an address such as host:8786"),
        pool.workers(1, "nowhere"),
    ):
        pass


@pytest.mark.long
def test_a_cluster_gives_the_same_results(tmp_path):
    pytest.importorskip("distributed")
    file = plan(tmp_path, engines=[MANY], seeds=2)
    here = data_of(regress(file, tmp_path / "here", 1))
    there = data_of(regress(file, tmp_path / "there", 2, "local"))
    assert (here["status"], here["vectors"]) == (there["status"], there["vectors"]) == (0, 16800)
    assert here["coverage"] == there["coverage"]
