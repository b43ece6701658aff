"""`durasim designs`, `workloads` and `machines`."""

import json
import os
import tomllib

import pytest

import durasim as ds
from durasim.programs import workload_list


@pytest.mark.parametrize("command", ["designs", "workloads", "machines"])
def test_the_list_is_json_and_a_table(program, conforms, command):
    result = program(command, "--json", "-")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    conforms(command, rows)
    table = program(command)
    assert table.returncode == 0
    for row in rows:
        assert row["name"] in table.stdout


def test_the_first_designs_are_there():
    rows = {row["name"]: row for row in ds.designs()}
    assert {"opt", "swl-flush", "swl-eadr", "tc", "hercules"} <= rows.keys()
    assert rows["opt"]["control"] is True
    assert rows["hercules"]["control"] is False
    for row in rows.values():
        assert row["default_domain"] in row["domains"]


def test_named_designs_are_described_with_their_parameters(program, conforms):
    result = program("designs", "tc", "optimal", "--json", "-")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    conforms("designs", rows)
    assert [row["name"] for row in rows] == ["tc", "opt"]
    entries = next(parameter for parameter in rows[0]["parameters"] if parameter["name"] == "entries")
    assert (entries["default"], entries["range"]) == (64, "2 to 1048576")
    assert rows[1]["parameters"] == []


def test_the_first_workloads_are_there():
    assert {"btree", "array-swap"} <= {workload.name for workload in ds.workloads()}


def test_a_preset_can_be_shown_and_used_again(program, tmp_path):
    assert {"tiny", "hercules-tecs23-modern"} <= {machine["name"] for machine in ds.machines()}
    result = program("machines", "--show", "tiny")
    assert result.returncode == 0
    assert tomllib.loads(result.stdout)
    copy = tmp_path / "copy.toml"
    copy.write_text(result.stdout)
    options = ["run", "--workload", "btree", "--ops", "20", "--arg", "populate=20", "--json", "-"]
    original, copied = (json.loads(program(*options, "--machine", name).stdout) for name in ("tiny", copy))
    assert original["digest"] == copied["digest"]


def test_machine_files_have_a_schema():
    assert ds.machine_schema()["type"] == "object"


def test_the_command_measures(program, conforms):
    names = ["array-swap", "hercules-beyond-array-swap"]
    result = program("workloads", *names, "--measure", "--ops", "40", "--json", "-")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    conforms("workloads", rows)
    assert [row["name"] for row in rows] == names
    assert all(row["transactions"] == 40 for row in rows)
    assert "lines min" in program("workloads", "array-swap", "--measure", "--ops", "40").stdout


def test_what_the_command_refuses(program):
    for words, said in ((["--ops", "3"], "--measure"), (["nonsense"], "nonsense")):
        result = program("workloads", *words)
        assert result.returncode == 2
        assert said in result.stderr


def test_a_suite_is_named_as_a_whole(program):
    rows = json.loads(program("workloads", "all-hercules-beyond", "--json", "-").stdout)
    assert [row["name"] for row in rows] == [
        member.info.name for member in ds.suite_members() if member.suite == "hercules-beyond"
    ]
    assert all(row["suite"] == "hercules-beyond" and row["program"] != row["name"] for row in rows)


def test_named_machines_are_described_with_their_parameters(program, conforms):
    result = program("machines", "tiny", "--json", "-")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)
    conforms("machines", [row])
    of = {parameter["name"]: parameter for parameter in row["parameters"]}
    assert of["llc.size_bytes"]["value"] == 4096
    assert of["bbb.entries"]["value"] == 32
    assert of["bbb.entries"]["description"]
    assert "llc.size_bytes" in program("machines", "tiny").stdout


def test_each_workload_has_one_line(program):
    lines = program("workloads", env={**os.environ, "COLUMNS": "80"}).stdout.splitlines()
    names = [row["name"] for row in workload_list.workload_rows(workload_list.workload_entries(None), {})]
    assert [line.split()[0] for line in lines[: len(names)]] == names
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run --design her", ["hercules"]),
        ("crash --design her", ["hercules"]),
        ("run --workload array-s", ["array-swap"]),
        ("run --machine tin", ["tiny"]),
        ("compare --designs opt,her", ["opt,hercules"]),
        ("compare --workloads btree,array-s", ["btree,array-swap"]),
        ("designs her", ["hercules"]),
        ("machines tin", ["tiny"]),
    ],
)
def test_shells_complete_names(program, words, offered):
    typed = f"durasim {words}"
    bash = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_DURASIM_COMPLETE": "complete_bash"}
    assert program(env={**os.environ, **bash}).stdout.split("\n")[0] == offered[0]
    asked = {"_TYPER_COMPLETE_ARGS": typed}
    zsh = program(env={**os.environ, **asked, "_DURASIM_COMPLETE": "complete_zsh"}).stdout
    assert offered[0] in zsh
    fish = {**asked, "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_DURASIM_COMPLETE": "complete_fish"}
    lines = program(env={**os.environ, **fish}).stdout.splitlines()
    assert [line.partition("\t")[0] for line in lines][: len(offered)] == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(program, shell):
    # The default is the shell that started the program; here there is none.
    shown = program("--show-completion", shell, env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert (shown.returncode, "_DURASIM_COMPLETE" in shown.stdout) == (0, True), shown.stderr
