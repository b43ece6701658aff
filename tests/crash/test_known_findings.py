"""Violations as SARIF, and findings that are known from an earlier campaign."""

import json
from pathlib import Path

import pytest

import command_line
import compiled
from durasim.crashes import known_findings, sarif

SOURCE = Path(__file__).with_name("causes.c")
ROOT = SOURCE.parents[2]


@pytest.fixture(scope="session")
def elf():
    return compiled.program(SOURCE)


def crash(elf, mistake, *options):
    words = ["crash", "--design", "opt", "--machine", "tiny", "--elf", elf, "--points", "40", "--fault", "clean"]
    return command_line.run(*words, "--check", f"check {mistake}", *options, "--", "run", mistake, cwd=ROOT)


def results(done):
    (run,) = json.loads(done.stdout)["runs"]
    assert run["tool"]["driver"]["name"] == "durasim"
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    return run["results"]


@pytest.fixture(scope="module")
def log(elf, tmp_path_factory):
    """The file of the findings of one mistake."""
    done = crash(elf, "missing-clean", "--format", "sarif")
    assert done.returncode == 1
    path = tmp_path_factory.mktemp("known") / "known.sarif"
    path.write_text(done.stdout)
    return path


def test_a_cause_is_a_result_at_its_line(log):
    (run,) = json.loads(log.read_text())["runs"]
    (result,) = run["results"]
    mark = next(
        number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if "/* missing-clean */" in line
    )
    assert (result["ruleId"], result["level"]) == ("no-clean", "error")
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "tests/crash/causes.c", "relative to the working folder"
    assert physical["region"] == {"startLine": mark}
    assert "baselineState" not in result
    related = [location["message"]["text"] for location in result["relatedLocations"]]
    assert any("relies on the store" in text for text in related)
    assert any("clean inserted after this" in text for text in related)


def test_only_known_findings_end_with_success(elf, log):
    done = crash(elf, "missing-clean", "--known", log)
    assert done.returncode == 0
    assert " 0 of " in done.stdout and "violations are not among the known findings" in done.stdout


def test_another_finding_is_new(elf, log):
    done = crash(elf, "wrong-order", "--known", log, "--format", "sarif")
    assert done.returncode == 1
    assert {result["baselineState"] for result in results(done)} == {"new"}
    known = crash(elf, "missing-clean", "--known", log, "--format", "sarif")
    assert {result["baselineState"] for result in results(known)} == {"unchanged"}


def test_violations_without_a_cause_are_known_by_their_message(tmp_path):
    """Workloads have no causes: their violations are results without a place."""
    words = [
        "crash",
        "--design",
        "volatile",
        "--workload",
        "btree",
        "--machine",
        "tiny",
        "--ops",
        "10",
        "--points",
        "10",
    ]
    done = command_line.run(*words, "--points", "10", "--fault", "clean", "--format", "sarif")
    assert done.returncode == 1
    found = results(done)
    assert found and all(result["ruleId"] == sarif.WITHOUT_CAUSE and "locations" not in result for result in found)
    log = json.loads(done.stdout)
    path = tmp_path / "known.sarif"
    path.write_text(json.dumps(log))
    assert command_line.run(*words, "--points", "10", "--fault", "clean", "--known", path).returncode == 0
    # A message that is not known makes all violations unknown: a message does not say which of them it covers.
    log["runs"][0]["results"] = log["runs"][0]["results"][1:]
    path.write_text(json.dumps(log))
    assert command_line.run(*words, "--points", "10", "--fault", "clean", "--known", path).returncode == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{}", "is not a SARIF file of durasim"),
        (b'{"runs": [{"results": [{"ruleId": "x"}]}]}', "is not a SARIF file of durasim"),
        (b"[" * 100_000, "is not a SARIF file of durasim"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_other_files_are_refused(tmp_path, text, words):
    path = tmp_path / "known.sarif"
    path.write_bytes(text)
    done = command_line.run("crash", "--design", "opt", "--workload", "btree", "--known", path)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "missing.sarif"
    done = command_line.run("crash", "--design", "opt", "--workload", "btree", "--known", path)
    assert done.returncode == 4
    assert "missing.sarif" in done.stderr


def test_an_empty_log_knows_nothing(tmp_path):
    path = tmp_path / "known.sarif"
    path.write_text(json.dumps({"version": "2.1.0", "runs": []}))
    assert known_findings.read(str(path)) == frozenset()
