"""Workloads and programs of the user, outside of the repository: what is taken, what is refused, when it is built."""

from pathlib import Path

import pytest

from durasim.crashes.crash_request import CrashOptions, replay_command
from durasim.crashes.mutants import OwnWorkload
from durasim.crashes.test_plans import plan_of
from durasim.errors import ToolchainError
from durasim.programs import kept_builds, own_programs, suites, toolchain, workload_list, workload_tables
from durasim.runs.command import run_command
from durasim.runs.scenario import Scenario
from durasim.studies.study import study_of


@pytest.fixture
def mine(program, tmp_path):
    """The source of a workload that `durasim new workload` has written."""
    made = program("new", "workload", "mine", "--directory", tmp_path / "made")
    assert made.returncode == 0, made.stderr
    assert made.stdout == f"wrote {tmp_path}/made/mine.cpp and {tmp_path}/made/mine.toml\n"
    return tmp_path / "made" / "mine.cpp"


def test_a_new_workload_is_described_by_its_source_and_its_table(mine):
    info = workload_tables.find_workload(str(mine))
    assert (info.name, info.program, info.source) == ("mine", str(mine), mine)
    assert info.description == "accounts; each transaction moves an amount from one account to another"
    assert [argument.name for argument in info.arguments][-1] == "amount-max"
    assert info.small == {"populate": 8, "ops": 20}
    assert "@" not in mine.read_text() + mine.with_suffix(".toml").read_text()
    (entry,) = workload_list.workload_entries([str(mine)])
    assert entry.info == info
    assert suites.threads_of(str(mine)) == 1


def test_a_new_workload_replaces_no_file(mine, refused):
    before = mine.read_text()
    refused(["new", "workload", "mine", "--directory", mine.parent], 2, "mine.cpp exists already")
    mine.unlink()
    refused(["new", "workload", "mine", "--directory", mine.parent], 2, "mine.toml exists already")
    assert not mine.exists()
    mine.write_text(before)
    refused(["new", "workload", "No_Name", "--directory", mine.parent], 2, "lower-case words")
    mine.with_suffix("").write_text("a file")
    refused(["new", "workload", "other", "--directory", mine.with_suffix("")], 4, "mine/other.cpp")


def test_first_line_and_table_are_optional(mine):
    mine.with_suffix(".toml").unlink()
    mine.write_text("int main() {}\n")
    info = workload_tables.find_workload(str(mine))
    assert info.description == "the workload of mine.cpp"
    assert info.small.keys() == {"ops", "populate"}
    assert [argument.name for argument in info.arguments] == [
        argument.name for argument in toolchain.workloads()[0].arguments[: len(info.arguments)]
    ]


def test_a_source_that_is_no_workload_is_refused(mine, refused):
    run = ["run", "--machine", "tiny", "--workload"]
    refused([*run, mine.with_name("other.cpp")], 4, f"the source file {mine.parent}/other.cpp cannot be read: No such")
    refused([*run, mine.parent], 2, "its name does not end in .cpp, .cc or .cxx")
    refused([*run, mine.with_suffix(".c")], 2, "mine.c is not the source of a workload")
    refused([*run, mine, "-D", "1X"], 2, "D: '1X' is not of the form NAME or NAME=VALUE")
    refused([*run, mine, "-I", mine.parent / "none"], 2, "none does not exist")
    refused(["run", "--elf", mine, "-D", "X"], 2, "applies only to a workload")
    refused(["mutation", "-D", "X"], 2, "requires --workload")
    table = mine.with_suffix(".toml")
    table.write_text("[smal]\nops = 1\n")
    refused([*run, mine], 2, "mine.toml: unknown key 'smal' (allowed: argument, constants, interface, small)")
    table.write_text('[[argument]]\nname = "ops"\ntype = "u64"\ndefault = 1\nhelp = "twice"\n')
    refused([*run, mine], 2, "every workload has the argument 'ops' already")


def test_a_compile_error_is_a_sentence_and_the_message_of_the_compiler(program, mine):
    mine.write_text('#include "there.h"\nint main() { return NUMBER; }\n')
    mine.with_name("there.h").write_text("")
    result = program("run", "--machine", "tiny", "--workload", mine)
    assert result.returncode == 2
    assert result.stderr.splitlines()[0].endswith(f"could not compile {mine}")
    assert "NUMBER" in result.stderr


def test_a_workload_is_crashed_with_its_macros_and_headers(program, mine, tmp_path):
    """The macro of the command and the header double all amounts of the pool, but not those of the check."""
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "factor.h").write_text("constexpr int factor = FACTOR;\n")
    text = mine.read_text().replace("#include <cstdint>", '#include "factor.h"\n#include <cstdint>', 1)
    mine.write_text(
        text.replace("add(t, transfer.to, transfer.amount)", "add(t, transfer.to, factor * transfer.amount)")
    )
    options = ["--machine", "tiny", "--workload", mine, "--arg", "populate=8", "--ops", "6", "-I", headers]
    wrong = program("crash", "--design", "hercules", *options, "-D", "FACTOR=2", "--points", "8")
    assert wrong.returncode == 3
    assert "mine: violation: account" in wrong.stderr


