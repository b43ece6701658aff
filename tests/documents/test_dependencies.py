"""docs/dependencies.md gives a reason for each direct dependency, and for no others."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")


def _explained(*headings):
    """The names in the first column of the tables below these headings."""
    names = set()
    for heading in headings:
        section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
        rows = re.findall(r"^\| ([^|]+) \|", section[1], re.MULTILINE)
        names |= {name for row in rows[2:] for name in row.strip().split(", ")}
    return names


def _manifest(path):
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_each_rust_dependency_is_explained():
    workspace = _manifest("Cargo.toml")["workspace"]["dependencies"]
    others = {name for name in workspace if not name.startswith("durasim-")}
    fuzz = {name for name in _manifest("fuzz/Cargo.toml")["dependencies"] if not name.startswith("durasim-")}
    assert _explained("Rust, in the simulator", "Rust, in tests and fuzzing") == others | fuzz


def test_each_python_dependency_is_explained():
    project = _manifest("pyproject.toml")["project"]
    extras = project["optional-dependencies"].values()
    listed = [*project["dependencies"], *(name for extra in extras for name in extra)]
    assert _explained("Python") == {re.match(r"[\w-]+", requirement)[0] for requirement in listed}


def test_each_package_of_the_page_is_explained_and_locked_with_a_hash():
    wanted = json.loads((ROOT / "page/package.json").read_text())["devDependencies"]
    locked = json.loads((ROOT / "page/package-lock.json").read_text())["packages"]
    assert _explained("TypeScript, in the page of `durasim explore`") == set(wanted)
    assert locked.pop("")["devDependencies"] == wanted
    for name, package in locked.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name
    assert all(locked[f"node_modules/{name}"]["version"] == version for name, version in wanted.items())


@pytest.mark.parametrize("manifest", sorted(ROOT.glob("crates/*/Cargo.toml")), ids=lambda path: path.parent.name)
def test_versions_are_stated_once(manifest):
    """A crate takes each dependency from the workspace, so one line of Cargo.toml and Cargo.lock pins it."""
    found = tomllib.loads(manifest.read_text(encoding="utf-8"))
    for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
        assert all(value == {"workspace": True} for value in found.get(kind, {}).values()), kind
