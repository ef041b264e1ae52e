"""Arguments that the commands share."""

from __future__ import annotations


def architecture(word: str) -> str:
    """The architecture that an option names: its own name (hopper), a card's (h100) or a target's (sm_90).

    Raises:
        UnknownNameError: it means none; the message names near ones.
    """
    from golden.catalog.resolver import resolver

    return resolver().called(word)
