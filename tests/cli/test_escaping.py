"""Text of others is shown and never obeyed: in terminals, Markdown, pages, charts and tables."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import polars
import pytest
from rich.console import Console

import durasim as ds
import samples
from durasim.cli import explanation_tables, formats, progress, render, shell, study_tables
from durasim.documents import escaping
from durasim.documents.charts import bar_chart
from durasim.runs.comparison import judge
from durasim.runs.comparison_document import comparison_document
from durasim.store.database import Entry

CLEAR, TITLE, C1 = "\x1b[2J", "\x1b]0;owned\x07", "\x9b31m"
SPOOFED = "\nopt on tiny: all recoveries correct\r\u202eTERUCES"
MARKUP = "[bold red]x[/] [/nothing] [link=https://example.org]y"
SCRIPT = "</script><img src=x onerror=alert(1)><!-- &amp; \"'"
HOSTILE = f"{CLEAR}{TITLE}{C1}{SPOOFED}{MARKUP}{SCRIPT}"
FORMULAS = ("=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(1)", "\t=1", "\n=1")
# What a terminal obeys; rich writes colours only where the output is a terminal.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ENTRY = Entry(
    key="0" * 32, kind="run", study=HOSTILE, design="opt", workload=HOSTILE, machine=HOSTILE, seconds=1.0,
    created_s=0.0, digest="0", command="c", build="b",
)  # fmt: skip


def _results():
    run = ds.RunResult.from_dict(samples.run(workload=HOSTILE, machine=HOSTILE))
    return {
        "run": run,
        "crash": ds.CrashResult.from_dict(samples.crash(messages=(HOSTILE,), workload=HOSTILE)),
        "sweep": ds.SweepResult.from_dict(samples.sweep(HOSTILE, (HOSTILE,), notes=[HOSTILE])),
        "crashes": ds.SweepResult.from_dict(samples.crash_sweep(HOSTILE)),
        "comparison": comparison_document(judge([run]), "paper"),
        "explanation": ds.Explanation.from_dict(samples.explanation((HOSTILE,), machine=HOSTILE)),
        "campaign": ds.CampaignResult(
            name=HOSTILE, trials=1, failed_checks=[HOSTILE],
            failures=[{"id": "e1", "oracle": "guest", "message": HOSTILE}],
            causes=[{"workload": HOSTILE, "causes": samples.causes(HOSTILE, HOSTILE)}],
            results=[{"design": "tc", "domain": "adr", "workload": HOSTILE, "threads": 1, "runs": 1, "trials": 1,
                      "violations": 1}],
        ),
    }  # fmt: skip


RESULTS = _results()


def _shown():
    sweep = RESULTS["sweep"]
    return {
        "run": render.run_table(RESULTS["run"]),
        "crash": render.crash_text(RESULTS["crash"]),
        "sweep": study_tables.study_tables(sweep, sweep.to_frame()),
        "crashes": study_tables.study_tables(RESULTS["crashes"], RESULTS["crashes"].to_frame()),
        "explanation": explanation_tables.explanation_tables(RESULTS["explanation"]),
        "store": study_tables.entries_table(HOSTILE, [ENTRY]),
        "text": HOSTILE,
    }


@pytest.mark.parametrize("name", _shown())
def test_a_terminal_shows_control_characters_and_markup(name, capsys):
    render.show(_shown()[name])
    printed = capsys.readouterr().out
    assert not OBEYED.search(printed)
    joined = re.sub(r"[\s│]+", "", printed)
    assert r"\x1b[2J" in joined and r"\x9b31m" in joined and r"\u202e" in joined
    assert MARKUP.replace(" ", "") in joined


def test_a_message_cannot_begin_a_line(capsys):
    for name in ("crash", "run"):
        render.show(_shown()[name])
        assert "\nopt on tiny: all recoveries correct" not in capsys.readouterr().out


def test_an_error_is_one_line_without_control_characters(capsys):
    shell.complain(HOSTILE, 2)
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and not OBEYED.search(printed)


def test_a_progress_bar_has_names_and_no_markup():
    with render.progress_bar() as bar:
        progress.RunBar(bar, MARKUP, lambda *_: None)
        console = Console(file=io.StringIO(), width=200)
        console.print(bar.make_tasks_table(bar.tasks))
    assert "[/nothing]" in console.file.getvalue()


@pytest.mark.parametrize("name", _shown())
def test_markdown_keeps_its_tables_and_fences(name):
    shown = _shown()[name]
    text = formats.markdown(shown)
    assert not OBEYED.search(text)
    if name == "crash":
        assert text.startswith("```text\n") and text.endswith("\n```")
    assert all(line.startswith("|") == line.endswith("|") for line in text.splitlines() if "<img" in line)


def test_a_fence_is_longer_than_any_in_its_text():
    assert formats.markdown("a\n```\n# b").splitlines()[0] == "````text"


class _Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        self.found.append(("comment", data))


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_has_only_elements_of_a_table(name):
    page = RESULTS[name]._repr_html_()
    elements = _Elements(page)
    allowed = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "br"}
    assert {tag for tag, _ in elements.found} <= allowed
    assert {attribute for _, names in elements.found for attribute in names} == {"style"}
    assert not OBEYED.search(page)
    assert SCRIPT in "".join(elements.texts)


@pytest.mark.parametrize("name", RESULTS)
def test_a_chart_cannot_end_the_script_of_its_page(name):
    chart = RESULTS[name].plot()
    for text in (chart.to_html(), chart.to_json(), json.dumps(chart.to_dict())):
        assert "<img" not in text and "<!--" not in text.replace("<!DOCTYPE", "")
        assert not OBEYED.search(json.dumps(chart.to_dict(), ensure_ascii=False))
    page = _Elements(chart.to_html())
    assert [tag for tag, _ in page.found if tag == "script"].count("script") == chart.to_html().count("</script>")
    assert "img" not in {tag for tag, _ in page.found}


def test_an_image_has_the_exact_text():
    chart = bar_chart([("a<b>", None, 1.0)], title="t<i>", of="x", value="y").to_dict()
    assert chart["title"] == "t<\u2060i>"
    exact = escaping.shown_exactly(chart)
    assert exact["title"] == "t<i>" and exact["data"]["values"][0]["of"] == "a<b>"


def _cells(text):
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_of_a_table_is_a_formula(formula):
    run = ds.RunResult.from_dict(samples.run(workload=formula, provenance__set=[formula]))
    crash = ds.CrashResult.from_dict(samples.crash(messages=(formula,)))
    sweep = ds.SweepResult.from_dict(samples.sweep(formula, (formula,))).to_frame()
    for text in (formats.runs_csv([run]), formats.crash_csv(crash), escaping.csv_text(sweep)):
        cells = _cells(text)
        assert f"'{formula}" in cells
        assert not [cell for cell in cells if cell.lstrip("\t\r\n ")[:1] in "=+-@" and cell and not _is_number(cell)]


def test_a_carriage_return_begins_no_row_of_a_table():
    assert escaping.csv_text(polars.DataFrame({"a": ["x\r=1", "\r=2"]})) == "a\nx\\r=1\n\\r=2\n"


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_numbers_and_other_texts_of_a_table_are_unchanged():
    frame = polars.DataFrame({"=n": [-1.5, 2.0], "text": ["-3e5", "a=b"], "none": [None, "x"]})
    assert _cells(escaping.csv_text(frame)) == ["'=n", "text", "none", "-1.5", "-3e5", "", "2.0", "a=b", "x"]


def test_printable_text_can_be_written_by_every_stream():
    assert escaping.printable("\ud800\x00\u2028") == r"\ud800\x00\u2028"
    assert escaping.printable("größer, 大きい, 🙂") == "größer, 大きい, 🙂"
    assert escaping.printable_lines("a\n\tb\r") == "a\n\tb\\r"
