"""A design outside of the repository: written, built, used from its command and from Python, broken, refused.

The blocks of docs/own-designs.md show the same steps and run too (`test_documents_in_full.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import run

pytestmark = [pytest.mark.long, pytest.mark.minutes(10), pytest.mark.xdist_group("own designs")]
ROOT = Path(__file__).resolve().parents[2]
# As for the pages of documents: the crates of durasim are compiled once.
TARGET = ROOT / "build" / "documents-target"
TIMEOUT_S = 3600
SMALL = ("--workload", "array-swap", "--machine", "tiny", "--ops", "4", "--arg", "populate=8")


class OwnDesign:
    """The folder of a design."""

    def __init__(self, folder: Path) -> None:
        made = run("new", "design", folder.name, "--directory", folder.parent)
        assert made.returncode == 0, made.stderr
        self.folder = folder

    def call(self, command: list[str], **changed: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the folder, in the environment of these tests."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("DURASIM_CO")}
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment |= {"CARGO_TARGET_DIR": str(TARGET), "PATH": path, **changed}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )

    def build(self) -> None:
        """Builds the module."""
        done = self.call(["cargo", "build", "--release", "--offline"])
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr, done.stderr

    def replace(self, old: str, new: str) -> None:
        """Replaces the only place where the design has this text."""
        source = self.folder / "src" / "design.rs"
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        source.write_text(text.replace(old, new), encoding="utf-8")

    def document(self, *words: str, code: int = 0) -> dict:
        """Runs the command of the design and returns its document."""
        done = self.call([f"./{self.folder.name}", *words, "--json", "-"])
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> OwnDesign:
    """A design as `durasim new design` writes it, built."""
    made = OwnDesign(tmp_path_factory.mktemp("own") / "my-log")
    made.build()
    return made


def test_it_is_run_crashed_and_swept_beside_the_designs_of_durasim(design):
    names = [row["name"] for row in design.document("designs")]
    assert names[0] == "opt"
    assert names[-1] == "my-log"
    crashed = design.document("crash", "--design", "my-log", *SMALL)
    assert crashed["violations"] == 0
    assert crashed["trials"] > 100
    build = design.document("run", "--design", "my-log", *SMALL)["provenance"]["durasim_build"]
    assert build.endswith("+my-log")
    # Worker processes load the same designs.
    study = design.folder / "study.toml"
    study.write_text(
        'name = "s"\ndesigns = ["my-log", "tc"]\nworkloads = ["array-swap"]\nmachine = "tiny"\nops = 4\n'
        'args = { populate = 8 }\n[axes]\n"design.my-log.log_records" = [256, 512]\n'
    )
    swept = design.document("sweep", "study.toml", "--no-store", "--jobs", "2")
    assert len(swept["points"]) == 3
    random = design.document("campaign", "--random", "--design", "my-log", "--runs", "20")
    assert random["violations"] == 0


def test_its_package_is_used_from_python(design):
    code = (
        "import my_log; verdict = my_log.crash(design='my-log', workload='array-swap', machine='tiny', ops=4,"
        " workload_args={'populate': 8}, points=20); print(verdict.violations, verdict.trials > 20)"
    )
    done = design.call([sys.executable, "-c", code], PYTHONPATH=str(design.folder / "python"))
    assert done.stdout == "0 True\n", done.stderr
    late = design.call([sys.executable, "-c", "import durasim, my_log"], PYTHONPATH=str(design.folder / "python"))
    assert "import my_log before durasim" in late.stderr


def test_campaigns_catch_its_planted_faults(design):
    found = design.document("mutation", "--design", "my-log")
    assert (found["caught"], found["missed"]) == (found["mutants"], [])
    assert found["mutants"] >= 6


def test_a_wrong_edit_is_found_and_a_name_that_exists_is_refused(tmp_path):
    design = OwnDesign(tmp_path / "broken")
    right = "if self.fault.is(planted::ONE_RECORD_PER_LINE) && has_record {"
    design.replace(right, "if has_record {")
    design.build()
    crashed = design.document("crash", "--design", "broken", *SMALL, code=1)
    assert crashed["violations"] > 0
    failure = crashed["failures"][0]
    assert failure["command"].startswith("./broken crash --design broken")
    assert design.call(failure["command"].split()).returncode == 1
    design.replace("if has_record {", right)
    design.replace('    name: "broken",', '    name: "tc",')
    design.build()
    refused = design.call(["./broken", "designs"])
    assert refused.returncode == 1
    assert refused.stderr == "broken: the design 'tc' exists already: choose another name\n"
