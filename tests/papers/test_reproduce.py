"""`durasim reproduce` on a small paper: rows, verdicts, the store, failed runs, reports, and wrong files."""

import json
import shutil
from pathlib import Path
from statistics import fmean, stdev

import jsonschema
import pytest
from typer.testing import CliRunner

import durasim
from durasim import api, publication
from durasim.cli import app
from durasim.papers import paper_files
from studies.dask_processes import DaskProcesses
from studies.in_process import InProcess

PAPER = """
title = "A small paper"
citation = "Author, 2020"
aliases = ["small"]
figures = ["figure-1", "table-2"]

[names.designs]
Ours = "hercules"
Ideal = "opt"

[names.workloads]
average = "all"
Swap = "array-swap"

[[runs]]
name = "main"
designs = ["opt", "hercules"]
workloads = ["array-swap"]
machine = "tiny"
ops = 4
seeds = 2
args = { populate = 8 }

[[readings]]
name = "smaller"
place = "Sec2"
sentence = "a small queue"
change = { design = "hercules", set = { "design.hercules.ewpq_entries" = 1 } }
"""
FIGURE = """
place = "Fig1"
title = "Throughput & <cost>"

[values]
ours = { runs = "main", metric = "throughput_ops_per_us", design = "$design", workload = "$workload" }
baseline = { runs = "main", metric = "throughput_ops_per_us", design = "$baseline", workload = "$workload" }

[measures.relative]
formula = "percent(geomean(ours / baseline))"
beside = { ideal = "mean(baseline)" }

[plot]
metric = "relative"
x = "workload"

[[published]]
metric = "relative"
design = "Ours"
workload = "Swap"
baseline = "Ideal"
value = "60"
unit = "%"
quote = "sixty percent"
class = "measured"
relation = "share"

[[published]]
metric = "unknown"
design = "Ours"
workload = "average"
baseline = "Ideal"
value = "3"
unit = "%"
quote = "three"
class = "measured"
relation = "share"
unmeasured = "no program of this kind"
"""
TABLE = """
place = "Tab2"
title = "Storage"

[values]
bits = { cost = "hercules", structure = "eWPQ entries" }

[measures.storage]
formula = "bits / 8192"
digits = 0

[[published]]
metric = "storage"
design = "Ours"
workload = ""
baseline = ""
value = "4"
unit = "KB"
quote = "four kilobytes"
class = "arithmetic"
class_reason = "from the number of entries"
relation = "amount"
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A folder of papers with one small paper, simulated in this process."""
    folder = tmp_path / "papers" / "small-2020"
    folder.mkdir(parents=True)
    for name, text in {"paper": PAPER, "figure-1": FIGURE, "table-2": TABLE}.items():
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.setattr(paper_files, "papers_folder", lambda: folder.parent)
    monkeypatch.setattr("durasim.papers.recorded.papers_folder", lambda: folder.parent)
    monkeypatch.setattr("durasim.studies.executor.LocalProcesses", lambda _jobs: InProcess())
    paper_files.paper_names.cache_clear()
    yield folder
    paper_files.paper_names.cache_clear()


def command(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)], prog_name="durasim")


def sentence(*words):
    """Runs a command that is refused; returns exit code and sentence."""
    done = command(*words)
    return done.exit_code, done.stderr


