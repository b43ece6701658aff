"""The templates of `durasim new design`, and cores with designs of the user. `tests/long` builds one."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from durasim import _core
from durasim.templates import new_parts

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "own-designs.md"


@pytest.fixture
def made(program, tmp_path):
    """The folder of a design that `durasim new design` has written."""
    done = program("new", "design", "my-log", "--directory", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "./my-log crash --design my-log" in done.stdout
    return tmp_path / "my-log"


def test_all_placeholders_are_replaced(made):
    files = {str(path.relative_to(made)): path.read_text() for path in made.rglob("*") if path.is_file()}
    assert files.keys() >= {"my-log", "src/design.rs", "python/my_log/__init__.py", "pyproject.toml", "Cargo.lock"}
    assert not [name for name, text in files.items() if re.search("@[A-Z_]+@", text)]
    assert (made / "my-log").stat().st_mode & 0o111 == 0o111
    for name in ("my-log", "python/my_log/__init__.py", "python/my_log/__main__.py"):
        compile(files[name], name, "exec")
    assert files["Cargo.lock"] == (ROOT / "Cargo.lock").read_text()


def test_a_crate_uses_the_versions_and_the_crates_of_the_sources(made):
    crate = tomllib.loads((made / "Cargo.toml").read_text())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    for name, given in crate["dependencies"].items():
        if name.startswith("durasim-"):
            assert Path(given["path"]) == ROOT / workspace["dependencies"][name]["path"]
        else:
            assert given == workspace["dependencies"][name]
    assert tomllib.loads((made / "pyproject.toml").read_text())["project"]["scripts"] == {"my-log": "my_log:main"}


def test_a_design_is_refused_without_fitting_sources(refused, made, tmp_path, monkeypatch):
    new = ["new", "design"]
    refused([*new, "my-log", "--directory", made.parent], 2, "exists already")
    refused([*new, "My", "--directory", tmp_path], 2, "lower-case words")
    # A keyword, a module of Python, one of an installed package, and a crate that a design depends on.
    for name in ("class", "json", "polars", "serde"):
        refused([*new, name, "--directory", tmp_path], 2, "is a name of Python, Rust or durasim already")
    refused([*new, "other", "--directory", tmp_path, "--sources", tmp_path], 2, "has no sources of durasim")
    other = tmp_path / "sources"
    (other / "crates" / "binding").mkdir(parents=True)
    (other / "crates" / "binding" / "Cargo.toml").touch()
    (other / "Cargo.toml").write_text('[workspace.package]\nversion = "0.0.1"\n')
    refused([*new, "other", "--directory", tmp_path, "--sources", other], 2, "has durasim 0.0.1, and")
    (other / "Cargo.toml").write_text("[workspace")
    refused([*new, "other", "--directory", tmp_path, "--sources", other], 2, "is not TOML")
    # The sources of this version without their lock file.
    (other / "Cargo.toml").write_text((ROOT / "Cargo.toml").read_text())
    refused([*new, "other", "--directory", tmp_path, "--sources", other], 4, "Cargo.lock: No such file or directory")
    # As in an installed wheel.
    monkeypatch.setattr(new_parts, "__file__", str(tmp_path / "site" / "durasim" / "templates" / "new_parts.py"))
    refused([*new, "other", "--directory", tmp_path], 2, "installed without its sources", "--sources DIR")
    assert not (tmp_path / "other").exists()


def _python(code, **variables):
    environment = {name: text for name, text in os.environ.items() if not name.startswith("DURASIM_")}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment | variables, capture_output=True, text=True, check=False
    )


def test_a_core_is_loaded_from_its_file_and_names_its_command():
    code = (
        "import durasim; from durasim import _core; from durasim.runs.command import run_command;"
        "from durasim.runs.scenario import Scenario;"
        "print(_core.__file__, _core is durasim._core, run_command(Scenario(workload='btree')))"
    )
    done = _python(code, DURASIM_CORE=_core.__file__, DURASIM_COMMAND="./mine")
    assert done.stdout == f"{_core.__file__} True ./mine run --design opt --workload btree\n", done.stderr
    missing = _python("import durasim", DURASIM_CORE="/none.so")
    assert missing.returncode == 1
    assert missing.stderr.endswith("ImportError: DURASIM_CORE: there is no module /none.so: build it again\n")


def test_a_command_that_is_not_built_says_how(made):
    done = _python(f"import runpy; runpy.run_path({str(made / 'my-log')!r}, run_name='__main__')")
    assert done.returncode == 1
    assert done.stderr == f"my-log: it is not built: run `cargo build --release` in {made}\n"
    # Worker processes import it.
    assert _python(f"import runpy; runpy.run_path({str(made / 'my-log')!r})").returncode == 0


def test_the_tutorial_shows_the_sources_of_the_template():
    design = (new_parts.TEMPLATES / "design" / "design.rs.in").read_text().replace("@NAME@", "undo")
    blocks = re.findall(r"^```rust\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        for part in block.split("    // ...\n"):
            assert part in design, part
