"""Results in notebooks: short tables with units, charts, and data frames of polars and pandas."""

import builtins
import re
from xml.etree import ElementTree

import pandas
import polars
import pytest

import durasim as ds
import samples
from durasim.runs.comparison import judge
from durasim.runs.comparison_document import comparison_document

RUN = ds.RunResult.from_dict(samples.run())
CRASH = ds.CrashResult.from_dict(samples.crash(messages=("torn record", "lost update")))
PASSED = ds.CrashResult.from_dict(samples.crash())
SWEEP = ds.SweepResult.from_dict(samples.sweep())
COMPARED = comparison_document(
    judge(
        ds.RunResult.from_dict(samples.run(design=design, workload=workload, throughput_ops_per_us=speed))
        for workload in ("btree", "sps")
        for design, speed in (("opt", 15.0), ("kiln", 12.0))
    ),
    "paper",
)
CAMPAIGN = ds.CampaignResult(
    name="quick", trials=30, failed_checks=["control x: violation expected, survival found"], failures=[], causes=[],
    results=[{"design": "tc", "domain": "adr", "workload": "btree", "threads": 1, "runs": 1, "trials": 30,
              "violations": 2}],
)  # fmt: skip
EXPLAINED = ds.Explanation.from_dict(samples.explanation(("btree", "sps")))
RESULTS = {
    "run": RUN, "crash": CRASH, "passed": PASSED, "sweep": SWEEP, "comparison": COMPARED, "campaign": CAMPAIGN,
    "explanation": EXPLAINED,
}  # fmt: skip


