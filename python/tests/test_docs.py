"""Code in the documentation runs, and links between pages lead somewhere.

Shell and Python blocks of a page run in one folder, which holds the files of docs/files. A block that needs what not every
machine has is marked by a comment before it, such as <!-- needs: gpu -->; without that its syntax is checked. A line that
ends in `# warns: CODE` must end with that warning, and one that ends in `# no warning` with none.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- needs: (?P<needs>[\w ]+) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

# What a block may need, and whether this machine has it. What is done by hand is never run.
NEEDS = {
    "torch": importlib.util.find_spec("torch") is not None,
    "mpi": False,  # the tests of ranks start them
    "gpu": False,  # the tests of the GPU have it
    "R": shutil.which("Rscript") is not None,
    "packages": False,
    "build": False,
    "project": False,
    "files": False,
    "time": False,
}
# Pages whose blocks are excerpts, or belong to another machine.
SYNTAX_ONLY = {"install.md", "store.md", "cluster.md", "diagnostics.md", "measurements.md"}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, *languages):
    for found in BLOCK.finditer(page.read_text()):
        if found["language"] in languages:
            runs = page.name not in SYNTAX_ONLY and all(NEEDS[word] for word in (found["needs"] or "").split())
            yield runs, found["code"]


@pytest.fixture
def folder(tmp_path):
    for file in (DOCS / "files").iterdir():
        shutil.copy(file, tmp_path)
    program = pathlib.Path(os.environ["POISE_PROGRAM"]).resolve().parent
    return {"cwd": tmp_path, "env": {**os.environ, "PATH": f"{program}:{os.environ['PATH']}"}}


def shell(code, folder):
    done = subprocess.run(["bash", "-euc", code], capture_output=True, text=True, timeout=600, **folder)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if list(blocks(page, "shell"))], ids=name_of)
def test_shell_blocks(page, folder):
    for runs, code in blocks(page, "shell"):
        assert subprocess.run(["bash", "-n", "-c", code]).returncode == 0, code
        if not runs:
            continue
        if "# warns: " not in code:
            shell(code, folder)
            continue
        for line in code.splitlines():
            said = shell(line, folder)
            if expected := re.search(r"# warns: (\w+)", line):
                assert f"poise explain {expected[1]}" in said, said
            elif line.endswith("# no warning"):
                assert "warning:" not in said, said


@pytest.mark.parametrize("page", [page for page in PAGES if list(blocks(page, "python"))], ids=name_of)
def test_python_blocks(page, folder):
    code = list(blocks(page, "python"))
    for _, block in code:
        compile(block, name_of(page), "exec")
    script = "import warnings\nwarnings.simplefilter('ignore')\n" + "\n".join(block for runs, block in code if runs)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, **folder)
    assert done.returncode == 0, done.stderr


def test_cpp_blocks_are_excerpts():
    code = "".join(file.read_text() for pattern in ("*.?pp",) for file in sorted((ROOT / "examples").glob(pattern)))
    code += (ROOT / "tests/external/CMakeLists.txt").read_text()
    for page in PAGES:
        for _, block in blocks(page, "cpp"):
            for part in block.split("\n\n"):
                assert part.strip("\n") in code, f"{name_of(page)}:\n{part}"


def anchors(page):
    """The names of headings as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http:", "https:")) or "/reference/" in link or link.startswith("reference/"):
            continue  # references are generated; make docs checks them
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_warning_has_a_page():
    import poise

    pages = {page.stem for page in (DOCS / "warnings").glob("*.md")} - {"index"}
    index = (DOCS / "warnings/index.md").read_text()
    for category in poise.PoiseWarning.__subclasses__():
        assert category.code in pages
    for code in pages:
        assert poise.explain(code).startswith(f"{code}: ")
        assert f"({code}.md)" in index
    with pytest.raises(ValueError, match="unknown warning 'x'"):
        poise.explain("x")


def test_the_reference_is_complete():
    import poise

    page = (DOCS / "reference/python.md").read_text()
    assert not [name for name in poise.__all__ if not name.startswith("_") and f":: poise.{name}\n" not in page]


def test_no_page_names_a_file_of_netcdf_for_out():
    for page in PAGES:
        if page.name not in SYNTAX_ONLY:
            assert not re.search(r"--out \S+\.nc\b|out=\"\S+\.nc\"", page.read_text()), name_of(page)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
