"""What is wrong with a page as it is shown: too wide, clipped, words over words; and what axe-core finds."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from browser import Browser

FAULTS = """(() => {
  const found = [], short = (e) => e.textContent.trim().replace(/\\s+/g, " ").slice(0, 40);
  const seen = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const { scrollWidth: page, clientWidth: width } = document.documentElement;
  if (page > width) found.push(`the page is ${page} px wide at ${width}`);
  const all = [...document.querySelectorAll("main *, article *, .sidebar-drawer *")].filter(seen);
  for (const e of all) {
    const hides = ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
    const over = e.closest("svg") ? 0 : e.scrollWidth - e.clientWidth;
    if (hides && over > 1 && e.clientWidth > 1 && short(e))
      found.push(`"${short(e)}" is clipped by ${over} px`);
  }
  function overlaps(list) {
    const boxes = list.map((e) => [e, e.getBoundingClientRect()])
      .filter(([, r]) => r.width > 1 && r.height > 1);
    boxes.sort((x, y) => x[1].top - y[1].top);
    boxes.forEach(([e, r], i) => {
      for (const [f, s] of boxes.slice(i + 1)) {
        if (s.top >= r.bottom - 2) break;
        if (e.contains(f) || f.contains(e)) continue;
        const wide = Math.min(r.right, s.right) - Math.max(r.left, s.left);
        const high = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
        if (wide > 2 && high > 3) found.push(`"${short(e)}" and "${short(f)}" overlap`);
      }
    });
  }
  const scrolled = ".table-wrapper, .mg-figure, pre, .highlight, table, .sidebar-scroll, .toc-scroll, svg";
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  overlaps(all.filter((e) => !e.closest(scrolled) && own(e) && getComputedStyle(e).display !== "inline"));
  for (const svg of document.querySelectorAll("svg"))
    if (seen(svg)) overlaps([...svg.querySelectorAll("text")].filter(seen));
  return found.slice(0, 12);
})()"""
"""JavaScript: what is too wide, clipped or overlaps, as sentences. Boxes that scroll may hold more than they
show; the words of each picture are looked at among themselves."""
_AXE = "axe-core@4"
_RULES = ["wcag2a", "wcag2aa"]


def faults(browser: Browser) -> list[str]:
    """What is wrong with the page that is open."""
    found: list[str] = browser.evaluate(FAULTS)
    return found


@cache
def _axe() -> str | None:
    """The script of axe-core from npm; None where there is no npm or it cannot fetch."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [npm, "pack", _AXE, "--silent"], cwd=folder, capture_output=True, text=True, check=False
        )
        packed = next(Path(folder).glob("axe-core-*.tgz"), None)
        if done.returncode or packed is None:
            return None
        with tarfile.open(fileobj=io.BytesIO(packed.read_bytes())) as archive:
            member = archive.extractfile("package/axe.min.js")
            return None if member is None else member.read().decode()


def accessibility(browser: Browser) -> list[str]:
    """What axe-core finds against WCAG 2, levels A and AA; skips the test where npm cannot fetch it."""
    script = _axe()
    if script is None:
        pytest.skip(f"no npm that fetches {_AXE}, which looks at contrast and labels")
    browser.evaluate(f"{script};0")
    values: list[Any] = browser.evaluate(
        f"axe.run(document, {{ runOnly: {json.dumps(_RULES)}, resultTypes: ['violations'] }}).then(r => "
        "r.violations.map(v => `${v.id}, ${v.nodes.length} times: ${v.nodes[0].html.slice(0, 120)}`))"
    )
    return values
