"""Why to believe a page: captured vectors with counts and hashes, campaigns, papers;
and the measured times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from golden.catalog.evidence_file import check_report
from golden.explain.markdown import figure, link
from golden.explain.specification import evidence_text, sources_text
from golden.files.inputs import read_json
from golden.model.instruction import Instruction
from golden.paths import docs_folder
from golden.publish.computation import notes
from golden.publish.dot_text import name_argument
from golden.publish.families import Group
from golden.publish.templating import render
from golden.publish.variants import LISTED, captured_entry, manifest
from golden.vectors import captured

# Evidence ---------------------------------------------------------------------------------------------------


def evidence(group: Group) -> str:
    """Captured vectors, campaigns, published tables, sources, and the commands that make more."""
    ins, runs = group.representative, list(_campaign_rows(group))
    return render(
        "evidence",
        custom=evidence_text(ins) if ins.is_custom else "",
        kinds=_kinds(group),
        vectors=_vectors(group),
        campaigns=[row for row, _ in runs],
        tried=sum(run["dots"] for _, run in runs),
        wrong=sum(run["mismatches"] for _, run in runs),
        sources=sources_text(ins),
        notes=notes(ins),
        name=name_argument(ins),
        slug=group.slug,
        recordable=group.architecture in _recordable(),
        architecture=ins.architecture,
        pattern=ins.name.replace(".", r"\."),
        limit=LISTED,
    )


_MEANING = {
    "captured": "recorded on hardware; the vectors are in this repository and the model gives every one of "
    "them bit for bit",
    "published": "the rule is in a publication; no vectors of this architecture are in this repository",
    "derived": "argued from other instructions or from compiled code; no vectors of this architecture are "
    "in this repository",
}


def _kinds(group: Group) -> list[list[str]]:
    found = Counter((ins.evidence.kind, " ".join(ins.evidence.source.split())) for ins in group.variants)
    return [[kind, str(count), _MEANING[kind], source] for (kind, source), count in found.items()]


def _vectors(group: Group) -> dict[str, Any] | None:
    """The recorded files of the variants; None where nothing was recorded."""
    entries = [entry for ins in group.variants if (entry := captured_entry(ins)) is not None]
    if not entries:
        return None
    about = manifest(group.architecture)
    return {
        "total": sum(entry["dots"] for entry in entries),
        "device": captured.device_text(about["device"]),
        "date": about["date"],
        "list": f"vectors/{group.architecture}/index.md",
        "rows": [
            [
                link(f"`{entry['file']}`", f"vectors/{group.architecture}/{entry['file']}"),
                f"{entry['tiles']:,}",
                f"{entry['dots']:,}",
                f"`{entry['sha256']}`",
            ]
            for entry in entries
        ],
    }


@cache
def campaigns() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """What was compared on GPUs without being recorded, by "architecture:instruction":
    (device, campaign) each."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path in sorted((docs_folder() / "campaigns").glob("*.json")):
        if path.stem.endswith("_faults"):  # runs with a planted fault, to show that a fault is found
            continue
        report = read_json(check_report(path))
        for campaign in report["campaigns"]:
            key = f"{campaign['architecture']}:{campaign['instruction']}"
            found.setdefault(key, []).append((report["device"]["name"], campaign))
    return found


def _campaign_rows(group: Group) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """A row for each campaign of the variants, and what its report says."""
    for ins in group.variants:
        for device, run in campaigns().get(f"{ins.architecture}:{ins.name}", []):
            counts = (f"{run['dots']:,}", f"{run['mismatches']:,}")
            yield [f"`{ins.name}`", run["kind"], *counts, device], run


def _recordable() -> tuple[str, ...]:
    """Architectures that the capture kernels can be compiled for."""
    from golden.catalog import architectures

    return tuple(
        name
        for name in architectures.architectures()
        if any(entry.family.fixed.kernel for entry in architectures.get_architecture(name).entries)
    )


# Timing -----------------------------------------------------------------------------------------------------


@cache
def _timings() -> dict[tuple[str, str], list[Any]]:
    """Every figure of spec/timing by architecture and instruction; not those of papers' experiments, which
    stand next to a board's own."""
    from golden.catalog import timing as tables

    found: dict[tuple[str, str], list[Any]] = {}
    for name in (name for name in tables.names() if not tables.experiment(name)):
        for one in tables.load(name):
            found.setdefault((one.architecture, one.instruction), []).append(one)
    return found


def figures(ins: Instruction) -> list[Any]:
    """The timing figures of an instruction (golden.catalog.timing.Figure)."""
    return _timings().get((ins.architecture, ins.name), [])


def timing(group: Group) -> str:
    """Latency, interval and best throughput of every variant that was measured, and one plot; empty where
    nothing is known."""
    rows = [row for ins in group.variants for row in _timing_rows(ins)]
    if not rows:
        return ""
    sources = dict.fromkeys((one.device, one.source) for ins in group.variants for one in figures(ins))
    return render("instruction_timing", rows=rows, sources=list(sources), plot=_plot(group), limit=LISTED)


def _timing_rows(ins: Instruction) -> list[tuple[str, ...]]:
    by_source: dict[tuple[str, str, str], list[Any]] = {}
    for one in figures(ins):
        variant = one.key.variant if one.key.variant in ("SS", "RS") else ""
        by_source.setdefault((one.device, one.source, variant), []).append(one)
    rows = []
    for (device, _, variant), found in by_source.items():
        plain = [one for one in found if one.key.variant == variant]
        best = max(
            (one for one in plain if one.quantity == "throughput" and one.high),
            key=lambda one: one.high,
            default=None,
        )
        at = f"{best.warps} warps, ILP {best.ilp}" if best is not None and best.warps else ""
        name = f"`{ins.name}`" + (f" ({variant})" if variant else "")
        peak = f"{best.high:,.1f} {best.unit}" if best is not None else ""
        rows.append(
            (name, device, _one(plain, "completion_latency"), _one(plain, "issue_interval"), peak, at)
        )
    return [row for row in rows if any(row[2:5])]


def _one(found: list[Any], quantity: str) -> str:
    """The first figure of a quantity: a number, or a range."""
    for one in found:
        if one.quantity == quantity and one.low is not None:
            return f"{one.low:g}" if one.value is not None else f"{one.low:g} to {one.high:g}"
    return ""


def _plot(group: Group) -> str:
    """Throughput and latency by warps and ILP, of the first variant that was measured so."""
    from golden.publish.pictures import plots

    for ins in sorted(group.variants, key=lambda ins: ins is not group.representative):
        found = figures(ins)
        points = Counter(one.device for one in found if one.quantity == "latency" and one.warps is not None)
        device = max(points, key=lambda name: points[name], default=None)
        if device is not None:
            picture = plots.ilp_warps(ins.name, [one for one in found if one.device == device], "timing")
            what = "throughput and latency by warps and independent instructions (ILP)"
            return figure(picture, f"{ins.name} on {device}: {what}.")
    return ""
