"""The charts of the pages of results are those of the recorded numbers, and no other file is beside them."""

from pathlib import Path

import pytest

from durasim.papers.paper_files import paper_named, paper_names
from tools import figures, recorded_series

ROOT = Path(__file__).resolve().parents[2]


def test_each_plotted_figure_has_a_chart_and_no_other_chart_is_there():
    plotted = {
        f"{name}-{figure.file.removesuffix('.toml')}.svg"
        for name in paper_names()
        for figure in paper_named(name).figures
        if figure.plot
    }
    over_axes = {path.name for path in figures.files() if "-series-" in path.name}
    assert {path.name for path in (ROOT / "docs" / "results" / "figures").iterdir()} == plotted | over_axes


@pytest.mark.parametrize("name", [name for name in paper_names() if recorded_series.file_of(name).exists()])
def test_recorded_series_are_those_of_the_files_of_figures(name):
    file = recorded_series.file_of(name)
    series = [of for _, of in recorded_series.recorded(name)]
    assert all(of.points for of in series)
    assert recorded_series.text_of(series) == file.read_text(encoding="utf-8")
