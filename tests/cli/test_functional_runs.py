"""`durasim run --functional`: it counts like a detailed run, without time, and refuses options that need a machine."""

import pytest

import durasim as ds
from pairing import rows_with

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

OBJECTS = {"machine": "tiny", "ops": 40, "workload_args": {"no-profile": "true"}}
# Values independent of the sweeps of the pointer update thread, which occur at other times here.
COUNTS = (
    *(f"checks.{kind}" for kind in ("load", "store_h", "store_both")),
    *("handlers.2", "handlers.3", "fwd.lookups", "fwd.inserts", "trans.lookups", "trans.inserts", "changes"),
)


def _values(tree, above=""):
    for name, below in tree.items():
        if "unit" in below:
            yield above + name, below["value"]
        else:
            yield from _values(below, f"{above}{name}.")


# With these items no sweep starts at the end of only one of the runs, which would change the active filter once more.
@pytest.mark.parametrize(
    ("workload", "populate"), [("hashmap", 1000), ("arraylistx", 200), ("btree", 200), ("kv-pmap", 200)]
)
def test_checks_of_one_thread_are_those_of_a_detailed_run(workload, populate):
    more = OBJECTS | {"seed": 2, "workload_args": OBJECTS["workload_args"] | {"populate": populate}}
    runs = [
        ds.run(design="p-inspect", workload=f"pinspect-{workload}", functional=functional, **more).to_dict()
        for functional in (False, True)
    ]
    detailed, functional = (dict(_values(run["stats"]["p_inspect"])) for run in runs)
    assert {name: detailed[name] for name in COUNTS} == {name: functional[name] for name in COUNTS}
    assert functional["checks.load"] > 0
    assert functional["fwd.inserts"] > 0
    assert [run["ops"] for run in runs] == [40, 40]
    assert runs[0]["tx"] == runs[1]["tx"]


def test_sweeps_are_counted_by_the_instructions_of_their_thread():
    more = OBJECTS | {"ops": 2000, "threads": 2}
    run = ds.run(design="p-inspect", workload="pinspect-hashmap", functional=True, **more).to_dict()
    counts = dict(_values(run["stats"]["p_inspect"]))
    assert counts["put.calls"] > 0
    assert 0 < counts["put.instructions"] < run["roi"]["instructions"] / 2


@pytest.mark.parametrize("design", rows_with("transactions"))
def test_transactions_are_counted(conforms, design):
    run = ds.run(design=design, workload="btree", machine="tiny", ops=40, functional=True).to_dict()
    conforms("run", run)
    assert (run["ops"], run["tx"]["committed"]) == (40, 40)
    assert (run["roi"]["cycles"], run["pmem_write_bytes"]["total"]) == (0, 0)
    assert 0 < run["roi"]["instructions"] < run["program"]["instructions"]
    assert run["provenance"]["functional"]


def test_the_table_has_no_line_that_is_not_measured(program):
    result = program("run", "--functional", "--workload", "btree", "--machine", "tiny", "--ops", "40")
    assert result.returncode == 0, result.stderr
    for name in ("cycles", "pmem written", "latency", "throughput"):
        assert name not in result.stdout
    assert "transactions committed" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--fast-forward", "roi"), "a functional run has no machine state"),
        (("--snapshot-at", "0", "--snapshot", "state.snap"), "a functional run has no machine state"),
    ],
)
def test_what_needs_a_machine_is_refused(program, tmp_path, arguments, sentence):
    options = [str(tmp_path / option) if option.endswith(".snap") else option for option in arguments]
    result = program("run", "--functional", "--workload", "btree", "--machine", "tiny", "--ops", "40", *options)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
