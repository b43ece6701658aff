"""The notebooks of docs/notebooks: stored without outputs, short, and run as Jupyter runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from document_blocks import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
CELLS_MAX = 15
# The compiler may have to compile its C++ library first.
TIMEOUT_S = 1800
STARTUP_TIMEOUT_S = 120
SHORT = "compare-designs"


def _read(path):
    return nbformat.read(path, as_version=4)


def _sources(book, kind):
    return [cell.source for cell in book.cells if cell.cell_type == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_has_no_outputs(path):
    book = _read(path)
    nbformat.validate(book)
    assert 5 <= len(book.cells) <= CELLS_MAX
    assert book.cells[0].source.startswith("# ")
    for cell in book.cells:
        assert cell.cell_type in ("code", "markdown")
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_linked(path):
    name = path.name
    assert f"notebooks/{name}" in (ROOT / "docs/python.md").read_text(encoding="utf-8")


# In a process of its own: the connections to the kernel are closed when it ends.
EXECUTE = f"""
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, kernel_name="python3", timeout={TIMEOUT_S}, startup_timeout={STARTUP_TIMEOUT_S}).execute()
nbformat.write(book, "executed.ipynb")
"""


def run(path, folder):
    """Runs a notebook in a folder of its own, with the interpreter of the tests, and returns it with its outputs."""
    places = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "XDG_CACHE_HOME")
    environment = os.environ | {name: str(folder / name.lower()) for name in places}
    command = [sys.executable, "-c", EXECUTE, str(path)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return _read(folder / "executed.ipynb")


def _shown(book):
    """Returns the data of the last output of each cell of code; None for a cell without one."""
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return [next((of.data for of in reversed(cell.outputs) if "data" in of), None) for cell in cells]


def _check_shown(book):
    for data in filter(None, _shown(book)):
        page = data.get("text/html", "")
        is_chart = any("vega" in kind for kind in data) or "vega" in page
        assert is_chart or "<script" not in page


def test_a_comparison_of_designs_runs(tmp_path):
    book = run(ROOT / f"docs/notebooks/{SHORT}.ipynb", tmp_path)
    _check_shown(book)
    table, first_chart, *_ = _shown(book)
    assert "<caption" in table["text/html"] and "swl-flush" in table["text/html"]
    assert "vega" in str(dict(first_chart))


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != SHORT], ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    book = run(path, tmp_path)
    _check_shown(book)
    shown = "".join(str(dict(data)) for data in filter(None, _shown(book)))
    if path.stem == "crash-your-structure":
        assert "is torn" in shown and re.search(r": no violation", shown)
    else:
        assert "all recoveries correct" in shown and "on_frontier" in shown
    assert not list(Path.cwd().glob("*.sqlite"))
