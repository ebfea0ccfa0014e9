"""Configuration of the documentation site; `make docs` builds it (tools/make-docs)."""

import os
import re
from pathlib import Path

_ROOT = Path(os.environ["POISE_SOURCE"])

project = "Poise"
author = "the Poise authors"
copyright = author
# The version has one place, the project() line of CMake.
release = version = re.search(r"project\(poise VERSION ([0-9.]+)", (_ROOT / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
html_theme = "furo"
html_title = f"Poise {release}"
html_static_path = ["_static"]
html_css_files = ["poise.css"]
html_extra_path = ["reproduce-ising.html"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
smartquotes = False

myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "colon_fence"]
# Every header page opens the namespace poise.
suppress_warnings = ["duplicate_declaration.cpp"]

autodoc_member_order = "bysource"
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike", "Function": "Function"}
python_maximum_signature_line_length = 80
autodoc_mock_imports = ["tqdm", "xarray"]

breathe_projects = {"poise": os.environ["POISE_DOXYGEN_XML"]}
breathe_default_project = "poise"
breathe_default_members = ("members", "undoc-members")