def _table(result):
    """Returns the rows of the table of a result; raises an error if it is not well-formed."""
    page = ElementTree.fromstring(f"<div>{result._repr_html_().replace('<br>', '<br/>')}</div>")  # noqa: S314 - ours
    rows = [["\n".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    return "".join(page.find("table/caption").itertext()), rows, ["".join(p.itertext()) for p in page.findall("p")]


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_table_chart_and_frames(name):
    result = RESULTS[name]
    caption, rows, _ = _table(result)
    assert caption and len(rows) > 1 and len({len(row) for row in rows}) == 1
    assert "<script" not in result._repr_html_()
    frame = result.to_frame()
    assert (isinstance(frame, polars.DataFrame) and frame.height) or name == "passed"
    assert list(result.to_pandas().columns) == frame.columns
    assert len(result.to_pandas()) == frame.height
    assert result.plot().to_dict()["data"]["values"]


def test_a_run_is_shown_with_units():
    caption, rows, _ = _table(RUN)
    assert caption == "btree under opt on tiny (eadr)"
    assert ["throughput", "15", "ops/us"] in rows
    assert ["latency p99", "90", "ns"] in rows
    (row,) = RUN.to_frame().iter_rows(named=True)
    assert (row["throughput_ops_per_us"], row["pmem_write_total_bytes"]) == (15.0, 640)
    chart = RUN.plot().to_dict()
    assert {"of": "data", "group": None, "value": 640} in chart["data"]["values"]
    assert "bytes" in chart["encoding"]["y"]["title"]


def test_a_functional_run_has_no_chart():
    with pytest.raises(ds.ConfigError, match="plot: a functional run has no caches"):
        ds.RunResult.from_dict(samples.run(provenance__functional=True)).plot()


def test_a_comparison_has_ratios_and_any_metric_as_a_chart():
    _, rows, _ = _table(COMPARED)
    assert rows[0][:3] == ["workload", "design", "throughput\nvs. opt"]
    assert rows[2][:3] == ["btree", "kiln", "0.8"]
    assert COMPARED.to_frame()["relative_to_opt"].to_list() == [1.0, 0.8, 1.0, 0.8]
    values = COMPARED.plot("throughput").to_dict()["data"]["values"]
    assert [(row["of"], row["group"], row["value"]) for row in values][:2] == [
        ("btree", "opt", 15.0), ("btree", "kiln", 12.0),
    ]  # fmt: skip
    for metric, title in (("latency_p50", "latency_p50_ns"), ("ipc", "ipc (instructions per cycle)")):
        assert COMPARED.plot(metric).to_dict()["encoding"]["y"]["title"] == title
    for metric, sentence in (("latncy_p99", "did you mean 'latency_p99_ns'"), ("digest", "digest has no numbers")):
        with pytest.raises(ds.ConfigError, match=sentence):
            COMPARED.plot(metric)


def test_a_verdict_names_failures_and_how_to_replay_them():
    caption, rows, notes = _table(CRASH)
    assert caption == "opt on tiny (eadr), btree, 10 operations: 60 crashes at 40 persist events: 4 violations"
    assert rows[1] == ["e0", "guest", "torn record", "2"]
    assert notes[0] == "replay e0: durasim crash --replay"
    assert CRASH.to_frame()["message"].to_list() == ["torn record", "lost update"]
    caption, rows, notes = _table(PASSED)
    assert caption.endswith(": all recoveries correct")
    assert rows[1:] == [["clean", "40"], ["nested", "20"]]
    assert PASSED.plot().to_dict()["title"] == "btree under opt: all recoveries correct"
    assert CAMPAIGN["trials"] == 30
    assert _table(CAMPAIGN)[2] == ["failed: control x: violation expected, survival found"]


def test_a_study_is_drawn_over_its_numeric_axis():
    caption, rows, notes = _table(SWEEP)
    assert caption == "sizes: 3 simulated, 0 from the store, 1 failed"
    assert rows[0][:3] == ["workload", "design", "llc.size_bytes"]
    assert len(rows) == 4 and notes == ["failed: stuck (durasim run)"]
    chart = SWEEP.plot("ipc").to_dict()
    assert [(row["x"], row["y"], row["by"]) for row in chart["data"]["values"]] == [
        (4096, 0.5, "opt"), (8192, 1.5, "opt"), (4096, 2.5, "tc"),
    ]  # fmt: skip
    assert chart["encoding"]["x"]["title"] == "llc.size_bytes"
    assert SWEEP.plot("ipc", x="design", by="size_bytes").to_dict()["encoding"]["color"]["title"] == "llc.size_bytes"
    with pytest.raises(ds.ConfigError, match="did you mean 'design'"):
        SWEEP.plot("ipc", x="desing")


def test_an_explanation_has_rows_that_add_up_and_stacked_bars():
    caption, rows, notes = _table(EXPLAINED)
    assert caption == "cycles and bytes of designs beside opt"
    assert rows[0] == ["workload", "design", "of", "part", "opt", "design", "difference", "of opt"]
    assert ["btree", "tc", "cycles", "structure: transaction cache", "0", "900", "+900", "+70.3%"] in rows
    assert ["sps", "kiln", "cycles", "sum", "1,280", "707", "-573", "-44.8%"] in rows
    assert "btree: still dirty at the end, and in no row: opt 128, tc 128, kiln 128" in notes
    chart = EXPLAINED.plot().to_dict()
    assert chart["encoding"]["color"]["field"] == "part" and chart["encoding"]["column"]["field"] == "of"
    assert chart["encoding"]["y"]["title"] == "core cycles"
    assert EXPLAINED.plot("bytes").to_dict()["encoding"]["y"]["title"] == "bytes written to persistent memory"


def test_a_long_table_is_cut_and_says_so():
    result = ds.SweepResult.from_dict(samples.sweep(workloads=tuple(f"w{number}" for number in range(20))))
    _, rows, notes = _table(result)
    assert len(rows) == 61
    assert notes[0] == "the first 60 of 79 rows; to_frame() has all"


def test_pandas_keeps_whole_numbers_and_missing_ones():
    without_ops = ds.RunResult.from_dict(samples.run(ops=None, seed=2**64 - 1))
    frame = comparison_document(judge([RUN, without_ops]), "paper").to_pandas()
    assert frame["ops"].to_list()[0] == 10 and frame["ops"].isna().to_list() == [False, True]
    assert frame["seed"].to_list() == [1, 2**64 - 1]
    assert frame["ipc"].dtype == "float64"
    assert isinstance(frame, pandas.DataFrame)


def test_without_pandas_one_sentence_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ds.ConfigError, match=re.escape("pandas is not installed: `pip install 'durasim[pandas]'`")):
        RUN.to_pandas()
