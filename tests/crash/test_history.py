"""The history oracle on real runs: what each operation reported while it ran, against what the recovered pool holds."""

import json

import pytest

import durasim as ds
from durasim import _core, toolchain
from durasim.campaign import crash_request
from durasim.scenario import Scenario

DURABLE = [row["name"] for row in ds.designs() if not row["control"]]
WORKLOADS = [info.name for info in toolchain.workloads()]
# The control only passes where words of different locks lie on lines of their own.
SAFE = {"false-sharing": {"shared-lines": "false"}}


def judge(design, workload, threads=1, *, points=60, domain=None, settings=(), ops=None, **workload_args):
    arguments = {"populate": 24, **SAFE.get(workload, {}), **workload_args}
    scenario = Scenario(
        design=design,
        workload=workload,
        machine="tiny",
        threads=threads,
        ops=ops or 8 * threads,
        settings=settings,
        domain=domain,
        control=design == "opt" or domain is not None,
        workload_args=tuple((name, str(value)) for name, value in arguments.items()),
    )
    request = crash_request(scenario, points, None)
    elf = str(toolchain.build(workload, scenario.backend, history=True))
    request |= {"elf": elf, "elf_recover": elf, "check_args": [*request["check_args"], "--dump"]}
    return json.loads(_core.judge_history(json.dumps(request), points))


def objections(report, oracle="history"):
    return [(trial["event"], trial[oracle]) for trial in report["trials"] if trial[oracle] is not None]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("design", DURABLE)
def test_designs_keep_what_they_promise(design, workload, threads):
    report = judge(design, workload, threads)
    assert objections(report) == objections(report, "guest") == []
    assert len(report["trials"]) == 60
    # The root, each item that was populated, each operation.
    assert report["transactions"] == 1 + 24 + 8 * threads
    assert max(trial["dumped"] for trial in report["trials"]) > 24
    assert report["objects"] >= max(trial["dumped"] for trial in report["trials"])


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("threads", [1, 4])
def test_the_control_loses_what_was_acknowledged(workload, threads):
    report = judge("opt", workload, threads)
    assert any("is lost" in what or "from nowhere" in what for _, what in objections(report))
    # Whatever the guest's own check finds, the history shows too.
    assert {event for event, _ in objections(report, "guest")} <= {event for event, _ in objections(report)}


@pytest.mark.parametrize(
    ("design", "options"),
    [
        ("swl-eadr", {"domain": "adr"}),
        ("swl-flush", {"no-flush": "true"}),
    ],
)
def test_software_that_does_not_write_back_is_caught(design, options):
    assert any("is lost" in what or "half of" in what for _, what in objections(judge(design, "array-swap", **options)))


@pytest.mark.parametrize("design", ["swl-flush", "swl-eadr"])
def test_a_log_of_lines_brings_back_a_neighbours_word(design):
    """The false-sharing control: a transaction that is taken back takes words of others with it."""

    def objections_with(granularity):
        arguments = {"shared-lines": "true", "log-granularity": granularity}
        return objections(judge(design, "false-sharing", 4, points=150, ops=80, **arguments))

    assert any("is lost" in what or "half of" in what for _, what in objections_with("line"))
    assert objections_with("word") == []


@pytest.mark.parametrize("design", DURABLE)
def test_operations_go_on_on_another_core(design):
    """Six threads on two cores, with slices much shorter than a transaction."""
    settings = ("cores=2", "core.time_slice_cycles=3000", "core.context_switch_cycles=500")
    report = judge(design, "array-swap", 6, settings=settings)
    assert objections(report) == objections(report, "guest") == []


def test_aborted_attempts_are_forgotten():
    """Threads of one line abort each other under hercules: an operation reports once for each attempt."""
    report = judge("hercules", "false-sharing", 4, ops=80, **{"shared-lines": "true"})
    assert objections(report) == objections(report, "guest") == []


def test_a_program_without_a_history_is_refused():
    scenario = Scenario(design="tc", workload="btree", machine="tiny", ops=4)
    request = crash_request(scenario, 1, None)
    with pytest.raises(ds.GuestFault, match="is it a build with a history"):
        _core.judge_history(json.dumps(request), 1)
