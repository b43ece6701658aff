"""The toolchain: search, cache and refusals."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from guest_programs import BACKENDS, OBJECT_BACKENDS, OBJECT_WORKLOADS, ROOT, TOOLCHAIN, WORKLOADS

from durasim.programs import prebuilt, workload_tables

ToolchainError = TOOLCHAIN.ToolchainError


@pytest.fixture(autouse=True)
def forget_compiler() -> None:
    TOOLCHAIN.compiler.cache_clear()


def test_lists() -> None:
    folder = ROOT / "guest"
    assert {"array-swap", "btree", "false-sharing"} <= set(WORKLOADS)
    names = {path.stem for path in (folder / "workloads").glob("*.cpp")}
    # The others are built from the source of another one.
    described = [path for path in (folder / "workloads").glob("*.toml") if path.stem not in names]
    others = {path.stem for path in described if "\nsource = " in path.read_text(encoding="utf-8")}
    assert {"growing-array", "pinspect-arraylist"} <= others
    assert sorted(names | others) == sorted(WORKLOADS + OBJECT_WORKLOADS)
    assert {"markers", "undo-fence", "undo-flush"} <= set(BACKENDS)
    assert sorted(path.stem for path in (folder / "backends").glob("*.toml")) == sorted({*BACKENDS, *OBJECT_BACKENDS})


@pytest.mark.parametrize(("workload", "backend"), [("nothing", "markers"), ("btree", "nothing")])
def test_unknown_names(workload: str, backend: str) -> None:
    with pytest.raises(
        ToolchainError,
        match=r"unknown (workload 'nothing' \(allowed: .*btree|backend 'nothing' \(allowed: .*markers)",
    ):
        TOOLCHAIN.build(workload, backend)


def test_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DURASIM_CXX", "no-such-compiler --fast")
    with pytest.raises(ToolchainError, match="DURASIM_CXX names 'no-such-compiler --fast'"):
        TOOLCHAIN.build("btree", "markers")


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DURASIM_CXX", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(TOOLCHAIN.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ToolchainError, match="no compiler for guest programs is available"):
        TOOLCHAIN.compiler()


def test_packed_programs_need_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_compiler(tmp_path, monkeypatch)
    built = [TOOLCHAIN.build("btree", "markers", history=history) for history in (False, True)]
    using = dataclasses.asdict(TOOLCHAIN.compiler())
    del using["command"]
    contents = {path.name: path.read_bytes() for path in built}
    for folder in ("packed", "again"):
        prebuilt.pack({"btree": contents}, using, tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "packed").iterdir())
    assert files == ["btree.xz", "index.json"]
    assert all((tmp_path / "packed" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in files)

    monkeypatch.delenv("DURASIM_CXX")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(TOOLCHAIN.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(TOOLCHAIN, "build_folder", lambda: tmp_path / "elsewhere")
    monkeypatch.setattr(TOOLCHAIN, "prebuilt", lambda: prebuilt.read(tmp_path / "packed"))
    TOOLCHAIN.compiler.cache_clear()
    for path, history in zip(built, (False, True), strict=True):
        program = TOOLCHAIN.build("btree", "markers", history=history)
        assert program.name == path.name and program.parent == tmp_path / "elsewhere" / "guest"
        assert program.read_bytes() == path.read_bytes() and os.access(program, os.X_OK)
    assert TOOLCHAIN.description_of_compiler() == using["description"]
    # One that is not packed, as after a change of its sources.
    with pytest.raises(ToolchainError, match="no compiler for guest programs is available"):
        TOOLCHAIN.build("queue", "markers")


def _fake_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that counts its calls and writes the source into the output; refuses a source with the word BAD."""
    calls = folder / "calls"
    script = folder / "compiler"
    script.write_text(
        f"""#!/bin/sh
if [ "$1" = --version ]; then echo fake 1; exit 0; fi
echo x >> {calls}
while [ $# -gt 1 ]; do
  case "$1" in -o) output=$2 ;; *.cpp) source=$1 ;; esac
  shift
done
if grep -q BAD "$source"; then echo "error: bad" >&2; exit 1; fi
cp "$source" "$2$output"
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("DURASIM_CXX", str(script))
    monkeypatch.setattr(TOOLCHAIN, "build_folder", lambda: folder / "build")
    return calls


def test_results_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _fake_compiler(tmp_path, monkeypatch)
    lines: list[str] = []
    only = ("btree", "queue", OBJECT_WORKLOADS[0])
    first = TOOLCHAIN.build_all(lines.append, only)
    of_objects = {(only[2], backend) for backend in OBJECT_BACKENDS}
    assert first.keys() == {(workload, backend) for workload in only[:2] for backend in BACKENDS} | of_objects
    assert sum(line.startswith("building ") for line in lines) == len(first)
    assert TOOLCHAIN.build_all(lines.append, only) == first
    assert len(lines) == 2 * len(first)
    assert calls.read_text().count("x") == len(first)
    assert len({path.name for path in first.values()}) == len(first)
    assert sorted(path.name for path in (tmp_path / "build" / "guest").iterdir()) == sorted(
        path.name for path in first.values()
    )


def test_builds_with_a_history_are_programs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_compiler(tmp_path, monkeypatch)
    plain, reporting = TOOLCHAIN.build("btree", "markers"), TOOLCHAIN.build("btree", "markers", history=True)
    assert reporting.name.startswith("btree-markers-history-")
    assert plain != reporting == TOOLCHAIN.build("btree", "markers", history=True)
    names = [argument["name"] for argument in TOOLCHAIN.describe("btree", "markers", history=True)["arguments"]]
    assert "dump" in names
    header = TOOLCHAIN.arguments_header("btree", "markers", history=True)
    assert "command_dump" in header and "command_dump" not in TOOLCHAIN.arguments_header("btree", "markers")


def test_compile_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_compiler(tmp_path, monkeypatch)
    good, bad = tmp_path / "good.cpp", tmp_path / "bad.cpp"
    good.write_text("fine\n")
    bad.write_text("BAD\n")
    output = tmp_path / "made" / "program"
    assert TOOLCHAIN.compile_program(good, output) == output
    assert output.read_text() == "fine\n"
    with pytest.raises(ToolchainError) as refused:
        TOOLCHAIN.compile_program(bad, output)
    assert "could not compile" in refused.value.sentence
    assert refused.value.output == "error: bad\n"
    assert output.read_text() == "fine\n"
    assert [path.name for path in output.parent.iterdir()] == ["program"]
    with pytest.raises(ToolchainError, match="does not exist"):
        TOOLCHAIN.compile_program(tmp_path / "missing.cpp", output)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[argument]]\nname = 'a'\n", "are required"),
        ("[[argument]]\nname = 'a'\ntype = 'u64'\ndefault = 1\nhelp = ''\nextra = 1\n", "unknown key 'extra'"),
        ("[[argument]]\nname = 'A b'\ntype = 'u64'\ndefault = 1\nhelp = ''\n", "lower-case words"),
        ("[[argument]]\nname = 'a'\ntype = 'float'\ndefault = 1\nhelp = ''\n", "unknown type"),
        ("[[argument]]\nname = 'a'\ntype = 'u64'\ndefault = 1\nminimum = 2\nhelp = ''\n", "out of range"),
        ("[[argument]]\nname = 'a'\ntype = 'choice'\ndefault = 'x'\nchoices = ['y']\nhelp = ''\n", "not among"),
        ("[[argument]]\nname = 'a'\ntype = 'flag'\nhelp = ''\ncommands = ['walk']\n", "unknown command"),
        ("argument = 3\n", "must be"),
        ("[[argument\n", "x.toml"),
    ],
)
def test_bad_argument_tables(tmp_path: Path, text: str, words: str) -> None:
    table = tmp_path / "x.toml"
    table.write_text(text)
    with pytest.raises(ToolchainError, match=words):
        workload_tables._read_arguments(table)


def test_headers_that_were_parsed_before_change_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not TOOLCHAIN.compiler().is_zig:
        pytest.skip("skipped: only zig is given parsed headers")
    source, header = (
        ROOT / "guest" / "workloads" / "array-swap.cpp",
        TOOLCHAIN.arguments_header("array-swap", "markers"),
    )
    assert TOOLCHAIN._precompiled()[0] == "-include-pch"
    for name in ("with", "without"):
        TOOLCHAIN._compile_with_header(source, tmp_path / name, header, ("-DDURASIM_BACKEND=markers",))
        monkeypatch.setattr(TOOLCHAIN, "_precompiled", tuple)
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()


def test_headers_that_cannot_be_parsed_before_keep_no_program_from_being_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.pch"
    damaged.write_bytes(b"no precompiled header")
    monkeypatch.setattr(TOOLCHAIN, "_precompiled", lambda: ("-include-pch", str(damaged)))
    source, header = (
        ROOT / "guest" / "workloads" / "array-swap.cpp",
        TOOLCHAIN.arguments_header("array-swap", "markers"),
    )
    TOOLCHAIN._compile_with_header(source, tmp_path / "program", header, ("-DDURASIM_BACKEND=markers",))
    assert (tmp_path / "program").read_bytes().startswith(b"\x7fELF")
