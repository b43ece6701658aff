"""`durasim trace`: the file has what the counters of the run have, and the run is that without a trace."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

import durasim as ds
import perfetto_file
from durasim import ConfigError, HostIoError
from perfetto_file import COUNTER, INSTANT

RUN = ["--workload", "btree", "--machine", "tiny", "--ops", "30", "--arg", "populate=20"]
# Designs with hooks of all kinds, and two cores that share lines.
CASES = {
    "opt": {"design": "opt"},
    "tc": {"design": "tc"},
    "kiln": {"design": "kiln"},
    "hercules": {"design": "hercules"},
    "two-threads": {"design": "tc", "threads": 2},
    "software": {"design": "swl-flush"},
}
# The part of a result that differs from run to run.
NOT_COMPARED = {"host"}


def _fields(case):
    return {"workload": "array-swap", "machine": "tiny", "ops": 10, "workload_args": {"populate": 10}, **CASES[case]}


@pytest.fixture(scope="module", params=CASES)
def traced(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "run.pftrace"
    result = ds.trace(path, **_fields(request.param))
    return request.param, result, perfetto_file.read(path.read_bytes())


def _counted(events):
    return [event for event in events if "counted" in event.categories]


def test_a_traced_run_is_the_run_itself(traced):
    case, result, _ = traced
    plain = ds.run(**_fields(case)).to_dict()
    found = result.run.to_dict()
    assert {name: found[name] for name in found.keys() - NOT_COMPARED} == {
        name: plain[name] for name in plain.keys() - NOT_COMPARED
    }


def test_slices_of_stalls_are_the_counters_of_stalls(traced):
    _, result, trace = traced
    sums = Counter()
    for stall in _counted(trace.of("stall")):
        sums[stall.name] += stall.cycles
    stalls = dict(_flat(result.run.to_dict()["stats"]["core"]["stalls"]))
    assert dict(sums) == {name: cycles for name, cycles in stalls.items() if cycles}
    assert sum(sums.values()) > 0


def _flat(tree, before=""):
    for name, value in tree.items():
        if isinstance(value, dict) and "value" not in value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value["value"] if isinstance(value, dict) else value


def test_stalls_of_a_core_are_on_one_track(traced):
    *_, trace = traced
    assert {event.track for event in trace.of("stall")} <= {f"cores/core {core}: stalls" for core in range(8)}


def test_transactions_and_commits_are_those_of_the_counters(traced):
    _, result, trace = traced
    ended = Counter(event.name for event in _counted(trace.of("transaction")))
    assert ended["transaction"] == result.run.tx.committed
    assert ended["aborted transaction"] == result.run.tx.aborted
    assert len(_counted(trace.of("commit", INSTANT))) == result.run.tx.committed > 0
    assert all(event.track.startswith("threads/thread ") for event in trace.of("transaction"))


def test_evictions_are_those_of_the_counters(traced):
    _, result, trace = traced
    stats = result.run.to_dict()["stats"]
    found = Counter()
    for event in _counted(trace.of("eviction", INSTANT)):
        level = event.track.removeprefix("caches/").partition(" ")[0].rstrip(":")
        found[level, "evictions"] += 1
        found[level, "write_backs"] += event.name == "write-back"
    for level in ("l1d", "l2", "llc"):
        for what in ("evictions", "write_backs"):
            expected = dict(_flat(stats.get(level, {}))).get(what, 0)
            assert found[level, what] == expected, (level, what)


def test_persist_events_are_all_there_in_order(traced):
    _, result, trace = traced
    found = [event.arguments["event"] for event in trace.of("persist_event", INSTANT)]
    assert sorted(found) == list(range(1, len(found) + 1))
    kinds = Counter(event.name for event in _counted(trace.of("persist_event", INSTANT)))
    stats = dict(_flat(result.run.to_dict()["stats"]["events"]))
    assert {kind: number for kind, number in stats.items() if number} == dict(kinds)


def test_queues_and_structures_have_counters(traced):
    case, _, trace = traced
    queue = trace.on("persistent memory/controller 0: write queue")
    assert max(event.value for event in queue) > 0
    reads = trace.on("persistent memory/controller 0: reads in flight")
    assert min(event.value for event in reads) == 0
    assert reads[-1].value == 0
    structures = {event.track for event in trace.on("design ")}
    assert ("design tc/transaction_cache" in structures) == (CASES[case]["design"] == "tc")
    assert all(event.kind == COUNTER for event in trace.on("design "))


def test_a_window_is_a_part_of_the_whole(traced, tmp_path):
    case, result, trace = traced
    begin, end = result.run.program.cycles // 3, result.run.program.cycles // 2
    path = tmp_path / "part.pftrace"
    part = ds.trace(path, from_cycle=begin, to_cycle=end, **_fields(case))
    found = perfetto_file.read(path.read_bytes())
    assert (part.from_cycle, part.to_cycle, part.run.digest) == (begin, end, result.run.digest)
    assert 0 < part.events < result.events
    assert all(begin <= event.at < end and (event.until or 0) <= end for event in found.events)
    sums = [
        sum(max(0, min(stall.until, end) - max(stall.at, begin)) for stall in of.of("stall")) for of in (trace, found)
    ]
    assert sums[0] == sums[1] > 0
    instants = [
        [(event.name, event.at) for event in of.of("eviction", INSTANT) if begin <= event.at < end]
        for of in (trace, found)
    ]
    assert instants[0] == instants[1]


def test_a_power_failure_ends_the_trace(tmp_path, program):
    path, document = tmp_path / "failed.pftrace", tmp_path / "run.json"
    words = ["--workload", "btree", "--machine", "tiny", "--ops", "4", "--arg", "populate=4", "--design", "tc"]
    replayed = program("crash", *words, "--replay", "e9", "--json", "-")
    failure = json.loads(replayed.stdout)["timeline"]["phases"][0]["failure"]
    result = program("trace", *words, "--replay", "e9:torn.1", "--output", path, "--json", document)
    assert result.returncode == 0, result.stderr
    assert "open it in https://ui.perfetto.dev" in result.stdout
    trace = perfetto_file.read(path.read_bytes())
    (shown,) = [event for event in trace.of("run", INSTANT) if event.name == "power failure"]
    assert (shown.at, shown.arguments["replay"]) == (failure["cycle"], "e9:torn.1")
    assert max(event.arguments["event"] for event in trace.of("persist_event", INSTANT)) == 9
    assert max(event.until or event.at for event in trace.events) == shown.at + 1
    # The run goes on, as in a campaign.
    assert json.loads(document.read_text())["guest_exit_code"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"from_cycle": 10**9}, ["from_cycle", "the run ends in cycle"]),
        ({"from_cycle": 20, "to_cycle": 20}, ["to_cycle", "empty"]),
        ({"from_cycle": -1}, ["from_cycle", "between 0 and 2^63 - 1"]),
        ({"to_cycle": 2**64}, ["to_cycle", "between 0 and 2^63 - 1"]),
        ({"replay": "e0"}, ["replay", "persist events"]),
        ({"replay": "later"}, ["replay", "not the id of a trial"]),
        ({"replay": "e3", "from_cycle": 10**9}, ["from_cycle"]),
        ({"functional": True}, ["functional", "no cycles"]),
        ({"persistence_report": True}, ["persistence_report", "leave it out"]),
        ({"snapshot_at": 0, "snapshot": "machine"}, ["snapshot_at", "durasim run"]),
    ],
)
def test_refusals(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        ds.trace("run.pftrace", **_fields("tc") | options)
    assert all(word in str(refused.value) for word in words), refused.value
    assert list(tmp_path.iterdir()) == [], "no partial file"


def test_more_events_than_a_trace_has_room_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fields = {"design": "opt", "workload": "btree", "machine": "tiny", "ops": 100_000}
    with pytest.raises(ConfigError, match=r"to_cycle: .* 1000000 events from cycle 0 to \d+"):
        ds.trace("run.pftrace", **fields)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["missing/run.pftrace", "/dev/full", "/proc/run.pftrace", "-", "pipe", "."])
def test_a_place_that_takes_no_file(refused, tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    refused(["trace", *RUN, "--output", place], 4, place, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_the_file_is_named(refused):
    refused(["trace", *RUN], 2, "output", "required")


def test_no_partial_file_when_the_disk_fills_up(tmp_path):
    """Simulates a full file system by a limit on the size of files, which also applies to root."""
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
    start = "sys.argv[0] = 'durasim'; runpy.run_module('durasim', run_name='__main__')"
    words = ["trace", *RUN, "--output", str(tmp_path / "run.pftrace")]
    command = [sys.executable, "-B", "-c", limit + start, *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 4, result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_if_the_run_fails(tmp_path):
    path = tmp_path / "run.pftrace"
    path.write_bytes(b"before")
    with pytest.raises(ConfigError):
        ds.trace(path, max_instructions=50, **_fields("tc"))
    with pytest.raises(HostIoError):
        ds.trace(tmp_path, **_fields("tc"))
    assert path.read_bytes() == b"before"
