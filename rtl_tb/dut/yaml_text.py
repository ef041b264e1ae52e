"""Values as a draft of a dut.yaml writes them: on one line, as a person would."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml


def scalar(text: str) -> str:
    """A text as a value in YAML, also inside brackets: quoted where it would mean something else (on, 1e3,
    "a, b.sv")."""
    plain = re.fullmatch(r"[\w./$+-]+( [\w./$+-]+)*", text, re.ASCII) and yaml.safe_load(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)


def flow(value: Any) -> str:
    """A value on one line: `{valid: {port: vld_n, active: low}, beats: 4}`."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return scalar(value)
        case Mapping():
            return f"{{{', '.join(f'{scalar(key)}: {flow(each)}' for key, each in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(flow, value))}]"
        case _:
            return str(value)
