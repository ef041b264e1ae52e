"""Commands of other packages: rtl_tb and hw_capture join `mmagold` by entry points; golden imports neither.

An entry point of the group GROUP names a function that takes the Typer app and hangs its commands in, see
pyproject.toml. What cannot be loaded costs its own commands and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.errors import one_line

if TYPE_CHECKING:
    import typer

GROUP = "mmagold.commands"
OURS = ("hw_capture", "rtl_tb")
"""Plug-ins of this distribution. A checkout that was not installed lacks them until egg_info lists them."""


def add_commands(app: typer.Typer) -> str:
    """Adds the commands of every entry point; returns sentences about what is not there ("": nothing)."""
    from importlib import metadata  # a sixth of the time of a command that asks no plug-in

    lines, names = [], set()
    for plugin in sorted(metadata.entry_points(group=GROUP)):
        names.add(plugin.name)
        try:
            plugin.load()(app)
        except (Exception, SystemExit) as error:
            why = one_line(error)
            lines.append(f"The commands of {plugin.name} ({plugin.value}) could not be loaded: {why}.")
    missing = [name for name in OURS if name not in names]
    if missing:
        lines.append(
            f"The commands of {' and '.join(missing)} are not registered: install mmagold, or run "
            "'python setup.py build_ext --inplace egg_info' in the checkout."
        )
    return " ".join(lines)
