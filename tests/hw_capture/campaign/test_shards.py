"""Campaigns in shards: every tile once, whoever ran it and whoever died."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import golden
from golden.workers.pool import LOCAL_CLUSTER, workers
from golden.workers.results import Results
from hw_capture.campaign import report
from hw_capture.campaign.run import ALL_KINDS
from hw_capture.campaign.shards import FORMAT, shards_of, share

HMMA = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
TILES = 1000
WRONG = len(range(0, TILES, 7))


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import counting_shards

    return counting_shards


def shards(first=0, tiles=TILES, size=90):
    return list(shards_of(HMMA, 1, ALL_KINDS, {}, first, 128 * tiles, 128 * size))


def total(pages):
    (outcome,) = pages.outcomes
    return outcome.first_tile, outcome.next_tile, outcome.dots, outcome.mismatches


def test_shards_cover_the_tiles_once():
    made = shards()
    assert [each.first for each in made] == list(range(0, TILES, 90))
    assert sum(each.tiles for each in made) == TILES and len({each.key for each in made}) == len(made)
    assert sum(each.dots for each in made) == 128 * TILES
    assert shards()[3].key == made[3].key != shards(size=91)[3].key


def test_counters_are_merged_and_nothing_is_run_twice(tmp_path, counting):
    asked = []

    def run(shard):
        asked.append(shard)
        return counting.run(shard)

    with ThreadPoolExecutor(3) as pool:
        pages = share(shards(), pool, tmp_path, run, None)
        assert total(pages) == (0, TILES, 128 * TILES, WRONG) and len(asked) == 12
        again = share(shards(), pool, tmp_path, run, None)
        assert total(again) == total(pages) and len(asked) == 12
        more = share(shards(TILES, 500), pool, tmp_path, run, again)
        assert total(more) == (0, 1500, 128 * 1500, len(range(0, 1500, 7)))
    more.write(tmp_path / "report.json")
    assert report.load(tmp_path / "report.json").outcomes == more.outcomes


def test_a_damaged_result_is_run_again(tmp_path, counting):
    with ThreadPoolExecutor(1) as pool:
        share(shards(), pool, tmp_path, counting.run, None)
        first = shards()[0]
        path = tmp_path / f"{first.key}.json"
        stored = json.loads(path.read_text())
        stored["result"]["outcome"]["mismatches"] = 0
        path.write_text(json.dumps(stored))
        assert Results(tmp_path, FORMAT).get(first.key) is None
        assert total(share(shards(), pool, tmp_path, counting.run, None))[3] == WRONG


def test_a_worker_on_another_device_is_refused(tmp_path, counting):
    def run(shard):
        device = {"name": "another", "driver": "1.0"} if shard.first > 500 else counting.FACTS
        return counting.run(shard) | {"device": device}

    with ThreadPoolExecutor(1) as pool, pytest.raises(golden.FileFormatError, match="report of another"):
        share(shards(), pool, tmp_path, run, None)


@pytest.mark.long
@pytest.mark.parametrize("gpus", [None, 2])
def test_a_killed_worker_of_a_cluster_loses_and_doubles_nothing(tmp_path, counting, monkeypatch, gpus):
    """The first task kills its worker; with `gpus` each task takes the resource of one worker."""
    pytest.importorskip("distributed")
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("COUNTING_MARKS", str(tmp_path / "marks"))
    with workers(2, LOCAL_CLUSTER, gpus) as pool:
        pages = share(shards(), pool, tmp_path, counting.run, None)
    assert (tmp_path / "marks" / "died").exists()
    assert total(pages) == (0, TILES, 128 * TILES, WRONG)
    assert len(list(tmp_path.glob("*.json"))) == 12


def test_shards_need_a_report_next_to_which_they_lie():
    from typer.testing import CliRunner

    from golden.cli.app import app

    result = CliRunner().invoke(app, ["campaign", "HMMA.16816.F32", "--scheduler", "local"])
    assert result.exit_code == 2 and "'--out' is missing" in result.stderr