def test_commands_name_macros_and_folders_of_headers():
    scenario = Scenario(workload="./mine.cpp", macros=("A", "B=2"), include_folders=("in clude",), machine="tiny")
    assert "-D A -D B=2 -I 'in clude'" in run_command(scenario)
    assert "-D A -D B=2 -I 'in clude'" in replay_command(scenario, 5, "e3", CrashOptions())


def test_a_study_finds_sources_beside_its_file():
    tables = {
        "name": "s",
        "designs": ["opt"],
        "workloads": ["mine.cpp", "btree"],
        "macros": ["A"],
        "include_folders": ["."],
    }
    study = study_of(tables | {"workloads": ["btree"]}, "folder")
    assert study.workload("mine.cpp") == "folder/mine.cpp"
    (point,) = study.points()
    assert (point.scenario.workload, point.scenario.macros) == ("btree", ("A",))
    assert point.scenario.include_folders == ("folder/.",)
    with pytest.raises(ToolchainError, match=r"folder/mine\.cpp"):
        study_of(tables, "folder")


def test_mutation_replaces_the_workloads_of_campaigns(mine):
    own = OwnWorkload(str(mine), ("A",), ("folder",))
    campaign = plan_of("hercules").campaigns[0]
    replaced = own.in_place_of(campaign)
    assert (replaced.workload, replaced.arguments) == (str(mine), (("populate", "8"),))
    assert (replaced.macros, replaced.include_folders) == (("A",), ("folder",))
    assert (replaced.settings, replaced.ops) == (campaign.settings, campaign.ops)


def test_programs_are_built_again_after_a_change_of_an_included_file(tmp_path):
    source, header, base = tmp_path / "a b.cpp", tmp_path / "h$.h", tmp_path / "programs" / "name-key"
    base.parent.mkdir()

    def build(content, started_ns):
        built, listed = base.parent / "new", base.parent / "listed"
        built.write_text(content)
        gone = tmp_path / "generated.h"
        names = [str(path).replace(" ", "\\ ").replace("$", "$$") for path in (source, header, gone)]
        listed.write_text(f"out.o: {names[0]} \\\n  {names[1]} {names[2]}\n")
        return kept_builds.keep(base, built, listed, started_ns)

    source.write_text("source")
    header.write_text("one")
    assert kept_builds.built_before(base) is None
    later = header.stat().st_mtime_ns + 1
    first = build("first", later)
    assert kept_builds.built_before(base) == first
    header.write_text("two")
    assert kept_builds.built_before(base) is None
    # Changed while the compiler ran, which has read one content or the other.
    unknown = build("unknown", header.stat().st_mtime_ns)
    assert unknown.read_text() == "unknown"
    assert kept_builds.built_before(base) is None
    header.write_text("one")
    assert kept_builds.built_before(base) == first
    header.unlink()
    assert kept_builds.built_before(base) is None


def test_cc_refuses_what_it_cannot_compile(refused, tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    refused(["cc", source], 2, "o: is required")
    refused(["cc", "-o", tmp_path / "a"], 2, "at least one C or C++ source")
    refused(["cc", tmp_path / "b.c", "-o", tmp_path / "b"], 4, "b.c does not exist")
    refused(["cc", tmp_path / "a.rs", "-o", tmp_path / "a"], 2, "does not end in .c, .cpp, .cc or .cxx")
    refused(["cc", source, "-o", source], 2, "would replace a source")
    with pytest.raises(toolchain.ToolchainError, match="no source to compile"):
        own_programs.compile_sources([], str(tmp_path / "a"))
    refused(["cc", source, "-o", tmp_path / "none" / "a"], 4, "none")
    refused(["cc", source, "-o", tmp_path / "a", "--backend", "none"], 2, "unknown backend 'none'")


def test_cc_compiles_c_and_cpp_together(program, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "text.h").write_text('#define TEXT "greeting"\n')
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "text.h"\n#include "durasim/persist.h"\nint number(void);\n'
        'int main(void) { int class = number(); return printf("%s %d\\n", TEXT, class) < 0; }\n'
    )
    (tmp_path / "number.cpp").write_text('extern "C" int number(void) { return NUMBER; }\n')
    sources = [tmp_path / "main.c", tmp_path / "number.cpp"]
    made = program("cc", *sources, "-o", tmp_path / "prog", "-D", "NUMBER=7", "-I", tmp_path / "in")
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    run = program("run", "--elf", tmp_path / "prog", "--machine", "tiny", "--quiet", "--functional")
    assert run.stdout == "greeting 7\n", run.stderr
    (tmp_path / "main.c").write_text("int main(void) { return NONE; }\n")
    broken = program("cc", sources[0], "-o", tmp_path / "broken")
    assert broken.returncode == 2
    assert "could not compile" in broken.stderr.splitlines()[0]
    assert "NONE" in broken.stderr
    assert not Path(tmp_path / "broken").exists()


def test_flags_of_the_compiler(tmp_path):
    assert own_programs.compiler_flags(["A", "B=x y"], [str(tmp_path)]) == ("-DA", "-DB=x y", f"-I{tmp_path}")
