"""Deliberate absences of ARCHITECTURE.md, checked against the sources."""

import re
import subprocess
from pathlib import Path

import pytest

import durasim as ds

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"//.*")
# The only places that read the host's clock: they fill the part `host` of a result.
CLOCKS = {
    "crates/machine/src/runs/run.rs",
    "crates/machine/src/runs/session.rs",
    "crates/crash/src/campaign.rs",
    "crates/binding/src/snapshots.rs",
}


def _code(*folders):
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [line for line in listed.splitlines() if line.endswith(".rs") and (ROOT / line).exists()]
    assert paths, folders
    return {path: COMMENT.sub("", (ROOT / path).read_text(encoding="utf-8")) for path in paths}


def _places(pattern, code):
    return {path for path, text in code.items() if re.search(pattern, text)}


def test_nothing_is_unsafe():
    assert _places(r"\bunsafe\b", _code("crates/*/src/*")) == set()


def test_no_order_comes_from_a_hash_map():
    assert _places(r"\bHash(Map|Set)\b", _code("crates/*/src/*")) == set()


def test_only_measurements_of_the_host_see_a_clock():
    assert _places(r"\bInstant\b|\bSystemTime\b", _code("crates/*/src/*")) <= CLOCKS


@pytest.mark.parametrize(
    "word",
    [
        r"\b(Ref|Once|Unsafe)?Cell\b",
        r"(?<!')\bstatic\s+(mut\s+)?[A-Z]",
        "thread_local",
        r"\bAtomic[A-Z]",
        r"\bMutex\b",
        r"std::(fs|env|time|net|thread)",
    ],
)
def test_a_design_has_no_hidden_state(word):
    assert _places(word, _code("crates/designs/src/*", "crates/contract/src/*")) == set()


def test_the_machine_knows_no_design_by_name():
    code = {
        path: text.split("#[cfg(test)]")[0]
        for path, text in _code("crates/machine/src/*", "crates/crash/src/*").items()
    }
    code = {path: text for path, text in code.items() if not path.endswith("presets.rs")}
    assert _places(_any_design(), code) == set()


def test_the_random_tester_knows_no_design_by_name():
    """The test plan of each design is declared with the design."""
    tester = {path: text for path, text in _code("crates/crash/tests/*").items() if "/loose_stores/" not in path}
    assert _places(_any_design(), tester) == set()


def _any_design():
    names = "|".join(re.escape(row["name"]) for row in ds.designs())
    return rf'"({names})"'


def test_recovery_has_no_self():
    contract = (ROOT / "crates/contract/src/registry.rs").read_text(encoding="utf-8")
    assert re.search(r"fn recover\(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage\)", contract)
