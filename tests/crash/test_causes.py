"""Causes of violations: the store that is lost, the step that is missing, and the rerun with that step inserted."""

import json
import struct
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("causes.c")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
# What is missing, the operation that the machine inserts, and what relied on the store.
MISTAKES = {
    "missing-clean": ("no-clean", "clean", "store"),
    "misplaced-clean": ("clean-before-store", "clean", "store"),
    "clean-of-another-line": ("clean-of-another-line", "clean", "store"),
    "missing-fence": ("no-fence", "fence", "store"),
    "fence-of-another-kind": ("other-fence", "fence", "store"),
    "wrong-order": ("order", "clean-and-fence", "store"),
    "fields-apart": ("no-clean", "clean", "store"),
    "count-before-contents": ("order", None, "store"),
    "allocation-before-link": ("order", None, "store"),
    "transaction": ("no-clean", "clean-and-fence", "commit"),
}


@pytest.fixture(scope="session")
def elf():
    return compiled.program(SOURCE)


def line_of(mark):
    (line,) = [number for number, text in enumerate(LINES, 1) if f"/* {mark} */" in text]
    return line


def crash(elf, *words, points=60):
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", *words], check_args=["check", *words], points=points,
        faults=("clean", "reorder"), variants=4,
    )  # fmt: skip


def crash_command(elf, *options, mistake="missing-clean"):
    command = ["crash", "--design", "opt", "--machine", "tiny", "--elf", elf, "--check", f"check {mistake}"]
    return command_line.run(*command, *options, "--", "run", *mistake.split())


def test_the_output_of_the_check_is_shown_on_request(elf, tmp_path):
    path = tmp_path / "crash.json"
    shown = crash_command(elf, "--points", "20", "--fault", "clean", "--check-output", "--json", path)
    document = json.loads(path.read_text())
    assert [trial["id"] for trial in document["check_outputs"]] == [failure["id"] for failure in document["failures"]]
    of_one_run = {
        "stdout": "", "stdout_left_out_bytes": 0,
        "stderr": "violation: a record is broken\n", "stderr_left_out_bytes": 0,
    }  # fmt: skip
    assert all(trial["checks"] == [of_one_run] for trial in document["check_outputs"])
    first = document["failures"][0]
    lines = f"  {first['id']}: the check wrote\n    stdout: nothing\n    stderr: violation: a record is broken\n"
    assert shown.stdout.count(lines) == 1
    assert "--check-output" in first["command"], "a replay shows it too"
    replayed = crash_command(elf, "--replay", first["id"], "--check-output")
    assert lines in replayed.stdout
    assert "the check wrote" not in crash_command(elf, "--replay", first["id"]).stdout


def test_an_output_is_bounded_and_shows_control_characters(tmp_path):
    path = tmp_path / "crash.json"
    words = ["--fault", "clean", "--elf", compiled.program(SOURCE.with_name("noisy.c")), "--check", "check"]
    shown = command_line.run(
        "crash", "--design", "opt", "--machine", "tiny", *words, "--check-output", "--json", path, "--", "run"
    )
    trials = json.loads(path.read_text())["check_outputs"]
    first, again = trials[0]["checks"]
    assert (len(first["stdout"]), first["stdout_left_out_bytes"]) == (4096 + 3 + 3, 5000 + 10 - 4096)
    assert first["stdout"].startswith("\\x1b[31mred\\xff\n")
    assert (again["stdout"], again["stderr"]) == ("", "it was recovered\n")
    lines = shown.stdout.splitlines()
    at = lines.index(f"  {trials[0]['id']}: the check wrote")
    assert lines[at + 1] == "    stdout: \\x1b[31mred\\xff"
    assert lines[at + 3 : at + 6] == [
        "    stdout: ... and 914 further bytes", "    stderr: nothing", "    and, started again,",
    ]  # fmt: skip


def test_a_replay_without_a_violation_shows_the_output_of_its_check_too(elf):
    replayed = crash_command(elf, "--replay", "e1", "--check-output", mistake="missing-clean right")
    assert replayed.returncode == 0
    assert "  e1: the check wrote\n    stdout: nothing\n    stderr: nothing" in replayed.stdout


