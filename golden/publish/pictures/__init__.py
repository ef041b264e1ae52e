"""Pictures as SVG, drawn from the specs."""
