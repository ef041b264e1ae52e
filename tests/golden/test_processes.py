"""Programs of others: when one has ended, with and without what Linux has to say it at once."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from golden.processes import ends_within, started


@pytest.mark.parametrize("with_pidfd", [True, False])
def test_whether_a_program_ends_in_time(with_pidfd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_pidfd:

        def refuses(*_: Any) -> int:
            raise OSError

        monkeypatch.setattr(os, "pidfd_open", refuses)
    quiet = subprocess.DEVNULL
    with started(["sh", "-c", "exit 3"], quiet, quiet, os.environ) as process:
        assert ends_within(process, 60) and process.returncode == 3
        assert ends_within(process, 0), "asked again, when its number may be another's"
    with started(["sleep", "60"], quiet, quiet, os.environ) as process:
        assert not ends_within(process, 0.05) and process.returncode is None
    assert process.returncode is not None
