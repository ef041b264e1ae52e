"""The table of a plan's keys in docs/gemm.md: `python -m golden.publish.plan_keys` writes it, a test holds it
to what golden.kernels.options declares."""

from __future__ import annotations

from golden.boundary import end
from golden.files.output import write_text
from golden.kernels.options import KEYS, Options
from golden.paths import docs_folder

BEGIN, END = "<!-- keys of a plan -->\n", "<!-- end of the keys -->\n"


def keys_table() -> str:
    """Markdown: every key with what it takes, its default and its meaning."""
    plain = Options()
    lines = ["| Key | Takes | Default | Meaning |", "|---|---|---|---|"]
    for name, metadata in KEYS.items():
        default = getattr(plain, name)
        plainly = list(default) if isinstance(default, tuple) else default
        value = "" if default in (None, ()) else f"`{plainly}`"
        takes, meaning = (metadata[key].replace("|", "\\|") for key in ("takes", "meaning"))
        lines.append(f"| `{name}` | {takes} | {value} | {meaning} |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The page with the table of today between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{keys_table()}\n\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Writes the page anew. Raises FileFormatError where it cannot be written."""
    page = docs_folder() / "gemm.md"
    write_text(page, with_table(page.read_text("utf-8")))


if __name__ == "__main__":
    end(main, "golden.publish.plan_keys")