@pytest.mark.usefixtures("paper")
def test_rows_verdicts_and_reuse(tmp_path):
    store = tmp_path / "s.sqlite"
    first = publication.reproduce("small", store=store)
    assert [point.state for point in first.points] == ["simulated"] * 4
    measured, unmeasured, storage = first.rows
    ratios = [
        api.run(design=design, workload="array-swap", machine="tiny", ops=4, seed=seed, workload_args={"populate": 8},
                guest_output=lambda *_: None).throughput_ops_per_us
        for design in ("hercules", "opt") for seed in (1, 2)
    ]  # fmt: skip
    expected = 100 * (ratios[0] / ratios[2] * ratios[1] / ratios[3]) ** 0.5
    assert measured.ours == pytest.approx((expected,))
    assert measured.interval[0] < expected < measured.interval[1]
    assert len(measured.runs) == 4
    assert measured.command.startswith("durasim run --design opt")
    assert measured.note.startswith("ideal: ")
    assert (unmeasured.verdict, unmeasured.note) == ("not comparable", "no program of this kind")
    assert (storage.ours, storage.verdict, storage.class_) == ((4.0,), "reproduced", "arithmetic")
    assert first.claims["total"] == 3
    assert first.claims["not_comparable"] == first.claims["arithmetic"] == first.claims["scored"] == 1

    again = publication.reproduce("all", store=store)
    assert [point.state for point in again.points] == ["reused"] * 4
    assert [point.digest for point in again.points] == [point.digest for point in first.points]
    assert again.rows == first.rows
    only = publication.reproduce("small", figure="table-2", store=store)
    assert (only.points, only.rows) == ((), (storage,))


def test_seeds_repeat_runs_and_give_an_interval(paper, tmp_path):
    """The file of the table has no seeds, and its formula does not know them."""
    (paper / "paper.toml").write_text(PAPER.replace("seeds = 2\n", ""))
    (paper / "figure-1.toml").write_text(FIGURE.replace("geomean(ours / baseline)", "ours / baseline"))
    store = tmp_path / "s.sqlite"
    one = publication.reproduce("small", figure="Fig1", store=store)
    assert (one.seeds, len(one.points), one.rows[0].interval) == (1, 2, ())
    three = publication.reproduce("small", figure="Fig1", seeds=3, store=store)
    # Those of the first seed are answered from the store.
    assert (three.seeds, three.failed, three.unmeasured) == (3, 0, 0)
    assert sorted(point.state for point in three.points) == ["reused"] * 2 + ["simulated"] * 4
    values = {
        design: [
            api.run(design=design, workload="array-swap", machine="tiny", ops=4, seed=seed,
                    workload_args={"populate": 8}, guest_output=lambda *_: None).throughput_ops_per_us
            for seed in (1, 2, 3)
        ]
        for design in ("hercules", "opt")
    }  # fmt: skip
    (row, _) = three.rows
    assert row.ours == pytest.approx((100 * fmean(values["hercules"]) / fmean(values["opt"]),))
    ratios = [100 * ours / baseline for ours, baseline in zip(values["hercules"], values["opt"], strict=True)]
    half = 4.303 * stdev(ratios) / 3**0.5
    assert row.interval == pytest.approx((fmean(ratios) - half, fmean(ratios) + half))
    assert len(row.runs) == 6


def test_one_seed_gives_an_interval_from_batches(paper, tmp_path):
    (paper / "paper.toml").write_text(PAPER.replace("seeds = 2\n", "").replace("ops = 4", "ops = 100"))
    found = publication.reproduce("small", figure="Fig1", readings=True, store=tmp_path / "s.sqlite")
    (row, _) = found.rows
    low, high = row.interval
    assert row.interval_from == "batches"
    assert low < row.ours[0] < high < 1.2 * low
    assert row.command.endswith("--batches --arg populate=8 (and 1 more)")
    assert row.readings == {"smaller": row.verdict}


@pytest.mark.parametrize(
    ("written", "asked", "found", "repeated"),
    [("2", 1, [1, 2], False), ("2", 3, [1, 2, 3], False), ("3", 2, [1, 2, 3], False), ("[4, 2]", 3, [4, 2, 1], False),
     ("1", 2, [1, 2], False), (None, 2, [1, 2], True), (None, 1, [None], False)],
)  # fmt: skip
def test_a_run_has_at_least_so_many_seeds(paper, written, asked, found, repeated):
    seeds = "" if written is None else f"seeds = {written}\n"
    (paper / "paper.toml").write_text(PAPER.replace("seeds = 2\n", seeds))
    grid = publication.chosen_papers("small", "Fig1", "quick")[0].grid("quick", seeds=asked)
    assert list(dict.fromkeys(point.values.get("seed") for point in grid.points())) == found
    assert grid.repeated == ({"main"} if repeated else set())


