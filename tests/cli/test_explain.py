"""`durasim explain`: categories of cycles and origins of bytes, whose sums are exact."""

import copy
import json
import re
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import durasim as ds
import elf_files
import samples
from durasim.documents.explanation import explain_all
from durasim.documents.explanation_rows import QUANTITIES, by_workload, rows_of
from durasim.documents.stall_categories import category_of

ROOT = Path(__file__).resolve().parents[2]
OPT = {"front_end": 500, "execution": 20, "load.pmem": 300, "load.llc": 80, "store_queue.llc": 5}
TC = {"front_end": 450, "load.pmem": 310, "store_queue.structure.transaction_cache": 900, "fence.queue": 11}
SMALL = ["--machine", "tiny", "--ops", "30", "--arg", "populate=30"]


def _run(stalls, design="opt", **changes):
    return ds.RunResult.from_dict(samples.stalled(stalls, design=design, **changes))


def _threads(last_commits, **changes):
    """A run on hardware threads that committed last in these cycles."""
    document = samples.stalled({"front_end": 100}, **changes)
    core = document["stats"]["core"]
    for number, cycle in enumerate(last_commits):
        core[str(number)] = {"cycle": {"value": cycle, "unit": "cycles", "description": "Cycle."}}
    return ds.RunResult.from_dict(document)


def _differences(explained):
    return {category.name: category.difference for category in explained.cycles}


def test_a_category_is_the_sum_of_its_counters():
    (explained,) = ds.explain(_run(OPT), _run(TC, "tc", base=410)).explained
    assert _differences(explained) == {
        "base": 10, "front_end": -50, "execution": -20, "memory.pmem": 10, "memory.llc": -85,
        "structure.transaction_cache": 900, "fence": 11,
    }  # fmt: skip
    assert explained.core_cycles_difference == explained.design.region_cycles - explained.baseline.region_cycles == 776
    (llc,) = (category for category in explained.cycles if category.name == "memory.llc")
    assert [(part.name, part.baseline) for part in llc.counters] == [("load.llc", 80), ("store_queue.llc", 5)]
    assert explained.bytes_difference == 0
    assert [(part.name, part.design) for part in explained.bytes if part.design] == [("data", 640)]


@pytest.mark.parametrize(
    ("counter", "category"),
    [
        ("system", "system"),
        ("abort", "abort"),
        ("load.private_caches", "memory.private_caches"),
        ("store.translation", "memory.translation"),
        ("store_queue.queue", "queue"),
        ("store_queue.commit", "commit"),
        ("store_queue.order", "order"),
        ("commit.structure.fifo", "structure.fifo"),
        ("commit.llc", "commit"),
        ("fence.store_buffer", "fence"),
        ("atomic.other_core", "atomic"),
        ("atomic.design", "design"),
    ],
)
def test_each_counter_has_one_category(counter, category):
    assert category_of(counter) == category


def test_every_counter_of_the_machine_has_a_category():
    """The names in the sources, so that a new place or cause cannot be forgotten."""
    name = re.compile(r"(?:StallPlace|StallCause)::\w+(?:\(_\))? => \"(\w+)\"")
    places = name.findall((ROOT / "crates/core/src/core/stall_place.rs").read_text(encoding="utf-8"))
    causes = name.findall((ROOT / "crates/types/src/stall.rs").read_text(encoding="utf-8"))
    assert len(places) == 6 and len(causes) == 16
    for place in places:
        for cause in causes:
            assert category_of(f"{place}.{cause}{'.log' if cause == 'structure' else ''}")
    for unknown in ("load", "load.moon", "moon.llc", "frontend", "fence."):
        with pytest.raises(
            ds.ConfigError, match=re.escape(f"stats: the stall counter core.stalls.{unknown} is unknown")
        ):
            category_of(unknown)


COUNTERS = ("front_end", "execution", "system", "abort", "load.llc", "load.pmem", "load.queue", "store_queue.llc",
            "store_queue.structure.log", "commit.path", "commit.structure.log", "fence.path", "atomic.llc")  # fmt: skip
STALLS = st.dictionaries(st.sampled_from(COUNTERS), st.integers(0, 10**15), min_size=1)
ORIGINS = st.lists(st.integers(0, 10**12), min_size=5, max_size=5)


