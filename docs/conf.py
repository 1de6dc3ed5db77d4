"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # for `docs.api_pages` and `docs.figure_style`

from docs.api_pages import write_pages  # noqa: E402

project = "sketchmeans"
author = "The sketchmeans developers"
copyright = author
release = version = installed_version("sketchmeans")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["build", "**/GALLERY_HEADER.rst"]
suppress_warnings = ["config.cache"]  # the settings of the gallery are objects
#: `name` in docstrings is a public name where there is one, and code where not.
default_role = "autolink"
html_theme = "pydata_sphinx_theme"
html_title = "sketchmeans"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
# Pages without pages below them need no bar on the left.
html_sidebars = {
    name: []
    for name in (
        *("index", "start", "comparison", "benchmarks", "papers", "errata"),
        *("changes", "migration"),
    )
}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False  # docs/api_pages.py writes the pages
autodoc_typehints = "none"  # numpydoc sections have the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        "../examples/tour",
        "../examples/sketches",
        "../examples/scale",
    ],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"quickstart\.py|__init__\.py",
    "reset_modules": ("matplotlib", "docs.figure_style.apply"),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its pages ask other servers for scripts
    "show_signature": False,
    "ignore_repr_types": "matplotlib",  # of what `legend` and its like return
    "download_all_examples": False,
    "plot_gallery": "True",
    "copyfile_regex": r".*\.rst",
}


def setup(app):
    """Write the pages of the API reference before Sphinx reads the sources."""
    app.connect("config-inited", lambda *_: write_pages(HERE / "api"))
