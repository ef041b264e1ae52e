"""Functional coverage as a UCIS database in XML, for the coverage tools of simulators; written by PyUCIS.

Each instruction is an instance with one covergroup; coverpoints and bins have the names that they have here,
and a bin that cannot be reached is not in it. UCIS tools take the mean over coverpoints, this project the
share of all bins: 100 % is the same in both.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from golden.cover.coverage import FORMAT
from golden.errors import FileFormatError, pip_install
from golden.files.inputs import check_keys, read_json
from golden.files.output import write_whole
from rtl_tb.errors import RtlError

_KEYS = {
    "format": str,
    "instruction": dict,
    "vectors": int,
    "bins_hit": int,
    "bins_reachable": int,
    "coverpoints": dict,
}


def export(saved: Path, target: Path) -> int:
    """Writes saved coverage as UCIS XML, and returns how many instructions it is of.

    Raises:
        FileFormatError: `saved` is no saved coverage, or `target` cannot be written.
        RtlError: PyUCIS is not installed.
    """
    coverages = read_coverage(saved)
    try:
        from ucis.xml.xml_factory import XmlFactory
    except ImportError:
        raise RtlError(f"UCIS needs PyUCIS; install it with: {pip_install('ucis')}") from None
    database = _database(coverages, saved)
    with tempfile.TemporaryDirectory(prefix="mmagold_ucis_") as name:
        made = Path(name) / "coverage.xml"
        XmlFactory.write(database, str(made))
        content = made.read_bytes()
    write_whole(target, lambda stream: stream.write(content))
    return len(coverages)


def read_coverage(path: Path) -> list[dict[str, Any]]:
    """Saved coverage as plain values: bins that can be reached, by coverpoint, with their hits.

    Raises:
        FileFormatError: the file holds something else.
    """
    coverages = read_json(path)
    if not isinstance(coverages, list):
        raise FileFormatError(f"{path}: expected a list of saved coverages")
    for number, coverage in enumerate(coverages):
        where = f"{path}: coverage {number}"
        check_keys(coverage, _KEYS, where)
        if coverage["format"] != FORMAT:
            raise FileFormatError(f"{where}: this is no saved coverage, expected format '{FORMAT}'")
        check_keys(coverage["instruction"], {"architecture": str, "name": str}, f"{where}: instruction")
        for point, bins in coverage["coverpoints"].items():
            check_keys(bins, dict.fromkeys(bins if isinstance(bins, dict) else (), int), f"{where}: {point}")
    return coverages


def _database(coverages: list[dict[str, Any]], saved: Path) -> Any:
    import ucis
    from ucis.history_node_kind import HistoryNodeKind
    from ucis.mem.mem_factory import MemFactory
    from ucis.source_info import SourceInfo
    from ucis.test_data import TestData

    database = MemFactory.create()
    node = database.createHistoryNode(None, saved.stem, str(saved), HistoryNodeKind.TEST)
    date = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    node.setTestData(TestData(teststatus=ucis.UCIS_TESTSTATUS_OK, toolcategory="mmagold", date=date))
    where = SourceInfo(database.createFileHandle(saved.name, str(saved.parent)), 1, 1)
    flags = ucis.UCIS_ENABLED_STMT | ucis.UCIS_INST_ONCE | ucis.UCIS_SCOPE_UNDER_DU
    for coverage in coverages:
        name = f"{coverage['instruction']['architecture']}:{coverage['instruction']['name']}"
        unit = database.createScope(name, where, 1, ucis.UCIS_OTHER, ucis.UCIS_DU_MODULE, flags)
        kind = ucis.UCIS_INSTANCE
        place = database.createInstance(name, where, 1, ucis.UCIS_OTHER, kind, unit, ucis.UCIS_INST_ONCE)
        group = place.createCovergroup("vectors", where, 1, ucis.UCIS_OTHER)
        instance = group.createCoverInstance("vectors", where, 1, ucis.UCIS_OTHER)
        for point, bins in coverage["coverpoints"].items():
            if bins:  # none can be reached
                made = instance.createCoverpoint(point, where, 1, ucis.UCIS_OTHER)
                for label, hits in bins.items():
                    made.createBin(label, where, 1, hits, label, ucis.UCIS_CVGBIN)
    return database