def _drawn(design, stalls, base, origins):
    names = ("data", "log", "metadata", "migration", "checkpoint")
    written = {"total": sum(origins)} | dict(zip(names, origins, strict=True))
    return _run(stalls, design, base=base, pmem_write_bytes=written)


RUNS = st.tuples(STALLS, st.integers(1, 10**15), ORIGINS)


@settings(deadline=None, max_examples=50)
@given(RUNS, st.lists(RUNS, min_size=1, max_size=3))
def test_all_that_is_shown_adds_up_to_the_difference(first, others):
    baseline = _drawn("opt", *first)
    runs = [_drawn(f"d{number}", *drawn) for number, drawn in enumerate(others)]
    explanation = ds.explain(baseline, *runs)
    assert ds.Explanation.from_dict(json.loads(explanation.to_json())) == explanation
    frame = explanation.to_frame().group_by("design", "unit").agg(polars.col("baseline", "value", "difference").sum())
    sums = {row[:2]: row[2:] for row in frame.iter_rows()}
    for run in runs:
        before, after = baseline.roi.cycles, run.roi.cycles
        assert sums[run.design, "cycles"] == (before, after, after - before)
        before, after = baseline.pmem_write_bytes.total, run.pmem_write_bytes.total
        assert sums[run.design, "bytes"] == (before, after, after - before)
    (group,) = by_workload(explanation)
    for quantity, wide in (("cycles", False), ("bytes", False), ("bytes", True)):
        *rows, whole = rows_of(group, quantity, wide=wide)
        assert whole.is_sum and whole.baseline == sum(row.baseline for row in rows)
        assert whole.differences == tuple(sum(row.differences[at] for row in rows) for at in range(len(runs)))


@settings(deadline=None, max_examples=25)
@given(RUNS, RUNS)
def test_bars_are_as_high_as_the_runs(first, second):
    baseline, run = _drawn("opt", *first), _drawn("tc", *second)
    explanation = ds.explain(baseline, run)
    for quantity, of in (("cycles", lambda r: r.roi.cycles), ("bytes", lambda r: r.pmem_write_bytes.total)):
        if of(baseline) + of(run):
            values = explanation.plot(quantity).to_dict()["data"]["values"]
            for each in (baseline, run):
                assert sum(row["value"] for row in values if row["bar"] == each.design) == of(each)


def test_a_row_of_all_counters_belongs_to_its_category():
    group = list(ds.explain(_run(OPT), _run(TC, "tc")).explained)
    rows = rows_of(group, "cycles", wide=True)
    labels = [row.label for row in rows]
    at = labels.index("memory: llc")
    assert labels[at + 1 : at + 3] == ["- load: llc", "- store queue: llc"]
    assert sum(row.baseline for row in rows if row.label[0] != "-" and not row.is_sum) == rows[-1].baseline
    assert "- front end" not in labels, "a category of one counter is that counter"


def test_idle_cycles_of_hardware_threads_are_a_category():
    # Two hardware threads commit until the end; a third one has ended before the region began.
    busy = _threads([5000, 5003], roi__cycles=250, threads=2)
    helped = _threads([5000, 5003, 900], design="spht", roi__cycles=250, threads=2)
    (explained,) = ds.explain(busy, helped).explained
    assert (explained.baseline.hardware_threads, explained.design.hardware_threads) == (2, 3)
    assert _differences(explained) == {"base": 0, "idle": 250, "front_end": 0}
    assert explained.core_cycles_difference == 3 * 250 - 2 * 250
    note = "cycles are summed over hardware threads (opt 2, spht 3); cycles of the region: opt 250, spht 250"
    assert f"btree: {note}" in ds.explain(busy, helped).summary().notes


def test_a_hardware_thread_that_is_ahead_is_not_idle_and_one_that_ends_early_is():
    machine = {"name": "tiny", "core": {"context_switch_cycles": 30}}
    for last, idle in (([5000, 5025], 0), ([5000, 4960], 40), ([5000, 4960, 5020], 40), ([4700, 5000], 250)):
        run = _threads(last, roi__cycles=250, configuration=machine)
        (explained,) = ds.explain(run, run).explained
        assert {of.name: of.baseline for of in explained.cycles}.get("idle", 0) == idle, last


