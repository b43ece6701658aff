"""`durasim mutation`: designs with planted faults are caught, sound designs and equivalent mutants are not.

`make test-all` tries every mutant, `make test-deep` every campaign. `make test` tries the quickest ones of each design,
of different kinds, and its canary.
"""

import json
import os
import re
import tomllib
from dataclasses import replace

import pytest

import command_line
import durasim
from durasim.crashes.mutants import all_mutants, chosen_mutants, first_objection, run_mutants
from durasim.crashes.test_plans import plan_of, plans
from durasim.errors import GuestFault, InternalError
from durasim.programs import toolchain
from durasim.store.database import Store
from durasim.store.reuse import Reuse

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DESIGNS = [row["name"] for row in durasim.designs() if not row["control"]]
SEEN_MIN = 15
# How many campaigns of each design: the first ones catch the most.
SOME_OR_ALL = [1, pytest.param(None, marks=[pytest.mark.long, pytest.mark.deep])]
SOME_EQUIVALENT = 6
CANARIES = [(design, of.canary) for design, of in plans().items() if of.canary is not None]


def _missed(design, names):
    return [outcome.mutant.path for outcome in run_mutants(chosen_mutants(design, names)).missed]


@pytest.mark.parametrize("design", DESIGNS)
def test_quick_faults_are_caught(design):
    assert _missed(design, plan_of(design).quick_faults) == []


def test_a_campaign_that_is_too_long_without_a_fault_catches_none(monkeypatch):
    monkeypatch.setattr("durasim.crashes.mutants.INSTRUCTIONS_MAX", 10_000)
    with pytest.raises(InternalError, match="exceeds the instruction limit even without a fault"):
        run_mutants(chosen_mutants("swl-flush", plan_of("swl-flush").quick_faults))


def test_the_seed_that_catches_a_fault_is_reported(monkeypatch):
    """A campaign runs with its seeds in turn, up to the first with a violation."""
    tried = []

    def crash(request):
        tried.append(json.loads(request)["seed"])
        failures = [{"oracle": "bytes", "message": "one byte differs"}] if tried[-1] == 3 else []
        return json.dumps({"violations": len(failures), "failures": failures, "host": {"seconds": 0.5}})

    monkeypatch.setattr("durasim.crashes.mutants._core.crash", crash)
    campaign = replace(plan_of("tc").campaigns[0], seeds=5)
    assert first_objection("tc", None, campaign) == ("bytes", "one byte differs", 3)
    assert tried == [1, 2, 3]
    assert first_objection("tc", None, replace(campaign, seeds=2)) is None


def test_stored_campaigns_answer_a_repeated_command(tmp_path, monkeypatch):
    path, store = tmp_path / "out.json", tmp_path / "s.sqlite"
    words = ("mutation", "--design", "tc", "--mutant", "freed-at-issue", "--store", store, "--json", path)
    first = _durasim(*words)
    assert (first.returncode, "store" in first.stderr) == (0, False), first.stderr
    document = path.read_bytes()
    again = _durasim(*words)
    assert "of 1 results are from the store" in again.stderr
    assert path.read_bytes() == document
    with Store(store) as opened:
        (entry,) = opened.entries()
        assert (entry.kind, entry.command) == ("mutant", "durasim mutation --design tc --mutant freed-at-issue")
        assert "violations" in _durasim("results", "show", entry.key, "--store", store).stdout
    # A program that fails before any crash is a result, an error of the host is none.
    for error, is_kept in ((GuestFault("it jumps to 0"), True), (InternalError("no thread"), False)):
        monkeypatch.setattr("durasim.crashes.mutants._core.crash", _raising(error))
        with Store(tmp_path / f"{is_kept}.sqlite") as opened:
            asked = [Reuse(opened), Reuse(opened)]
            outcomes = [run_mutants(chosen_mutants("tc", ["freed-at-issue"]), reuse=reuse) for reuse in asked]
            assert outcomes[0].to_dict()["caught_by"] == {"tc/freed-at-issue": "run"}
            assert (outcomes[0] == outcomes[1], asked[1].reused) == (is_kept, int(is_kept))