def test_the_output_of_a_check_needs_a_check():
    done = command_line.run("crash", "--design", "opt", "--workload", "array-swap", "--check-output")
    assert (done.returncode, done.stderr) == (
        2, "durasim: check-output: requires --elf: a workload has its own commands\n",
    )  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_tested(elf, mistake):
    missing, inserted, relied = MISTAKES[mistake]
    result = crash(elf, mistake)
    (cause,) = result.causes["found"]
    (store,) = cause["stores"]
    assert (Path(store["at"]["file"]).name, store["at"]["line"]) == ("causes.c", line_of(mistake))
    assert mistake.replace("-", "_") in [frame["function"] for frame in (store["at"], *store["inlined_into"])]
    assert (cause["missing"], cause["relied"]["kind"]) == (missing, relied)
    assert [operation["what"] for operation in cause["inserted"]] == ([inserted] if inserted else [])
    assert cause["confirmed"] == (inserted is not None)
    assert (cause["unconfirmed_because"] is None) == cause["confirmed"]
    assert result.causes["debug_information"] is None
    assert cause["violations"] == result.causes["examined"] == result.violations > 0
    assert result.causes["unexplained"] == result.causes["not_examined"] == 0


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_same_work_done_right_has_no_violation(elf, mistake):
    result = crash(elf, mistake, "right")
    assert result.failures == ()
    assert result.causes is None


def test_what_relied_on_the_store_is_named_with_its_caller(elf):
    """Power fails after the count and before the contents: no clean would help."""
    (cause,) = crash(elf, "count-before-contents").causes["found"]
    assert cause["what"] == "later"
    relied = cause["relied"]
    assert (relied["at"]["function"], relied["at"]["line"]) == ("publish", line_of("published"))
    assert relied["cleaned_by"]["at"]["line"] is not None
    assert "no clean and no fence" in cause["unconfirmed_because"]


def test_the_text_names_line_missing_step_and_test(elf):
    words = ["crash", "--design", "opt", "--machine", "tiny", "--elf", elf, "--points", "60", "--fault", "clean"]
    done = command_line.run(*words, "--check", "check missing-clean", "--", "run", "missing-clean")
    assert done.returncode == 1
    text = done.stdout
    place = f"causes.c:{line_of('missing-clean')}"
    assert f"one cause: {place} in missing_clean: " in text
    assert "its line is not cleaned after it" in text
    assert f"causes.c:{line_of('published')} in publish" in text
    assert f"confirmed: with a clean after {place}, 0 of " in text


def _sections(elf):
    """Yields the name of each section of an ELF with its offset and size, and the offset of its name."""
    table, size, count, names = *struct.unpack_from("<Q", elf, 40), *struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * number) for number in range(count)]
    strings = headers[names][4]
    for name, _, _, _, offset, length in headers:
        begin = strings + name
        yield elf[begin : elf.index(b"\0", begin)].decode(), offset, length, begin


def _changed(elf, tmp_path, change):
    data = bytearray(elf.read_bytes())
    change(data, {name: place for name, *place in _sections(data)})
    path = tmp_path / "changed"
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def _rename_debug_info(data, sections):
    begin = sections[".debug_info"][2]
    data[begin : begin + 11] = b".other_info"


def _damage_debug_info(data, sections):
    offset, length, _ = sections[".debug_info"]
    data[offset : offset + length] = b"\xf1" * length


def _remove_sections(data, _sections):
    data[40:48] = bytes(8)
    data[60:64] = bytes(4)


@pytest.mark.parametrize(
    ("change", "words", "function"),
    [
        (_rename_debug_info, "no debug information, only symbols: compile it with -g", True),
        (_remove_sections, "no debug information and no symbols", False),
        (_damage_debug_info, "debug information of the program is damaged: ", True),
    ],
)
def test_without_debug_information_causes_are_found_and_the_lack_is_named(elf, tmp_path, change, words, function):
    changed = _changed(elf, tmp_path, change)
    result = crash(changed, "missing-clean", points=20)
    (cause,) = result.causes["found"]
    assert cause["confirmed"]
    (store,) = cause["stores"]
    assert store["pc"] > 0 and store["at"]["line"] is None
    assert (store["at"]["function"] is not None) == function
    assert words in result.causes["debug_information"]


def test_a_replay_names_the_cause_without_testing_it(elf):
    (cause,) = crash(elf, "missing-clean").causes["found"]
    replayed = ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", "missing-clean"], check_args=["check", "missing-clean"],
        replay=cause["first"],
    )  # fmt: skip
    (named,) = replayed.causes["found"]
    assert (named["missing"], named["stores"][0]["at"]) == (cause["missing"], cause["stores"][0]["at"])
    assert (named["confirmed"], named["tested"]) == (False, None)
    assert named["unconfirmed_because"] == "a replay does not repeat the campaign"
