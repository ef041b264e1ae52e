"""Reads pictures back: their texts with places, the ids, the cells of a fragment. Knows nothing of how
they are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

SVG = "{http://www.w3.org/2000/svg}"
INHERITED = ("text-anchor", "font-size")


@dataclass(frozen=True)
class Text:
    """One text element: its anchor point, what it inherits, the lane that it belongs to."""

    words: str
    x: float
    y: float
    anchor: str
    size: float
    lane: int | None = None

    def box(self) -> tuple[float, float, float, float]:
        """A box that the ink lies in, sides drawn in a little: left, top, right, bottom."""
        width = 0.5 * self.size * len(self.words)
        left = {"middle": self.x - width / 2, "end": self.x - width}.get(self.anchor, self.x)
        return left, self.y - 0.7 * self.size, left + width, self.y


def parse(picture: str) -> ElementTree.Element:
    """The root; raises ParseError for what is no XML."""
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    return root


def check(picture: str, name: str) -> ElementTree.Element:
    """The rules for every picture of the site: ids unique and prefixed, nothing outside, no script, no
    blank line."""
    root = parse(picture)
    ids = [item.attrib["id"] for item in root.iter() if "id" in item.attrib]
    assert len(ids) == len(set(ids))
    assert all(found.startswith(f"{name}-") for found in ids)
    assert not [item for item in root.iter() if item.tag in (f"{SVG}script", f"{SVG}image", f"{SVG}style")]
    assert "http" not in picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "\n\n" not in picture
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    for text in texts(root):
        x0, y0, x1, y1 = text.box()
        assert x0 >= -1 and x1 <= width + 1 and y0 >= -1 and y1 <= height + 1, text
    return root


def texts(root: ElementTree.Element) -> list[Text]:
    """Every text of a picture that is not blank."""
    return list(_texts(root, {}, None))


def _texts(item: ElementTree.Element, inherited: dict[str, str], lane: int | None) -> Iterator[Text]:
    given = {**inherited, **{key: item.attrib[key] for key in INHERITED if key in item.attrib}}
    lane = int(item.attrib["data-lane"]) if "data-lane" in item.attrib else lane
    if item.tag == f"{SVG}text" and (item.text or "").strip():
        place = float(item.attrib["x"]), float(item.attrib["y"])
        yield Text(
            item.text or "", *place, given.get("text-anchor", "start"), float(given["font-size"]), lane
        )
    for child in item:
        yield from _texts(child, given, lane)


def words(picture: str) -> list[str]:
    """The texts of a picture, in order."""
    return [text.words for text in texts(parse(picture))]


def overlapping(root: ElementTree.Element) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    placed = [(text.words, text.box()) for text in texts(root)]
    return [(a, b) for (a, p), (b, q) in combinations(placed, 2) if _overlap(p, q)]


def outgrown(root: ElementTree.Element, width_of: Callable[[str, float], float]) -> list[str]:
    """Texts that are wider than their box, the smallest rectangle around their centre."""
    boxes = [
        [float(item.attrib[key]) for key in ("x", "y", "width", "height")]
        for item in root.iter(f"{SVG}rect")
        if "x" in item.attrib
    ]
    found = []
    for text in texts(root):
        width = width_of(text.words, text.size)
        left = {"middle": text.x - width / 2, "end": text.x - width}.get(text.anchor, text.x)
        x, y = left + width / 2, text.y - 0.35 * text.size
        around = [box for box in boxes if 0 <= x - box[0] <= box[2] and 0 <= y - box[1] <= box[3]]
        if around:
            start, _, across, _ = min(around, key=lambda box: box[2] * box[3])
            if left < start or left + width > start + across:
                found.append(text.words)
    return found


def _overlap(p: tuple[float, float, float, float], q: tuple[float, float, float, float]) -> bool:
    return p[0] < q[2] and q[0] < p[2] and p[1] < q[3] and q[1] < p[3]