def test_papers_and_readings_share_runs_in_one_study(paper):
    """The second paper has the runs of the first one, and a reading changes half of them."""
    other = paper.parent / "other-2021"
    shutil.copytree(paper, other)
    (other / "paper.toml").write_text(PAPER.replace('aliases = ["small"]\n', ""))
    calls = []
    document = publication.reproduce("all", readings=True, store=False, progress=lambda *of: calls.append(of))
    assert document.papers == ("other-2021", "small-2020")
    assert [point.state for point in document.points] == ["simulated"] * 6
    assert calls == [(done, 6) for done in range(1, 7)]
    half = len(document.rows) // 2
    assert [row.ours for row in document.rows[:half]] == [row.ours for row in document.rows[half:]]
    assert len(document.readings) == 2


def test_a_cluster_gives_the_results_of_this_computer(paper, tmp_path):
    (paper / "paper.toml").write_text(PAPER.replace("seeds = 2", "seeds = 1"))
    here = publication.reproduce("small", figure="Fig1", seeds=2, store=False)
    store = tmp_path / "s.sqlite"
    with DaskProcesses(tmp_path) as dask:
        address = dask.start_scheduler()
        dask.start_worker()
        there = publication.reproduce("small", figure="Fig1", seeds=2, cluster=address, store=store)
    assert there.rows == here.rows
    assert [(point.key, point.digest) for point in there.points] == [(point.key, point.digest) for point in here.points]
    again = publication.reproduce("small", figure="Fig1", seeds=2, store=store)
    assert [point.state for point in again.points] == ["reused"] * 4


def test_a_number_that_a_program_does_not_have_is_not_comparable(paper, tmp_path):
    """No attempt is aborted here, so a quotient by them is no number, and the document has none."""
    throughput = 'baseline = { runs = "main", metric = "throughput_ops_per_us"'
    text = FIGURE.replace(throughput, 'baseline = { runs = "main", metric = "tx.aborted_by.*"')
    (paper / "figure-1.toml").write_text(text)
    file = tmp_path / "r.json"
    done = command("small", "--figure", "Fig1", "--no-store", "--json", file)
    assert done.exit_code == 0, done.output
    row = json.loads(file.read_text())["rows"][0]
    assert (row["ours"], row["interval"], row["verdict"]) == ([], [], "not comparable")
    assert row["note"].startswith("a program does not have what is counted")


def test_an_altered_published_value_flips_its_verdict(paper, tmp_path):
    store = tmp_path / "s.sqlite"
    ours = publication.reproduce("small", store=store).rows[0].ours[0]
    file = paper / "figure-1.toml"
    verdicts = []
    for value in (ours, ours / 5):
        file.write_text(FIGURE.replace('value = "60"', f'value = "{value:.4f}"'))
        verdicts.append(publication.reproduce("small", figure="Fig1", store=store).rows[0].verdict)
    assert verdicts[0] in ("reproduced", "uncertain")
    assert verdicts[1] == "differs"


@pytest.mark.usefixtures("paper")
def test_readings_give_gained_and_lost_verdicts():
    document = publication.reproduce("small", figure="Fig1", readings=True, store=False)
    (reading,) = document.readings
    assert (reading.name, reading.place, reading.sentence) == ("smaller", "Sec2", "a small queue")
    # The runs of `opt` are the same in both.
    assert [point.state for point in document.points] == ["simulated"] * 6
    assert reading.claims["total"] == 2


