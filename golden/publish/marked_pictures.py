"""Pictures in hand-written pages: <!-- picture: datapath hopper:HMMA.16816.F32 --> becomes the picture in the
site, and is nothing where the page is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from golden.catalog.lookup import resolve
from golden.errors import DocsError, nearest
from golden.explain.markdown import figure
from golden.instruction import Instruction
from golden.publish.pictures import datapath, tree

_MARK = re.compile(r"^<!-- picture: (?P<kind>\S+) (?P<name>\S+) -->$", re.M)
KINDS: dict[str, tuple[Callable[[Instruction], str], str]] = {
    "datapath": (
        datapath.datapath,
        "Datapath of {name} on {architecture}, with the width of every register.",
    ),
    "tree": (tree.summation_tree, "The order in which {name} on {architecture} adds."),
}


def drawn(text: str, page: str) -> str:
    """The page with its pictures.

    Raises:
        DocsError: a kind of picture that there is not. UnknownNameError: an instruction that there is not.
    """

    def picture(match: re.Match[str]) -> str:
        if match["kind"] not in KINDS:
            raise DocsError(
                f"{page}: picture '{match['kind']}' is unknown, expected {' or '.join(KINDS)}"
                f"{nearest(match['kind'], KINDS)}"
            )
        draw, caption = KINDS[match["kind"]]
        ins = resolve(match["name"])
        return figure(draw(ins), caption.format(name=ins.name, architecture=ins.architecture))

    return _MARK.sub(picture, text)
