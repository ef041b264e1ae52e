"""The instruction sets that the core can use on this machine."""

from __future__ import annotations

from golden.model import core_library, engine


def instruction_sets() -> list[str]:
    """What MMAGOLD_SIMD can be here, the narrowest first."""
    widest = core_library.SIMD.index(engine.simd()) if engine.simd() in core_library.SIMD else 0
    return list(core_library.SIMD[: widest + 1])
