"""The charts of the pages of results are those of the recorded numbers, and no other file is beside them."""

from pathlib import Path

from durasim.papers.paper_files import paper_named, paper_names
from tools import figures

ROOT = Path(__file__).resolve().parents[2]


def test_each_plotted_figure_has_a_chart_and_no_other_chart_is_there():
    plotted = {
        figures.file_of(name, figure) for name in paper_names() for figure in paper_named(name).figures if figure.plot
    }
    assert {path.name for path in (ROOT / "docs" / "results" / "figures").iterdir()} == plotted
