"""Tables in docs/designs/ that map each mechanism of a design to its functions and tests.

A page is named after its design. Its tables with the columns `paper`, `mechanism`, `function` and `test` are read.
Functions and tests are written in backticks as `path::name` with the path relative to the checkout: `src/a.rs::f`,
`src/a.rs::Type::f`, `include/a.h::f`, `tests/a.py::test_f`, `tests/a.py::test_f[parameter]`. `check_names` looks them
up in the sources; `check` also runs the tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from durasim.documents.mechanisms import Mechanism
from durasim.errors import host_io, refusal, unknown_name
from durasim.runs.scenario import design_variants

COLUMNS = ("paper", "mechanism", "function", "test")
Progress = Callable[[str], None]
"""Called with the command that runs next."""
_CELL_END = re.compile(r"(?<!\\)\|")
_REFERENCE = re.compile(r"`([^`]+)`")
_CARGO_TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (\w+)", re.MULTILINE)
_HEADER_SUFFIXES = (".h", ".cpp")


def read_tables(root: Path, designs: Sequence[str] | None = None) -> list[Mechanism]:
    """Reads the tables of all pages, or of the pages of the given designs.

    Raises:
        ConfigError: A page belongs to no design, a given design has no page, or a page has no table.
    """
    pages = {path.stem: path for path in sorted((root / "docs/designs").glob("*.md"))}
    for name in pages:
        if name not in design_variants():
            raise unknown_name(f"docs/designs/{name}.md", name, design_variants())
    for name in designs or ():
        if name not in design_variants():
            raise unknown_name("design", name, design_variants())
        if name not in pages:
            raise refusal("check", f"docs/designs/{name}.md is missing (pages: {', '.join(pages) or 'none'})")
    rows = []
    for name in designs or pages:
        file = pages[name].relative_to(root).as_posix()
        found = list(_rows(name, file, pages[name].read_text(encoding="utf-8")))
        if not found:
            raise refusal(file, f"has no table with the columns {', '.join(COLUMNS)}")
        rows += found
    return rows


def _rows(design: str, file: str, text: str) -> Iterator[Mechanism]:
    is_ours = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            is_ours = False
            continue
        cells = [cell.strip() for cell in _CELL_END.split(line)[1:-1]]
        if tuple(cell.lower() for cell in cells) == COLUMNS:
            is_ours = True
        elif is_ours and len(cells) != len(COLUMNS):
            yield Mechanism(design, file, number, "", line, (), (), [f"{len(cells)} cells instead of {len(COLUMNS)}"])
        elif is_ours and not all(set(cell) <= set("-: ") for cell in cells):
            functions, tests = (tuple(_REFERENCE.findall(cell)) for cell in cells[2:])
            yield Mechanism(design, file, number, cells[0], cells[1], functions, tests)


def check_names(root: Path, rows: Iterable[Mechanism]) -> None:
    """Looks up every function and test in the sources and records those that are missing."""
    for row in rows:
        if not row.mechanism and not row.problems:
            row.problems.append("it has no mechanism")
        for kind, names in (("function", row.functions), ("test", row.tests)):
            if not names and not row.problems:
                row.problems.append(f"it has no {kind}")
            for name in names:
                problem = _problem_of_name(root, name, kind == "test")
                if problem is not None:
                    row.problems.append(problem)


def _problem_of_name(root: Path, reference: str, is_test: bool) -> str | None:
    path, _, name = reference.partition("::")
    file = root / path
    if not name or not file.is_file():
        return f"{reference}: {'the file is missing' if name else 'is not path::name'}"
    text = file.read_text(encoding="utf-8")
    kind = "test" if is_test else "function"
    if file.suffix == ".rs":
        owner, _, bare = name.rpartition("::")
        is_there = any(
            re.search(_rust_pattern(bare, is_test), part, re.MULTILINE) for part in _implementations(text, owner)
        )
    elif file.suffix == ".py":
        bare = re.escape(name.partition("[")[0].rpartition("::")[2])
        is_there = re.search(rf"^\s*def {bare}\(", text, re.MULTILINE) is not None
        is_there = is_there and (not is_test or (bare.startswith("test_") and file.name.startswith("test_")))
    elif file.suffix in _HEADER_SUFFIXES and not is_test:
        is_there = re.search(rf"\b{re.escape(name.rpartition('::')[2])}\s*\(", text) is not None
    else:
        return f"{reference}: {kind}s are not supported in this type of file"
    return None if is_there else f"{reference}: the {kind} is missing"


def _rust_pattern(name: str, is_test: bool) -> str:
    attributes = r"^\s*#\[test\]\n(?:\s*#\[.*\]\n|\s*//.*\n)*" if is_test else r"^"
    return rf"{attributes}\s*(?:pub(?:\([a-z: ]+\))? )?(?:const )?fn {re.escape(name)}\b"


def _implementations(text: str, owner: str) -> list[str]:
    """Returns the text to search for a function: the `impl` blocks of the type, or the whole file without a type."""
    if not owner:
        return [text]
    blocks = re.finditer(rf"^(?:impl|pub trait|trait)\b[^{{;]*\b{re.escape(owner)}\b[^{{;]*\{{", text, re.MULTILINE)
    return [text[block.end() :].partition("\n}")[0] for block in blocks]


def check(root: Path, rows: Sequence[Mechanism], progress: Progress = lambda _: None) -> None:
    """Looks up all names, runs the tests of the rows without problems, and records those that do not pass.

    Raises:
        HostIoError: cargo cannot be started.
    """
    check_names(root, rows)
    tests = dict.fromkeys(name for row in rows if not row.problems for name in row.tests)
    by_rust = [name for name in tests if name.partition("::")[0].endswith(".rs")]
    by_python = [name for name in tests if name not in by_rust]
    problems: dict[str, str | None] = {}
    batches: dict[tuple[str, ...], list[str]] = {}
    for name in by_rust:
        batches.setdefault(_target_of(root, name), []).append(name)
    for target, names in batches.items():
        progress(f"cargo test {' '.join(target)}")
        problems |= _cargo(root, target, names)
    if by_python:
        progress("pytest")
        problems |= _pytest(root, by_python)
    for row in rows:
        row.problems += [f"{name}: {problems[name]}" for name in row.tests if problems.get(name) is not None]


def _target_of(root: Path, reference: str) -> tuple[str, ...]:
    """Returns the cargo arguments that build the tests of a file."""
    path = Path(reference.partition("::")[0])
    crate = next(folder for folder in path.parents if (root / folder / "Cargo.toml").is_file())
    package = tomllib.loads((root / crate / "Cargo.toml").read_text(encoding="utf-8"))["package"]["name"]
    within = path.relative_to(crate)
    return ("-p", package, "--lib") if within.parts[0] == "src" else ("-p", package, "--test", within.stem)


def _module_of(root: Path, reference: str) -> str:
    """Returns the module path of a source file in the test harness, with a trailing `::`."""
    path = Path(reference.partition("::")[0])
    crate = next(folder for folder in path.parents if (root / folder / "Cargo.toml").is_file())
    within = path.relative_to(crate).with_suffix("").parts
    names = [part for part in within[1:] if part not in {"lib", "mod"}] if within[0] == "src" else []
    return "".join(f"{name}::" for name in names)


def _cargo(root: Path, target: tuple[str, ...], references: Sequence[str]) -> dict[str, str | None]:
    names = {reference: reference.rpartition("::")[2] for reference in references}
    command = ["cargo", "test", "--locked", *target, "--", *dict.fromkeys(names.values())]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError as error:
        raise host_io("cargo", error) from None
    outcomes = _CARGO_TEST.findall(done.stdout)
    complaints = [line for line in done.stderr.splitlines() if line.startswith("error")]
    nothing = "is not run" if outcomes or not complaints else f"is not built ({complaints[0]})"
    verdicts = {}
    for reference, name in names.items():
        module = _module_of(root, reference)
        found = {end for path, end in outcomes if path.startswith(module) and path.rpartition("::")[2] == name}
        verdicts[reference] = None if found == {"ok"} else f"is {', '.join(sorted(found))}" if found else nothing
    return verdicts


def _pytest(root: Path, references: Sequence[str]) -> dict[str, str | None]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--rootdir={root}", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *references]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if not report.is_file():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            return dict.fromkeys(references, f"is not run ({lines[-1] if lines else 'pytest says nothing'})")
        cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - written by pytest above
    verdicts = {}
    for reference in references:
        path, *classes, name = reference.split("::")
        module = ".".join([*Path(path).with_suffix("").parts, *classes])
        # Without a parameter in the name, all parameters must pass.
        ends = [
            _end_of(case)
            for case in cases
            if case.get("classname") == module and name in {case.get("name"), str(case.get("name")).partition("[")[0]}
        ]
        bad = sorted({end for end in ends if end != "passed"})
        verdicts[reference] = f"is {', '.join(bad)}" if bad else None if ends else "is not run"
    return verdicts


def _end_of(case: ElementTree.Element) -> str:
    tags = {child.tag for child in case}
    return "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
