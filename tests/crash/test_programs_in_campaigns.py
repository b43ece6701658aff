"""Programs of the user in campaign files, and the minimization of their failures."""

import json
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds
import schemas

CAUSES = Path(__file__).with_name("causes.c")
PRINTED = Path(__file__).with_name("printed.c")
FILE = """
name = "programs"
[[program]]
elf = "causes"
args = ["run", "missing-clean", {words}]
check = "check missing-clean {check}"
designs = ["opt"]
domains = "all"
seeds = 2
points = 20
faults = ["clean", "reorder"]
[[program]]
elf = "printed"
args = ["run", "markers", "none", "{threads}", "{seed}"]
check = "check"
oracle = ["output"]
threads = [1, 3]
designs = ["opt"]
points = 20
faults = ["clean"]
"""


@pytest.fixture
def folder(tmp_path):
    for source in (CAUSES, PRINTED):
        (tmp_path / source.stem).symlink_to(compiled.program(source))
    return tmp_path


def described(words):
    """Returns the file for a program whose command and check get these words too."""
    quoted = f'"{words}"' if words else ""
    return FILE.replace("{words}", quoted).replace("{check}", words)


def campaign(folder, words, **options):
    path = folder / "campaign.toml"
    path.write_text(described(words), encoding="utf-8")
    return ds.campaign(path, **options)


def test_right_programs_survive_and_are_counted_by_domain(folder):
    result = campaign(folder, "right")
    assert result["failed_checks"] == []
    causes = [row for row in result["results"] if row["workload"] == "causes"]
    assert {"adr", "eadr"} <= {row["domain"] for row in causes}
    assert {row["runs"] for row in causes} == {2}
    (printed,) = [row for row in result["results"] if row["workload"] == "printed"]
    assert (printed["domain"], printed["runs"]) == ("adr", 2), "two numbers of threads"


def test_a_wrong_program_fails_with_a_command_and_a_second_campaign_repeats_nothing(folder):
    path = folder / "results.sqlite"
    first = campaign(folder, "", store=path)
    assert first["violations"] > 0
    assert all("--check 'check missing-clean'" in failure["command"] for failure in first["failures"])
    second = campaign(folder, "", store=path)
    assert (first["units_resumed"], second["units_resumed"]) == (0, first["units"])
    assert second["failures"] == first["failures"]
    assert second["causes"] == first["causes"] != []


def test_violations_of_a_program_are_listed_with_their_causes(folder):
    store = folder / "results.sqlite"
    result = campaign(folder, "", store=store)
    found = [(of["domain"], of["seed"], cause) for of in result["causes"] for cause in of["causes"]["found"]]
    assert {("adr", 1), ("adr", 2)} <= {(domain, seed) for domain, seed, _ in found}
    assert all(of["command"].startswith("durasim crash ") for of in result["causes"])
    (line,) = [n for n, text in enumerate(CAUSES.read_text().splitlines(), 1) if "/* missing-clean */" in text]
    stores = [cause["stores"][0] for _, _, cause in found]
    assert {(store["at"]["line"], cause["missing"]) for store, (_, _, cause) in zip(stores, found, strict=True)} == {
        (line, "no-clean")
    }
    frame = result.causes_frame()
    assert frame.height == len(found)
    assert set(frame["place"]) == {f"causes.c:{line} in missing_clean"}
    assert frame["violations"].sum() == result["violations"]
    path = folder / "campaign.toml"
    shown = command_line.run("campaign", path, "--store", store, "--json", folder / "campaign.json")
    assert shown.returncode == 1
    assert f"one cause: causes.c:{line} in missing_clean: the store of 8 bytes is lost" in shown.stdout
    document = json.loads((folder / "campaign.json").read_text())
    schemas.validate("campaign", document)
    assert document["causes"] == result["causes"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('check = "check', "'check' is a required property"),
        ('designs = ["opt"]', "'designs' is a required property"),
        ('oracle = ["output"]', "oracle"),
        ('args = ["run", "markers"', "threads of .*printed have no effect"),
    ],
)
def test_a_file_with_a_mistake_is_refused(folder, line, words):
    text = "\n".join(given for given in described("").splitlines() if not given.startswith(line) or "oracle" in line)
    path = folder / "campaign.toml"
    path.write_text(text.replace('["output"]', '["bytes"]'), encoding="utf-8")
    with pytest.raises(ds.ConfigError, match=words):
        ds.campaign(path)


def test_numbers_of_a_program_are_made_smaller(folder):
    done = command_line.run(
        "crash", "--design", "opt", "--machine", "tiny", "--points", "40", "--fault", "clean",
        "--oracle", "output", "--elf", folder / "printed", "--check", "check", "--shrink",
        "--", "run", "markers", "count-not-cleaned", "6",
    )  # fmt: skip
    assert done.returncode == 1
    assert " -- run markers count-not-cleaned 1\n" in done.stdout


def test_a_check_that_fails_without_a_crash_is_said_at_once(folder):
    words = {"args": ["run", "markers"], "check_args": ["refuse"]}
    with pytest.raises(ds.DurasimError, match="the check fails without a power failure: exit code 1: refused"):
        ds.crash(design="opt", machine="tiny", elf=folder / "printed", points=5, **words)