def test_cycles_beyond_the_instructions_are_idle():
    few = _threads([5000, 5003], roi__cycles=250, roi__instructions=30, threads=2)
    (explained,) = ds.explain(few, _threads([5000, 5003], roi__cycles=250, threads=2, design="tc")).explained
    assert [(of.name, of.baseline) for of in explained.cycles[:2]] == [("base", 30), ("idle", 370)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"workload": "sps"}, "workload: is sps in b and btree in the baseline a"),
        ({"machine": "other"}, "machine: is other in b and tiny"),
        ({"ops": 11}, "ops: is 11 in b and 10"),
        ({"threads": 2}, "threads: is 2 in b and 1"),
        ({"seed": 2}, "seed: is 2 in b"),
        ({"provenance__scale": "quick"}, "scale: is quick in b and paper"),
        ({"provenance__durasim_build": "ff"}, "durasim_build: is ff in b and 0011"),
        ({"durasim_version": "0.0.9"}, "durasim_version: is 0.0.9 in b"),
        ({"provenance__fast_forward": "roi"}, "fast_forward: is functional start in b and no functional start"),
        ({"provenance__workload_args": {"populate": 11}}, "arg populate: is 11 in b and 10"),
        ({"configuration": {"name": "tiny", "cores": 2}}, "cores: is 2 in b and 4"),
        ({"configuration__tlb": {"entries": 4}}, "tlb.entries: is 4 in b and not set in the baseline a"),
        ({"provenance__functional": True}, "functional: b is a functional run, which has no cycles to explain"),
        ({"stats": {}}, "stats: b has no counters core.stalls: run it again"),
        ({"roi__cycles": 100}, "stats: the stall counters of b have 1,671 of 1 x 100 cycles"),
        ({"roi__instructions": 20}, "stats: the stall counters of b have 1,671 of 1 x 2,071 cycles"),
        ({"pmem_write_bytes__total": 641}, "pmem_write_bytes: the origins of b add up to 640 of 641 bytes"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(refused, tmp_path, monkeypatch, change, sentence):
    monkeypatch.chdir(tmp_path)
    first, second = samples.stalled(OPT), samples.stalled(TC, design="tc", **copy.deepcopy(change))
    Path("a").write_text(json.dumps(first))
    Path("b").write_text(json.dumps(second))
    refused(["explain", "a", "b"], 2, sentence)
    with pytest.raises(ds.ConfigError, match=re.escape(sentence.partition(":")[0])):
        ds.explain(*(ds.RunResult.from_dict(document) for document in (first, second)))


def test_parameters_and_arguments_of_a_design_may_differ():
    a = _run(OPT, configuration={"name": "tiny", "design": {"opt": {}}})
    b = _run(
        TC, "tc", configuration={"name": "tiny", "design": {"tc": {"entries": 4}}}, domain="nv-tc",
        provenance__workload_args={"populate": 10, "node-bytes": 5440, "log-bytes": 4096},
        provenance__set=["design.tc.entries=4"],
    )  # fmt: skip
    assert ds.explain(a, b).explained[0].design.set == ("design.tc.entries=4",)


def test_a_thread_that_starts_inside_of_the_region_is_refused():
    with pytest.raises(ds.ConfigError, match="let the region begin after its threads have started"):
        ds.explain(_threads([5000, 4000], roi__cycles=40, threads=2), _threads([5000, 4000], threads=2, design="tc"))


def test_one_design_with_two_parameters_has_two_names():
    runs = [_run(OPT, provenance__set=[f"design.opt.x={number}"]) for number in (1, 2)]
    bars = ds.explain(_run(OPT), *runs).plot().to_dict()["data"]["values"]
    assert list(dict.fromkeys(row["bar"] for row in bars)) == ["opt", "opt design.opt.x=1", "opt design.opt.x=2"]
    bars = ds.explain(_run(OPT), _run(OPT)).plot().to_dict()["data"]["values"]
    assert list(dict.fromkeys(row["bar"] for row in bars)) == ["opt (1)", "opt (2)"]


@pytest.mark.parametrize(
    "path",
    [
        ("core_cycles_difference",), ("bytes_difference",), ("design", "core_cycles"), ("cycles", 0, "design"),
        ("cycles", 1, "difference"), ("cycles", 1, "counters", 0, "baseline"), ("bytes", 0, "difference"),
        ("baseline", "pmem_write_bytes"),
    ],
)  # fmt: skip
def test_a_document_whose_sums_are_wrong_is_refused(path):
    document = samples.explanation()
    *folders, name = path
    at = document["explained"][0]
    for folder in folders:
        at = at[folder]
    at[name] += 1
    with pytest.raises(ds.ConfigError, match=r"^(cycles|bytes).*: the parts of tc on btree add up to .* is damaged$"):
        ds.Explanation.from_dict(document)


def test_two_errors_that_cancel_are_found():
    document = samples.explanation()
    first, second = document["explained"][0]["cycles"][:2]
    first["design"] += 1
    second["design"] -= 1
    with pytest.raises(ds.ConfigError, match="cycles"):
        ds.Explanation.from_dict(document)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Saved results of three designs on btree, and the results."""
    compared = ds.compare(
        designs=["opt", "hercules", "tc"], workloads=["btree"], machine="tiny", ops=30, workload_args={"populate": 30}
    )
    folder = tmp_path_factory.mktemp("saved")
    for run in compared.runs:
        (folder / f"{run.design}.json").write_text(run.to_json())
    return folder, compared.runs


def test_real_runs_are_explained_exactly(program, conforms, saved):
    folder, runs = saved
    result = program(
        "explain", "--workload", "btree", "--designs", "hercules,tc", "--baseline", "opt", *SMALL, "--no-store",
        "--json", "-",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    conforms("explain", document)
    opt, *designs = runs
    assert [explained["design"]["design"] for explained in document["explained"]] == ["hercules", "tc"]
    for run, explained in zip(designs, document["explained"], strict=True):
        assert explained["design"]["digest"] == run.digest
        assert explained["core_cycles_difference"] == run.roi.cycles - opt.roi.cycles
        assert sum(of["difference"] for of in explained["cycles"]) == run.roi.cycles - opt.roi.cycles
        written = run.pmem_write_bytes.total - opt.pmem_write_bytes.total
        assert sum(of["difference"] for of in explained["bytes"]) == explained["bytes_difference"] == written
        counted = {
            part["name"]: part["design"]
            for of in explained["cycles"] for part in of["counters"] if part["design"]
        }  # fmt: skip
        assert counted == {
            path.removeprefix("core.stalls."): stat.value
            for path, stat in run.stats.walk() if path.startswith("core.stalls.") and stat.value
        }  # fmt: skip
        (base,) = (of for of in explained["cycles"] if of["name"] == "base")
        assert base["design"] == run.roi.cycles - sum(counted.values())
        assert run.roi.instructions / run.configuration["core"]["width"] <= base["design"] <= run.roi.instructions
    tc = {of["name"]: of["difference"] for of in document["explained"][1]["cycles"]}
    assert tc["structure.transaction_cache"] > 0.9 * document["explained"][1]["core_cycles_difference"]
    from_files = program("explain", *(folder / f"{run.design}.json" for run in runs), "--json", "-")
    assert json.loads(from_files.stdout) == document
    assert ds.explain(*runs).to_dict() == document
    arguments = {"machine": "tiny", "ops": 30, "workload_args": {"populate": 30}}
    assert ds.explain(workloads=["btree"], designs=["opt", "hercules", "tc"], **arguments).to_dict() == document


def test_forms_and_charts(program, conforms, saved, tmp_path):
    files = [saved[0] / f"{design}.json" for design in ("opt", "tc")]
    frame = polars.read_csv(program("explain", *files, "--format", "csv").stdout.encode())
    assert set(frame["unit"]) == {"cycles", "bytes"}
    assert "store_queue.structure.transaction_cache" in frame["counter"].to_list()
    conforms("explain", json.loads(program("explain", *files, "--format", "json").stdout))
    markdown = program("explain", *files, "--format", "markdown").stdout
    assert "| category | opt | tc† - opt |" in markdown and "| - load: pmem |" in markdown
    shown = program("explain", *files).stdout
    assert "structure: transaction cache" in shown and "others" in shown and "load: pmem" not in shown
    assert "load: pmem" in program("explain", *files, "--wide").stdout
    for name, begin in (("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE")):
        assert program("explain", *files, "--plot", tmp_path / name).returncode == 0
        data = (tmp_path / name).read_bytes()
        assert data.startswith(begin)
        if name != "a.png":
            assert b"structure: transaction cache" in data and b"metadata" in data


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "explain: give --workloads, a program with --elf, or two results"),
        (["opt.json"], "opt.json is one result: give that of the baseline and at least another one"),
        (["opt.json", "tc.json", "--ops", "3"], "ops: is about runs, and files of results are given"),
        (["opt.json", "tc.json", "--no-store"], "no-store: is about runs"),
        (["opt.json", "tc.json", "--plot", "a.pdf"], "plot: 'a.pdf' ends with none of .svg, .png, .html"),
        (["opt.json", "text"], "text is not JSON"),
        (["opt.json", "sweep"], "sweep is a document durasim-sweep/2, and no result of `durasim run --json`"),
        (["opt.json", "list"], "list is a document without a schema"),
        (["--workload", "btree", "--designs", "opt"], "designs: gives only opt, the baseline"),
        (["--workload", "btree", "--designs", "tc", "--baseline", "otp"], "baseline: unknown name 'otp'"),
        (["--workload", "btree", "--designs", "tca"], "designs: unknown name 'tca'"),
        (["--workload", "btree", "--designs", "tc", "--set", "design.kiln.x=1"], "design.kiln.x: "),
        (["opt.json", "tc.json", "--format", "csv", "--json", "-"], "format: cannot be combined with --json -"),
    ],
)
def test_wrong_usage_is_refused(refused, saved, monkeypatch, words, sentence):
    folder, _ = saved
    (folder / "text").write_text("x")
    (folder / "list").write_text("[]")
    (folder / "sweep").write_text(json.dumps(samples.sweep()))
    monkeypatch.chdir(folder)
    refused(["explain", *words], 2, sentence)


def test_a_missing_file_or_folder_is_an_error_of_the_host(refused, saved):
    folder, _ = saved
    refused(["explain", folder / "opt.json", folder / "none.json"], 4, "No such file")
    refused(
        ["explain", folder / "opt.json", folder / "tc.json", "--plot", folder / "none" / "a.svg"], 4, "No such file"
    )


def test_results_and_arguments_about_runs_exclude_each_other(saved):
    _, (opt, *others) = saved
    with pytest.raises(ds.ConfigError, match="ops: is about runs, and the results of runs are given"):
        ds.explain(opt, *others, ops=3)
    with pytest.raises(ds.ConfigError, match="requires a run beside that of the baseline"):
        ds.explain(opt)
    with pytest.raises(ds.ConfigError, match="did you mean 'cycles'"):
        ds.explain(opt, *others).plot("cycle")


def test_interrupted_runs_are_explained_where_their_baseline_is_done():
    runs = [_run(OPT), _run(TC, "tc"), _run(TC, "tc", workload="sps"), _run(OPT, workload="queue")]
    explanation = explain_all(runs, "opt", 6)
    assert [explained.workload for explained in explanation.explained] == ["btree"]
    assert explanation.runs_wanted == 6


def test_quantities_are_those_of_the_document():
    assert set(QUANTITIES) <= {*samples.explanation()["explained"][0]}


def test_a_program_takes_the_words_as_its_arguments(program, hello, refused):
    words = ["explain", "--elf", hello, "--machine", "tiny", "--designs", "hercules", "--no-store"]
    result = program(*words, "--json", "-", "--", "one", "two")
    assert result.returncode == 0, result.stderr
    (explained,) = json.loads(result.stdout)["explained"]
    assert explained["workload"] == "hello"
    assert explained["core_cycles_difference"] == sum(of["difference"] for of in explained["cycles"])
    refused([*words, "--workload", "btree"], 2, "workloads: give either workloads or a program with elf")


def test_a_program_that_fails_is_explained_with_exit_code_1(program, elf, tmp_path):
    failing = elf(elf_files.elf64(elf_files.exit_with(3)), "failing")
    words = ["explain", "--elf", failing, "--machine", "tiny", "--designs", "tc", "--no-store"]
    result = program(*words, "--plot", tmp_path / "a.svg")
    assert result.returncode == 1, result.stderr
    assert "category" in result.stdout
    # The program writes nothing to persistent memory, so there is one chart.
    text = (tmp_path / "a.svg").read_text()
    assert "where cycles went" in text and "pmem" not in text
