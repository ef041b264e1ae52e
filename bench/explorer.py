"""First load of the explorer: bytes, files, and seconds until its first answer stands there.

    python bench/explorer.py SITE [LOADS]

SITE is a folder that `mmagold docs explorer` or `mmagold docs build` made. A local server hands it out,
without compression; Chromium loads it without a cache, LOADS times (5) after one that warms the browser up.
"""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "golden"))
from browser import Browser, find

READY = """new Promise(done => (function wait() {
  const ready = document.body.dataset.ready === "yes" && document.querySelector(".card .big");
  if (!ready) return setTimeout(wait, 5);
  const loads = ["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind));
  done([loads.length, loads.reduce((sum, one) => sum + one.transferSize, 0), performance.now()]);
})())"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Hands out files without a log."""

    def log_message(self, *_: Any) -> None: ...


def main(site: Path, loads: int) -> None:
    """Prints a line for each load."""
    page = next(path for path in (site / "explorer" / "index.html", site / "index.html") if path.is_file())
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(page.parent))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(find() or sys.exit("no Chromium"))
    browser.call("Network.setCacheDisabled", cacheDisabled=True)
    for number in range(loads + 1):
        browser.navigate(f"http://127.0.0.1:{server.server_port}/index.html?{number}")
        files, size, milliseconds = browser.evaluate(READY)
        if number:
            print(f"{files} files, {size:,} bytes, first answer after {milliseconds / 1000:.2f} s")
    browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
