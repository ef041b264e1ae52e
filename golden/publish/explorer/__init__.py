"""The explorer: one page, without a server, on which the C core computes dot products in the browser.

`build` writes it; what the page itself is made of lies in `page/`.
"""