def test_only_the_named_reading_is_run(paper, tmp_path):
    other = """
[[readings]]
name = "larger"
place = "Sec2"
sentence = "a large queue"
change = { design = "hercules", set = { "design.hercules.ewpq_entries" = 64 } }
"""
    (paper / "paper.toml").write_text(PAPER + other)
    file = tmp_path / "r.json"
    done = command("small", "--reading", "larger", "--no-store", "--json", file)
    assert done.exit_code == 0, done.output
    document = json.loads(file.read_text())
    assert [reading["name"] for reading in document["readings"]] == ["larger"]
    assert [row["readings"].keys() for row in document["rows"]] == [{"larger"}] * len(document["rows"])
    code, text = sentence("small", "--reading", "larg", "--no-store")
    assert (code, "unknown name 'larg' (did you mean 'larger'?" in text) == (2, True), text


def test_a_run_that_fails_is_listed_and_others_go_on(paper, tmp_path):
    (paper / "paper.toml").write_text(PAPER.replace("ops = 4", "ops = 4\nrun = { max_instructions = 100 }"))
    file = tmp_path / "r.json"
    done = command("small", "--no-store", "--json", file)
    document = json.loads(file.read_text())
    assert done.exit_code == 1, done.output
    assert "failed runs" in done.stdout
    assert [point["error"] is None for point in document["points"]] == [False] * 4
    first, _, storage = document["rows"]
    assert first["verdict"] == "not comparable"
    assert first["note"].startswith("not measured: ")
    assert storage["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('metric = "throughput_ops_per_us", design = "$design"', 'metric = "through", design = "$design"',
         "relative, Ours, Swap: metric: 'through' is no number in the result of"),
        ("percent(geomean(ours / baseline))", "ours / baseline", "formula: gives 2 numbers, and share compares one"),
        ("geomean(ours / baseline)", "mean(ours, 'sede')", "formula: its values have no axis sede, but seed"),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_measured_is_listed_and_others_go_on(paper, tmp_path, old, new, problem):
    (paper / "figure-1.toml").write_text(FIGURE.replace(old, new, 1))
    file, report = tmp_path / "r.json", tmp_path / "report"
    done = command("small", "--no-store", "--json", file, "--report", report)
    assert done.exit_code == 1, done.output
    assert "numbers that could not be measured" in done.stdout
    first, _, storage = json.loads(file.read_text())["rows"]
    assert problem in first["error"]
    assert first["verdict"] == "not comparable"
    assert storage["verdict"] == "reproduced"
    assert (report / "small-2020.html").is_file()


def test_changes_at_the_scale_of_the_paper_follow_those_of_where(paper):
    where = 'where = [{ design = "hercules", ops = 5 }]\npaper = { ops = 6 }\n'
    (paper / "paper.toml").write_text(PAPER.replace("[[readings]]", where + "[[readings]]"))
    chosen = publication.chosen_papers("small", "Fig1", "quick")[0]
    of_scale = {scale: [point.scenario.ops for point in chosen.grid(scale).points()] for scale in ("quick", "paper")}
    assert of_scale == {"quick": [4, 4, 5, 5], "paper": [6, 6, 6, 6]}


def test_unpublished_sizes_are_refused_at_the_scale_of_the_paper(paper):
    (paper / "paper.toml").write_text(PAPER.replace("ops = 4", 'ops = 4\nunpublished = "section 3 states no sizes"'))
    code, text = sentence("small", "--scale", "paper", "--plan", "--no-store")
    assert (code, text.count("\n")) == (2, 1)
    assert "scale: paper: small-2020: section 3 states no sizes" in text
    # A number without runs does not need them.
    only = publication.reproduce("small", figure="table-2", scale="paper", store=False)
    assert only.rows[0].verdict == "reproduced"
    assert publication.reproduce("small", figure="table-2", store=False).rows == only.rows


