"""Writes parts of the user outside of this repository from the templates of the package."""

from __future__ import annotations

import json
import keyword
import os
import re
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from durasim import _core
from durasim._core import __version__
from durasim.errors import host_io, refusal

TEMPLATES = Path(__file__).parent
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_name(name: str) -> None:
    """Refuses a name that no workload or design can have.

    Raises:
        ConfigError: It does not consist of lower-case words joined by `-`.
    """
    if not _NAME.fullmatch(name):
        raise refusal("name", f"{name!r} does not consist of lower-case words, with digits, joined by -")


def new_workload(name: str, directory: str) -> list[Path]:
    """Writes the source and the table of a workload, and returns both paths.

    Raises:
        ConfigError: The name is not allowed, or a file exists already.
        HostIoError: A file cannot be written.
    """
    check_name(name)
    folder = Path(directory)
    source = folder / f"{name}.cpp"
    path = os.fspath(source) if os.sep in os.fspath(source) else f"./{source}"
    words = {"@NAME@": name, "@PATH@": path}
    made = {source: "workload/workload.cpp", folder / f"{name}.toml": "workload/workload.toml"}
    return write_all({file: filled(template, words) for file, template in made.items()})


_DESIGN_FILES = {
    ".gitignore": "gitignore",
    "Cargo.toml": "Cargo.toml",
    "@NAME@": "command",
    "pyproject.toml": "pyproject.toml",
    "src/lib.rs": "lib.rs",
    "src/design.rs": "design.rs",
    "src/planted.rs": "planted.rs",
    "src/test_plan.rs": "test_plan.rs",
    "python/@MODULE@/__init__.py": "package/__init__.py",
    "python/@MODULE@/__main__.py": "package/__main__.py",
}
# Names that a package of Python, a crate or a command has already.
_NAMES_TAKEN = frozenset({
    "core", "design", "durasim", "planted", "pyo3", "python", "schemars", "serde", "std", "test", "test-plan",
})  # fmt: skip


def new_design(name: str, directory: str, sources: str | None) -> Path:
    """Writes a crate with a design, and the package of Python around it. Returns its folder.

    Args:
        name: The name of the design, the crate, and its command.
        directory: The folder in which the folder `name` is made.
        sources: A checkout of the sources of durasim; None for the one that durasim was installed from.

    Raises:
        ConfigError: The name is not allowed, a file exists already, or there are no sources of this version.
        HostIoError: A file cannot be read or written.
    """
    check_name(name)
    module = name.replace("-", "_")
    is_taken = name in _NAMES_TAKEN or keyword.iskeyword(module) or find_spec(module) is not None
    if is_taken:
        raise refusal("name", f"{name!r} is a name of Python, Rust or durasim already: choose another name")
    registered = json.loads(_core.designs())
    if name in {each for row in registered for each in (row["name"], row["hardware"], *row["aliases"])}:
        raise refusal("name", f"the design {name!r} exists already: choose another name")
    root = _sources(sources)
    # The crate is built with the versions of its dependencies that the workspace has.
    dependencies = _toml(root / "Cargo.toml")["workspace"]["dependencies"]
    words = {"@NAME@": name, "@MODULE@": module, "@VERSION@": __version__}
    words |= {f"@{crate.upper()}@": _toml_of(dependencies[crate]) for crate in ("pyo3", "schemars", "serde")}
    crates = ("binding", "contract", "test_plans", "types")
    words |= {f"@{crate.upper()}@": _toml_of(os.fspath(root / "crates" / crate)) for crate in crates}
    folder = Path(directory) / name
    texts = {
        folder / _replaced(file, words): filled(f"design/{template}.in", words)
        for file, template in _DESIGN_FILES.items()
    }
    write_all(texts | {folder / "Cargo.lock": _text(root / "Cargo.lock")})
    try:
        (folder / name).chmod(0o755)
    except OSError as error:
        raise host_io(folder / name, error) from None
    return folder


def _sources(given: str | None) -> Path:
    """Returns the folder with the sources of durasim, which has to be of the installed version."""
    root = Path(__file__).parents[3] if given is None else Path(given)
    if not (root / "crates" / "binding" / "Cargo.toml").is_file():
        if given is not None:
            raise refusal("sources", f"{given} has no sources of durasim: crates/binding is missing")
        raise refusal(
            "sources",
            f"durasim was installed without its sources, which a design is compiled with: give a checkout of version "
            f"{__version__} with --sources DIR",
        )
    version = _toml(root / "Cargo.toml")["workspace"]["package"]["version"]
    if version != __version__:
        raise refusal("sources", f"{root} has durasim {version}, and {__version__} is installed")
    return root.resolve()


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise refusal("sources", f"{path} is not TOML: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise host_io(path, error if isinstance(error, OSError) else OSError(0, "is no text")) from None


def _toml_of(value: Any) -> str:
    """Returns a value of TOML: a text, or a table of texts, lists and truth values on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml_of(of)}" for name, of in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def filled(template: str, words: Mapping[str, str]) -> str:
    """Returns the text of a template with its placeholders replaced."""
    return _replaced((TEMPLATES / template).read_text(encoding="utf-8"), words)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for placeholder, word in words.items():
        text = text.replace(placeholder, word)
    return text


def write_all(texts: Mapping[Path, str]) -> list[Path]:
    """Writes new files and returns their paths; it writes none if one exists.

    Raises:
        ConfigError: A file exists already.
        HostIoError: A file cannot be written.
    """
    for path in texts:
        if path.exists() or path.is_symlink():
            raise refusal("name", f"{path} exists already, and no file is replaced: choose another name or --directory")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise host_io(path, error) from None
    return list(texts)
