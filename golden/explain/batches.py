"""What a batch size changes, in words: the answers of one layer by M, and every change with its cause."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from golden.kernels.invariance import BatchMap, Change, words

_VERSIONS = ("torch", "cuda", "cublas", "triton", "driver")


def device_text(device: Mapping[str, str]) -> str:
    """A GPU and its versions in a line: the library's choices may change with each of them."""
    versions = [f"{name} {device[name]}" for name in _VERSIONS if device.get(name)]
    return ", ".join([device.get("name", "GPU"), *versions])


def text(of: BatchMap) -> str:
    """All that is known of a layer, as lines."""
    name = of.layer.name + (f" ({of.layer.of})" if of.layer.of else "")
    many = len(set(of.bits))
    rows = [("M", "bits of a row", "plan", "kernels")]
    for run in of.runs:
        m = str(run.first) if run.first == run.last else f"{run.first}-{run.last}"
        bits = _letter(of.bits[run.answer])
        rows.append((m, bits, words(of.plans[run.answer], of.layer.k), _kernels(of.kernels(run))))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{name}: {f'{many} different results of one row' if many > 1 else 'the same bits for every M'}"]
    lines += [f"  {'  '.join(map(str.ljust, row, (*widths, 0)))}".rstrip() for row in rows]
    for change in of.changes:
        lines += _change(change, " + bias" if of.layer.bias else "")
    if of.recorded.seconds:
        timed = (f"{m}: {1e6 * seconds:.1f}" for m, seconds in sorted(of.recorded.seconds.items()))
        lines.append(f"microseconds of a call by M: {', '.join(timed)}")
    lines.append(f"predicted in every bit: {of.predicted} of {of.batches} M")
    return "\n".join(lines)


def _kernels(found: Sequence[Sequence[str]]) -> str:
    """The kernels of the first M, and how many others ran."""
    more = f" and {len(found) - 1} others" if len(found) > 1 else ""
    # Names of kernels can fill a page.
    shown = 64
    return ", ".join(found[0])[:shown] + more


def _letter(number: int) -> str:
    """A, B, ... Z, A1, ..."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _change(one: Change, more: str) -> list[str]:
    cancelling, normal = one.share
    shares = f"{_percent(cancelling)} of the elements change if their exact sum is zero"
    if normal is not None:
        shares += f", {_percent(normal)} of those of normal operands"
    sums = [_sum(value, parts, more) for value, parts in zip(one.values, one.sums, strict=True)]
    often = f" (and at {', '.join(map(str, one.begins[1:]))})" if len(one.begins) > 1 else ""
    return [
        f"M {one.before} to {one.after}: {one.cause}{often}",
        f"  {shares}",
        f"  element [0, {one.column}]: {sums[0]}; then {sums[1]}",
    ]


def _sum(value: float, parts: Sequence[tuple[int, int, float]], more: str) -> str:
    if len(parts) < 2:
        return f"{value:.6g}"
    return f"{value:.6g} = " + " + ".join(f"({total:.9g})" for _, _, total in parts) + more


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def as_dict(of: BatchMap) -> dict[str, Any]:
    """The same for machines."""
    return {
        "layer": of.layer.name,
        "of": of.layer.of,
        "n": of.layer.n,
        "k": of.layer.k,
        "invariant": of.invariant,
        "predicted": of.predicted,
        "batches": of.batches,
        "runs": [
            {
                "first": run.first,
                "last": run.last,
                "bits": of.bits[run.answer],
                "plan": None if (plan := of.plans[run.answer]) is None else plan.full_instruction,
                "options": {} if plan is None else plan.given,
                "words": words(plan, of.layer.k),
                "kernels": [list(names) for names in of.kernels(run)],
                "predicted": of.right[run.answer],
            }
            for run in of.runs
        ],
        "changes": [
            {
                "before": one.before,
                "after": one.after,
                "begins": list(one.begins),
                "cause": one.cause,
                "element": [0, one.column],
                "values": list(one.values),
                "sums_of_parts": [[list(part) for part in sums] for sums in one.sums],
                "share_cancelling": one.share[0],
                "share_normal": one.share[1],
            }
            for one in of.changes
        ],
        "seconds": {str(m): seconds for m, seconds in of.recorded.seconds.items()},
    }


def page(maps: Sequence[BatchMap], device: Mapping[str, str], picture: str) -> str:
    """An HTML page of its own."""
    body = "\n".join(f"<pre>{html.escape(text(one))}</pre>" for one in maps)
    title = html.escape(f"Batch sizes on {device_text(device)}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body><h1>{title}</h1>\n{picture}\n{body}\n</body></html>\n"
    )
