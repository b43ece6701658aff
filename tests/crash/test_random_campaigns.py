"""Random campaigns: equal requests give equal documents, one command repeats a violation, and refusals."""

import json
from pathlib import Path

import jsonschema
import pytest

import command_line
import durasim as ds
from durasim.crashes import random_runs
from durasim.crashes.test_plans import plan_of
from durasim.store.database import Store


def conforms(document, name):
    schema = json.loads((Path(ds.__file__).parent / "schemas" / name).read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


def command(*words):
    return command_line.run("campaign", *words)


def test_equal_requests_give_equal_documents(tmp_path):
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    words = ("--random", "--design", "tc", "--design", "opt", "--runs", "8", "--seed", "3", "--json")
    assert [command(*words, str(path)).returncode for path in paths] == [0, 0]
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    document = json.loads(first)
    conforms(document, "random.json")
    assert (document["seed"], document["runs"], document["violations"]) == (3, 8, 0)
    assert [(row["design"], row["runs"]) for row in document["designs"]] == [("tc", 4), ("opt", 4)]
    assert all(row["loads"] > 1000 and row["images"] > 10 for row in document["designs"])
    assert document["trials"] == sum(
        row[n] for row in document["designs"] for n in ("images", "reordered", "interrupted")
    )


def test_all_designs_are_tried_for_so_long():
    reported = []
    document = ds.random_campaign(seconds=0.001, progress=lambda *said: reported.append(said))
    conforms(document, "random.json")
    assert reported[0] == (1, None)
    assert {"tc", "hercules", "lad"} < {row["design"] for row in document["designs"]}


def test_blocks_of_a_campaign_are_stored_and_answer_longer_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(random_runs.Blocks, "RUNS", 8)
    store, paths = tmp_path / "s.sqlite", [tmp_path / name for name in ("few.json", "many.json", "new.json")]
    words = ("--random", "--design", "tc", "--design", "opt", "--seed", "3")

    def run(number, path, *more):
        done = command(*words, "--runs", number, "--json", path, *more)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "store" not in run(10, paths[0], "--store", store)
    # The first eight are a block; the other two are one of their own.
    assert "8 of 18 results are from the store" in run(18, paths[1], "--store", store)
    assert "18 of 18 results are from the store" in run(18, paths[1], "--store", store)
    monkeypatch.setattr(random_runs.Blocks, "RUNS", 200)
    run(18, paths[2], "--no-store")
    assert paths[1].read_bytes() == paths[2].read_bytes()
    with Store(store) as opened:
        kept = [(entry.kind, opened.get(entry.key)["runs"]) for entry in opened.entries()]
        assert kept == [("random", 8), ("random", 2), ("random", 8), ("random", 2)]
        assert opened.entries()[0].command == "durasim campaign --random --design tc --design opt --runs 8 --seed 3"
        shown = command_line.run("results", "show", opened.entries()[0].key, "--store", store, "--json", "-")
    conforms(json.loads(shown.stdout), "random.json")
    # A campaign for some time begins with stored runs.
    monkeypatch.setattr(random_runs.Blocks, "RUNS", 8)
    reported = []
    ds.random_campaign(["tc", "opt"], seconds=0.001, seed=3, store=store, progress=lambda *said: reported.append(said))
    assert reported[0] == (8, None)
    assert "store" not in run(2, paths[0], "--store", store, "--seed", "4")


def test_failures_of_blocks_are_those_of_the_campaign(monkeypatch):
    canary = plan_of("tc").canary
    whole = random_runs.run(["tc"], 20, None, 1, lambda *_: None, planted=canary)
    monkeypatch.setattr(random_runs.Blocks, "RUNS", 5)
    assert random_runs.run(["tc"], 20, None, 1, lambda *_: None, planted=canary) == whole
    assert whole["failures"]


def test_a_violation_is_one_command_that_makes_it_again():
    canary = plan_of("tc").canary
    document = random_runs.run(["tc"], 20, None, 1, lambda *_: None, planted=canary)
    conforms(document, "random.json")
    failure = document["failures"][0]
    assert failure["command"] == f"durasim campaign --random --design tc --replay {failure['id']}"
    again = random_runs.replay("tc", failure["id"], canary)
    conforms(again, "random-replay.json")
    assert (again["message"], again["settings"]) == (failure["message"], failure["settings"])
    sound = command("--random", "--design", "tc", "--replay", failure["id"])
    assert sound.returncode == 0, sound.stderr
    assert sound.stdout.endswith("no violation\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quick", "--random"), "file: cannot be combined with --random"),
        (("quick", "--runs", "3"), "runs: requires --random"),
        (("--random", "--replay", "one-1"), "design: is required once"),
        (("--random", "--replay", "one-1", "--design", "tc", "--runs", "3"), "runs: cannot be combined with --replay"),
        (("--random", "--replay", "one-1", "--design", "tc", "--no-store"), "no_store: cannot be combined with --repl"),
    ],
)
def test_what_is_no_random_campaign_is_refused(words, said):
    result = command(*words)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ds.random_campaign(runs=0), "runs: 0 is less than 1"),
        (lambda: ds.random_campaign(seconds=0), "seconds: 0 is not above 0"),
        (lambda: ds.random_campaign(seed=-1), "seed: -1 is not from 0"),
        (lambda: ds.random_campaign(["hercule"]), "hercules"),
        (lambda: ds.random_replay("tc", "e7"), "replay: 'e7' is no run"),
    ],
)
def test_numbers_and_names_that_are_not_allowed_are_refused(call, said):
    with pytest.raises(ds.ConfigError, match=said):
        call()