def test_other_numbers_go_on_beside_unpublished_sizes(paper):
    second = '[[runs]]\nname = "second"\nlike = "main"\nunpublished = "section 3 states no sizes"\n\n[[readings]]'
    (paper / "paper.toml").write_text(PAPER.replace("[[readings]]", second))
    more = FIGURE.replace('"Fig1"', '"Fig2"').replace('runs = "main"', 'runs = "second"')
    (paper / "figure-2.toml").write_text(more)
    tables = (paper / "paper.toml").read_text().replace('"figure-1", ', '"figure-1", "figure-2", ')
    (paper / "paper.toml").write_text(tables)
    document = publication.reproduce("small", scale="paper", store=False)
    first, _, second_row, _, _ = document.rows
    assert len(first.ours) == 1
    assert (second_row.ours, second_row.verdict, second_row.error) == ((), "not comparable", None)
    assert second_row.note == "no run of the published size: section 3 states no sizes"
    assert len(document.points) == 4


def test_runs_that_no_axis_distinguishes_are_refused(paper):
    second = '[[runs]]\nname = "second"\nlike = "main"\nops = 5\n\n[[readings]]'
    (paper / "paper.toml").write_text(PAPER.replace("[[readings]]", second))
    (paper / "figure-1.toml").write_text(FIGURE.replace('ours = { runs = "main"', 'ours = { runs = ["main", "second"]'))
    row = publication.reproduce("small", figure="Fig1", store=False).rows[0]
    assert "several runs of main, second have" in row.error


@pytest.mark.usefixtures("paper")
def test_the_command_writes_a_report_and_a_document(tmp_path):
    report, file = tmp_path / "report", tmp_path / "r.json"
    done = command("small", "--no-store", "--report", report, "--json", file, "--readings")
    assert done.exit_code == 0, done.output
    document = json.loads(file.read_text())
    schema = json.loads((Path(durasim.__file__).parent / "schemas" / "reproduction.json").read_text())
    jsonschema.validate(document, schema)
    assert durasim.load(file).to_dict() == document
    assert document["rows"][0]["class"] == "measured"
    assert sorted(path.name for path in report.iterdir()) == ["reproduction.json", "small-2020.html"]
    assert json.loads((report / "reproduction.json").read_text())["rows"] == document["rows"]
    page = (report / "small-2020.html").read_text()
    assert "Throughput &amp; &lt;cost&gt;" in page
    assert "<svg" in page
    assert "small-2020: smaller" in page
    commands = [point["command"] for point in document["points"] if point["key"] in document["rows"][0]["runs"]]
    assert len(commands) == 4
    assert all(each in page for each in commands)
    assert "https://" not in page.replace('xmlns="http', "").replace("http://www.w3.org", "")
    assert "<script" not in page
    table = command("small", "--no-store", "--format", "csv").stdout.splitlines()
    assert table[0].startswith("figure,metric,design")
    assert len(table) == 4


def test_fail_on_change(paper, tmp_path):
    store = tmp_path / "s.sqlite"
    code, text = sentence("small", "--store", store, "--fail-on-change")
    assert (code, "recorded.csv" in text) == (4, True)
    recorded = command("small", "--store", store, "--format", "csv").stdout
    (paper / "recorded.csv").write_text(recorded)
    assert command("small", "--store", store, "--fail-on-change").exit_code == 0
    (paper / "recorded.csv").write_text(recorded.replace(",arithmetic,reproduced,", ",arithmetic,differs,"))
    done = command("small", "--store", store, "--fail-on-change")
    assert done.exit_code == 1
    expected = "changed: Tab2, storage, Ours: reproduced (4), arithmetic; recorded differs (4), arithmetic"
    assert expected in " ".join(done.stdout.split())


@pytest.mark.usefixtures("paper")
def test_a_plan_simulates_nothing(tmp_path):
    done = command("small", "--plan", "--store", tmp_path / "s.sqlite")
    assert done.exit_code == 0, done.output
    assert "4 points, 4 to simulate" in " ".join(done.stdout.split())
    done = command("small", "--plan", "--seeds", "5", "--store", tmp_path / "s.sqlite")
    assert "10 points, 10 to simulate" in " ".join(done.stdout.split())
    done = command("small", "--plan", "--readings", "--store", tmp_path / "s.sqlite")
    shown = " ".join(done.stdout.split())
    assert "small-2020: 4 points, 4 to simulate" in shown
    assert "small-2020, reading smaller: 2 points, 2 to simulate" in shown


