"""Allowed dependencies between the crates, as in ARCHITECTURE.md. The absence of an arrow is part of the design."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_USE = {
    "types": set(),
    "isa": {"types"},
    "contract": {"types"},
    "cache": {"types", "contract"},
    "memory": {"types", "contract"},
    "core": {"types", "isa", "cache"},
    "kernel": {"types", "isa"},
    "designs": {"types", "contract"},
    "machine": {"types", "isa", "contract", "cache", "memory", "core", "kernel"},
    "crash": {"types", "contract", "machine"},
    "test_plans": {"types", "contract"},
    "random": {"types", "isa", "contract", "memory", "core", "machine", "crash", "test_plans"},
    "models": set(),
    "py": {
        "types",
        "isa",
        "contract",
        "cache",
        "memory",
        "core",
        "kernel",
        "designs",
        "machine",
        "crash",
        "test_plans",
        "random",
    },
    # Tests all crates from outside. It is in no other set, because no shipped crate depends on it.
    "robustness": {
        "types",
        "isa",
        "contract",
        "cache",
        "memory",
        "core",
        "kernel",
        "designs",
        "machine",
        "crash",
        "random",
    },
}


def _folder(package):
    """The folder of a package in `crates`."""
    return package.removeprefix("durasim-").replace("-", "_")


@pytest.fixture(scope="module")
def packages():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {_folder(package["name"]): package for package in json.loads(done.stdout)["packages"]}


def test_every_crate_is_listed(packages):
    assert packages.keys() == MAY_USE.keys()


@pytest.mark.parametrize("crate", MAY_USE)
def test_a_crate_uses_only_allowed_dependencies(packages, crate):
    # Dependencies of tests are unrestricted: tests may combine crates that the program keeps separate.
    dependencies = {d["name"] for d in packages[crate]["dependencies"] if d["kind"] != "dev"}
    used = {_folder(name) for name in dependencies if name.startswith("durasim-")}
    assert used <= MAY_USE[crate]


def test_the_table_of_the_architecture_says_the_same():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    stated = {}
    for room, uses in re.findall(r"^\| `crates/(\w+)` \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE):
        names = set(re.findall(r"`(\w+)`", uses))
        if uses.startswith("all above"):
            names = set(stated) - names
        elif uses.startswith("all except"):
            names = MAY_USE.keys() - names - {room}
        stated[room] = names
    assert stated == MAY_USE


def test_only_the_binding_knows_python(packages):
    knowing = {name for name, p in packages.items() for d in p["dependencies"] if d["name"].startswith("pyo3")}
    assert knowing == {"py"}


def test_only_models_are_checked_for_all_states(packages):
    knowing = {name for name, p in packages.items() for d in p["dependencies"] if d["name"] == "stateright"}
    assert knowing == {"models"}


def test_every_fuzz_target_has_a_wrapper_for_cargo_fuzz_and_a_corpus():
    table = (ROOT / "crates/robustness/src/lib.rs").read_text(encoding="utf-8")
    canaries = table.index("pub const CANARIES")
    targets = set(re.findall(r'name: "(\w+)"', table[:canaries]))
    assert len(targets) >= 8
    assert {path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs")} == targets
    assert {name for name in targets if any((ROOT / "crates/robustness/corpus" / name).iterdir())} == targets


def test_the_corpus_stays_small():
    assert (
        sum(path.stat().st_size for path in (ROOT / "crates/robustness/corpus").rglob("*") if path.is_file()) < 450_000
    )


@pytest.mark.parametrize("main", sorted(ROOT.glob("crates/*/tests/main.rs")), ids=lambda main: main.parts[-3])
def test_a_program_of_tests_has_all_files_beside_it(main: Path):
    """With `autotests` off Cargo does not search for tests: a file that is not listed would not be compiled."""
    named = set(re.findall(r"^mod (\w+);$", main.read_text(encoding="utf-8"), re.MULTILINE))
    files = {path.stem for path in main.parent.glob("*.rs")} - {"main"}
    assert named == files | {path.parent.name for path in main.parent.glob("*/mod.rs")}
