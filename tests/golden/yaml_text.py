"""YAML to Python's values and back by libyaml where PyYAML has it: random units are read and written by the
thousand."""

from __future__ import annotations

from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read(text: str) -> Any:
    """The values of a document."""
    return yaml.load(text, _LOADER)


def written(value: Any) -> str:
    """The document, its keys in their order."""
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False))
