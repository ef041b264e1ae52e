"""Sphinx's configuration of the site; golden/publish/site.py copies it next to the pages."""

import importlib.util

import golden

project = "mmagold"
# A site is one version, named in its title and side bar, and one folder: links are relative and nothing
# outside is read. Versions lie side by side (public/0.1, public/0.2), each as its release built it, and a
# page over them lists them. There is no switcher in the pages: those of old versions would have to load the
# list of new ones from outside of their folder, and many pages of one version have no counterpart in another.
version = release = golden.__version__
html_title = f"mmagold {version}"
html_short_title = "mmagold"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "golden.publish.sphinx_extension",
]
exclude_patterns = ["_static"]
default_role = "code"
nitpicky = False
keep_warnings = True
smartquotes = False

myst_heading_anchors = 5
myst_enable_extensions = ["attrs_inline"]
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]

copybutton_prompt_text = r"\$ |>>> "  # of a console's block the commands alone
copybutton_prompt_is_regexp = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autodoc_mock_imports = [
    name for name in ("cocotb", "pycuda", "torch", "triton") if importlib.util.find_spec(name) is None
]
autodoc_type_aliases = {
    name: name for name in ("Bits", "Mask", "Operands", "Handle", "OnChecked", "npt.ArrayLike")
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_rtype = False
toc_object_entries = False
add_module_names = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["mmagold.css", "tables.css", "fragments.css"]
html_js_files = [
    "local_search.js",
    "finder.js",
    "fragments.js",
    "later_pictures.js",
    "picture_size.js",
    "reachable.js",
    "tables.js",
]
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#7ab7ff", "color-brand-content": "#7ab7ff"},
}