@pytest.mark.usefixtures("paper")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["smal"], "paper: unknown name 'smal' (did you mean 'small'?"),
        (["small", "--figure", "Fig7"], "figure: unknown name 'Fig7' (did you mean 'Fig1'?"),
        (["small", "--scale", "tiny"], "scale: unknown name 'tiny'"),
        (["small", "--plan", "--report", "r"], "report: requires results: leave --plan out"),
        (["small", "--plan", "--fail-on-change"], "requires results: leave --plan out"),
        (["small", "--plan", "--format", "csv"], "format: is table or markdown with --plan"),
        (["small", "--fail-on-change", "--scale", "paper"], "compares with recorded results of scale quick"),
        (["small", "--fail-on-change", "--seeds", "3"], "recorded results, whose seeds are those of the files"),
        (["small", "--seeds", "0"], "'--seeds': 0 is not in the range x>=1"),
        (["small", "--cluster", "slrum"], "cluster: 'slrum' is unknown (allowed: tls://HOST:PORT"),
        (["small", "--cluster", "tcp://192.0.2.1:8786"], "use tls://, or add --insecure on a network that you trust"),
        (["small", "--cluster", "slurm"], "jobs: is required with --cluster slurm"),
        (["small", "--cluster", "slurm", "--plan"], "cluster: is for simulating: leave it out with --plan"),
        (["small", "--insecure"], "insecure: applies only to --cluster tcp://HOST:PORT"),
        (["small", "--wait", "5"], "wait: applies only to --cluster"),
    ],
)
def test_unknown_names(words, problem):
    code, text = sentence(*words)
    assert code == 2
    assert problem in " ".join(text.split())


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("figure-1", "geomean(ours", "geomean(our", "figure-1.toml:LINE: unknown name 'our' (did you mean 'ours'?"),
        ("figure-1", "[plot]", "[plott]", "figure-1.toml: unknown name 'plott' (did you mean 'plot'?"),
        ("figure-1", 'runs = "main", metric = "throughput_ops_per_us", design = "$design"', 'metric = "t"',
         "values.ours: "),
        ("figure-1", 'workload = "Swap"', 'workload = "Swop"', "figure-1.toml:LINE: does not have 'Swop'"),
        ("figure-1", "place =", "place", "is not TOML"),
        ("paper", '"table-2"', '"table-3"', "table-3.toml"),
        ("paper", '["figure-1", "table-2"]', '["figure-1"]', "does not list table-2.toml"),
        ("paper", 'machine = "tiny"', 'machine = "tinny"', "unknown name 'tinny'"),
        ("figure-1", 'relation = "share"', 'relation = "shar"', "figure-1.toml:LINE: unknown name 'shar'"),
        ("figure-1", 'value = "60"', 'value = "about 60"', "figure-1.toml:LINE: 'about 60' is no number or range"),
        ("figure-1", 'value = "60"', 'value = "0"', "'0' is no share of two positive numbers"),
        ("figure-1", 'metric = "relative"\nx', 'metric = "other"\nx', "no published number has 'other'"),
        ("paper", "aliases = [", "aliases = 3 # [", "paper.toml: 3 is not of type 'array'"),
        ("paper", 'change = { design = "hercules"', 'change = { design = "herculess"', "unknown name 'herculess'"),
        ("paper", 'designs = ["opt", "hercules"]', 'designs = ["opt", "herkules"]', "unknown name 'herkules'"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_their_place(paper, file, old, new, problem):
    path = paper / f"{file}.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    code, complaint = sentence("small", "--no-store", "--readings")
    assert code in (2, 4)
    line = text[: text.index(old)].count("\n") + 1
    assert problem.replace("LINE", str(line)) in " ".join(complaint.split())


@pytest.mark.usefixtures("paper")
def test_a_report_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, text = sentence("small", "--no-store", "--report", blocked)
    assert code == 4
    assert str(blocked) in text
