"""The specs as design documents: Markdown pages generated from the specs, models, vectors and timings.

`families` says which instructions share a page; `instruction_page`, `architecture_page`, `comparison` and
`format_page` write Markdown; `pictures` draws; `document` makes one standalone document (Markdown, HTML, PDF,
JSON) and `site` the whole site. Like the command line this stands at the end of the flow: it may import
everything, and nothing imports it but the command line.
"""
