"""One HTML page of functional coverage: every coverpoint of every instruction, holes first. Needs no other
host."""

from __future__ import annotations

from html import escape
from pathlib import Path

from golden.cover.coverage import Coverage
from golden.cover.points import Coverpoint
from golden.files.output import write_text

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2e9e5b; --bad: #d6455d; --dim: #888; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
code { font-size: .92em; } table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
meter { width: 9rem; } .hole { color: var(--bad); font-weight: 600; } .full { color: var(--good); }
.bins { display: flex; flex-wrap: wrap; gap: .25rem; }
.bin { border: 1px solid var(--line); border-left: 4px solid var(--good); border-radius: 3px; }
.bin { padding: 0 .45rem; font-size: .85rem; }
.bin.open { border-left-color: var(--bad); font-weight: 600; } .bin.never { border-left-color: var(--line); color: var(--dim); }
.bin b { font-weight: 400; color: var(--dim); font-variant-numeric: tabular-nums; }
summary { cursor: pointer; padding: .15rem 0; } details { border-bottom: 1px solid var(--line); }
"""  # noqa: E501


def page(coverages: list[Coverage], title: str = "Functional coverage") -> str:
    """Returns the page for one coverage an instruction (see golden.cover.coverage.merged)."""
    rows = "\n".join(_summary_row(index, coverage) for index, coverage in enumerate(coverages))
    details = "\n".join(_instruction(index, coverage) for index, coverage in enumerate(coverages))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>Bins that the formats or the program cannot reach are grey and do not count.
The number next to a bin is how often it was hit.</p>
<table><tr><th>Instruction</th><th class="n">Vectors</th><th class="n">Bins hit</th><th>Covered</th></tr>
{rows}
</table>
{details}
</body></html>
"""  # noqa: E501


def write_page(coverages: list[Coverage], path: str | Path, title: str = "Functional coverage") -> None:
    """Writes the page to a file."""
    text = page(coverages, title)
    write_text(path, text)


def _share(coverage: Coverage) -> str:
    hit, total = coverage.counts
    return "100 %" if hit == total else f"{min(coverage.percent, 99.99):.2f} %"


def _title(coverage: Coverage) -> str:
    return escape(f"{coverage.instruction.architecture} {coverage.instruction.name}")


def _summary_row(index: int, coverage: Coverage) -> str:
    hit, total = coverage.counts
    mark = "full" if hit == total else "hole"
    return (
        f'<tr><td><a href="#i{index}"><code>{_title(coverage)}</code></a></td><td '
        f'class="n">{coverage.vectors:,}</td>'
        f'<td class="n">{hit} of {total}</td>'
        f'<td><meter value="{hit}" max="{max(total, 1)}"></meter> <span '
        f'class="{mark}">{_share(coverage)}</span></td></tr>'
    )


def _instruction(index: int, coverage: Coverage) -> str:
    holes = coverage.holes()
    listed = "".join(
        f"<li><span class=hole>{escape(label)}</span> in {escape(point)}</li>" for point, label in holes
    )
    parts: dict[str, list[str]] = {}
    for point in coverage.points:
        parts.setdefault(point.part, []).append(_point(point, coverage.hits[point.name].tolist()))
    body = "".join(f"<h3>{escape(part.capitalize())}</h3>{''.join(points)}" for part, points in parts.items())
    holes_text = f"<p>Holes:</p><ul>{listed}</ul>" if holes else "<p class=full>No holes.</p>"
    return f'<h2 id="i{index}"><code>{_title(coverage)}</code></h2>{holes_text}{body}'


def _point(point: Coverpoint, hits: list[int]) -> str:
    reachable = [n > 0 for n, ok in zip(hits, point.bins.values(), strict=True) if ok or n]
    missing = len(reachable) - sum(reachable)
    cells = "".join(_bin(label, ok, n) for (label, ok), n in zip(point.bins.items(), hits, strict=True))
    state = f"<span class=hole>{missing} missing</span>" if missing else "<span class=full>full</span>"
    opened = " open" if missing else ""
    return (
        f"<details{opened}><summary>{escape(point.name)}: {sum(reachable)} of {len(reachable)}, "
        f"{state}</summary>"
        f"<div class=bins>{cells}</div></details>"
    )


def _bin(label: str, reachable: bool, hits: int) -> str:
    if not reachable and not hits:
        return f'<span class="bin never" title="cannot be reached">{escape(label)}</span>'
    return f'<span class="bin{"" if hits else " open"}">{escape(label)} <b>{hits:,}</b></span>'