def _raising(error):
    def crash(_request):
        raise error

    return crash


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", [fault for fault in all_mutants() if fault.equivalent is None], ids=lambda of: of.path
)
def test_all_planted_faults_are_caught(fault):
    assert run_mutants([fault]).missed == []


@pytest.mark.parametrize(("design", "fault"), CANARIES)
def test_canary_design_that_drops_one_log_entry_is_caught(design, fault):
    assert _missed(design, [fault]) == []


@pytest.mark.parametrize("campaigns", SOME_OR_ALL)
@pytest.mark.parametrize("design", DESIGNS)
def test_sound_designs_pass_the_same_campaigns(design, campaigns):
    for campaign in plan_of(design).campaigns[:campaigns]:
        assert first_objection(design, None, campaign) is None, campaign


@pytest.mark.parametrize("campaigns", SOME_OR_ALL)
@pytest.mark.parametrize("design", DESIGNS)
def test_equivalent_faults_are_not_caught(design, campaigns):
    """Each campaign has one seed: with all of them the 17 equivalent faults of P-INSPECT take an hour."""
    equivalent = [fault for fault in chosen_mutants(design) if fault.equivalent is not None]
    for fault in equivalent[: None if campaigns is None else SOME_EQUIVALENT]:
        for campaign in plan_of(design).campaigns[:campaigns]:
            assert first_objection(design, fault, replace(campaign, seeds=1)) is None, (fault, campaign)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_durable_design_has_enough_faults(design):
    faults = chosen_mutants(design)
    assert sum(fault.equivalent is None for fault in faults) >= SEEN_MIN
    assert len({fault.name for fault in faults}) == len(faults)


def test_the_lists_of_the_logs_agree():
    header = (toolchain.guest_folder() / "runtimes" / "planted.h").read_text()
    known = {name.replace("_", "-") for name in re.findall(r"X\(([a-z_]+)\)", header)} - {"name", "none", "fault"}
    folder = toolchain.guest_folder() / "runtimes" / "planted"
    listed = [tomllib.loads(path.read_text())["planted"] for path in sorted(folder.glob("*.toml"))]
    assert known == {fault["name"] for faults in listed for fault in faults}
    assert known == {fault.name for fault in all_mutants() if fault.in_guest}


def _durasim(*arguments):
    # Wide enough that no sentence in a table is wrapped.
    return command_line.run(*arguments, env=os.environ | {"COLUMNS": "200"})


def test_the_document_and_the_table():
    result = _durasim("mutation", "--design", "tc", "--mutant", "freed-at-issue", "--json", "-")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["mutants"], document["caught"], document["missed"]) == (1, 1, [])
    assert document["seconds_to_catch"]["tc/freed-at-issue"] > 0
    assert document["caught_with_seed"]["tc/freed-at-issue"] == 1
    equivalent = _durasim("mutation", "--design", "tc", "--mutant", "copying-entries-lost")
    assert equivalent.returncode == 0
    assert "recovery discards them" in " ".join(equivalent.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("crash", "--planted", "--design", "tc"), "was moved to its own command: `durasim mutation`"),
        (("mutation", "--design", "opt"), "design: unknown name 'opt'"),
        (("mutation", "--mutant", "nonsense"), "mutant: unknown name 'nonsense'"),
        (("run", "--design", "swl-eadr", "--workload", "btree", "--arg", "planted=record-skipped"), "'planted'"),
        (("run", "--design", "tc", "--workload", "btree", "--set", "design.tc.planted=freed-at-issue"), "planted"),
    ],
)
def test_faults_are_reachable_by_mutation_alone(arguments, words):
    result = _durasim(*arguments)
    assert result.returncode == 2, result.stdout
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
