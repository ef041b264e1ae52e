"""What a black box does: probes, properties, hypotheses, diagnosis, minimising, comparing; and the dissection
(`blackbox`), which is `golden.dissect(...)`: the package can be called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from golden.dissect.blackbox.found import Found


class _Callable(ModuleType):
    """The package as a function too: a submodule that is imported would hide a function of its name."""

    def __call__(self, box: Any, *given: Any, **options: Any) -> Found:
        """See `golden.dissect.blackbox.dissecting.dissect`."""
        from golden.dissect.blackbox.dissecting import dissect

        return dissect(box, *given, **options)


sys.modules[__name__].__class__ = _Callable
