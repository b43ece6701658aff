"""Replays: an id identifies one failure permanently, and its timeline lists the lines, stores and copies involved."""

import dataclasses

import pytest

from durasim.crashes import timeline
from durasim.crashes.crash_request import CrashOptions, prepare_crash
from durasim.runs.scenario import Scenario

REPLAYS = 5
SEEDS = range(1, 40)

# Failing controls: the run, the faults, and the expected part of the id of the failure.
CASES = {
    "clean": ("opt", None, {}, "clean", "e"),
    "torn": ("opt", "media", {}, "torn", ":torn"),
    "reorder": ("swl-flush", None, {"no-fence": "true"}, "reorder", ":reorder"),
    "energy": ("opt", "eadr", {}, "clean", ":energy.1048576"),
    "hardware's recovery": ("hercules", "media", {}, "clean", "/r1"),
    "program's recovery": ("swl-flush", None, {"no-flush": "true"}, "nested", "/g"),
    "recrash": ("swl-eadr", "adr", {}, "recrash", "+e"),
}


def scenario_of(design, domain, arguments):
    arguments = {"populate": "20", **arguments}
    return Scenario(
        design=design, workload="array-swap", machine="tiny", ops=12, control=True, domain=domain,
        workload_args=tuple(arguments.items()),
    )  # fmt: skip


def crash(scenario, options):
    return prepare_crash(scenario, options).crash()


def failure_of(scenario, fault, sign):
    """Finds a run of this kind with a failure with this sign; every result lists only its first failures."""
    for seed in SEEDS:
        seeded = dataclasses.replace(scenario, seed=seed)
        failures = crash(seeded, CrashOptions(12, (fault,))).failures
        # Campaigns do not judge an interrupted recovery with the result of an uninterrupted one, and where energy
        # ends early recovery says so: a failure of a clean power failure is one with these signs too.
        if sign.startswith(("/r", ":energy")) and failures:
            failures = crash(seeded, CrashOptions(replay=failures[0].id + sign)).failures
        for failure in failures:
            if sign in failure.id and "bytes" in failure.oracle:
                return seeded, failure
    raise AssertionError(f"no failure with {sign} in {SEEDS}")


@pytest.mark.parametrize("name", CASES)
def test_a_failure_replays_the_same_way_every_time(name, conforms):
    design, domain, arguments, fault, sign = CASES[name]
    scenario, failure = failure_of(scenario_of(design, domain, arguments), fault, sign)
    first = None
    for _ in range(REPLAYS):
        result = crash(scenario, CrashOptions(replay=failure.id))
        # A replay has no information about similar failures of other trials.
        assert result.failures == (dataclasses.replace(failure, alike=1),)
        first = first or result.to_dict()
        assert result.to_dict()["timeline"] == first["timeline"]
    conforms("crash", first)
    data = first["timeline"]
    assert {objection["oracle"] for objection in data["objections"]} == set(failure.oracle.split("+"))
    for width, columns in ((80, 80), (100, 100), (200, 100), (40, 80)):
        shown = timeline.timeline_text(data, width).plain
        assert failure.id in shown
        assert all(len(line) <= columns for line in shown.splitlines()), shown
    kinds = [phase["kind"] for phase in data["phases"]]
    runs = [phase["program"] for phase in data["phases"] if phase["kind"] == "run"]
    assert kinds[0] == "run"
    assert runs[1:] == ["recovery"] * failure.id.count("/g") + ["work"] * failure.id.count("+e")
    cuts = [phase["cut_at_write"] for phase in data["phases"] if phase["kind"] == "hardware_recovery"]
    assert len([cut for cut in cuts if cut is not None]) == failure.id.count("/r")
    assert failure.id.startswith(f"e{data['phases'][0]['failure']['event']}")


def words_at(seen, line):
    return next(one["words"] for one in seen if one["line"] == line)


def test_the_line_the_store_and_the_copy_that_was_lost_are_named():
    """Software logging without cleans on a machine that loses its caches: acknowledged stores stay in them."""
    # In this run copies are lost in the first-level cache as well as in the last-level one.
    scenario = dataclasses.replace(scenario_of("swl-eadr", "adr", {}), seed=6)
    data = []
    for failure in crash(scenario, CrashOptions(120, ("clean",))).failures:
        timeline_of = crash(scenario, CrashOptions(replay=failure.id)).to_dict()["timeline"]
        run = timeline_of["phases"][0]
        assert run["kind"] == "run"
        assert run["failure"]["event"] == int(failure.id[1:])
        assert [phase["kind"] for phase in timeline_of["phases"][1:]] == ["hardware_recovery", "program_recovery"]
        for line in timeline_of["lines"]:
            number = line["line"]
            wrong = [word for word in range(8) if line["found"][word] not in {e[word] for e in line["expected"]}]
            stores = [h for h in run["events"] if h["what"] == "store" and h["line"] == number]
            lost = [c for c in run["copies"] if c["line"] == number and c["dirty"] and not c["survived"]]
            assert words_at(timeline_of["phases"][-1]["lines"], number) == line["found"]
            for word in wrong:
                value = int(line["expected"][0][word], 16)
                last = [s for s in stores if s["offset"] == 8 * word][-1:]
                held = [c["place"] for c in lost if c["words"][word] == line["expected"][0][word]]
                acknowledged = [t["tx"] for t in timeline_of["transactions"] if t["state"] == "acknowledged"]
                if held and last and int(last[0]["new"], 16) == value and last[0]["tx"] in acknowledged:
                    shown = timeline.timeline_text(timeline_of).plain
                    assert f"line {number:#x}" in shown
                    assert f"transaction {last[0]['tx']}: +{8 * word:#04x}" in shown
                    assert f"{held[0]}, dirty, lost" in shown
                    data.append(held[0])
    assert any(place.startswith("l1d of core 0") for place in data), data
    assert any(place == "llc" for place in data), data


def test_a_reported_loss_is_shown():
    result = crash(scenario_of("opt", "eadr", {}), CrashOptions(replay="e400:energy.64"))
    assert (result.violations, result.losses_reported) == (0, 1)
    data = result.to_dict()["timeline"]
    run, recovery = data["phases"]
    assert run["dirty_shutdown"]
    assert "64 bytes" in run["failure"]["how"]
    assert data["reported_loss"] in recovery["losses"]
    assert all(line["found"] is None for line in data["lines"])
    assert "recovery reports data loss" in timeline.timeline_text(data).plain


def test_a_replay_that_passes_is_reported_too():
    scenario = scenario_of("tc", None, {})
    result = crash(scenario, CrashOptions(replay="e1000/r1"))
    assert result.violations == 0
    data = result.to_dict()["timeline"]
    assert data["objections"] == []
    assert len(data["lines"]) >= 1
    last = data["transactions"][-1]
    assert f"transaction {last['tx']}, the last one" in data["lines_chosen_because"]
    # The transaction cache contains the lines of the open transaction.
    assert last["state"] == "open"
    assert {trace["place"] for trace in data["phases"][0]["traces"]} == {"tc.core0", "shadow_homes"}
    cut, again = data["phases"][1:]
    assert (cut["cut_at_write"], cut["writes_total"], again["cut_at_write"]) == (1, 0, None)
    assert again["writes_total"] > 0
    for line in data["lines"]:
        assert line["found"] in line["expected"]


def test_campaigns_have_no_timeline():
    result = crash(scenario_of("opt", None, {}), CrashOptions(4, ("clean",)))
    assert result.timeline is None
    assert result.shrunk is None
