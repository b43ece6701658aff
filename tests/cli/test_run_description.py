"""A run and a crash campaign are described once, in Rust: everything generated from that is up to date."""

import dataclasses
import inspect
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import durasim as ds
from durasim import cli
from durasim.crashes.crash_request import FIELDS, flag_of, has, options_of, replay_command
from durasim.documents.described import RunOptions
from durasim.documents.described_crash import DEFAULT_FAULTS, FAULTS, CrashOptions
from durasim.documents.results import METRICS, RunResult
from durasim.runs.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "tools" / "generate_schemas.py"))
OPTIONS = [field.name for field in dataclasses.fields(RunOptions)]


def test_generated_files_are_up_to_date():
    generated = GENERATE["generate"]()
    names = {f"{of}.json" for of in (
        "run", "campaign-file", "task", "answer", "explain", "sweep-plan", "sensitivity", "results",
    )}  # fmt: skip
    names |= {"described.py"}
    names |= {f"described_{of}.py" for of in ("crash", "machine", "metrics", "study")}
    assert {path.name for path in generated} == names
    for path, text in generated.items():
        assert path.read_text() == text, "run tools/generate_schemas.py"


def test_the_typed_result_has_the_fields_of_the_schema_in_their_order():
    schema = json.loads((Path(ds.__file__).parent / "schemas" / "run.json").read_text())
    assert [field.name for field in dataclasses.fields(RunResult)] == schema["required"] == list(schema["properties"])
    units = {name: part["x-unit"] for name, part in schema["properties"].items() if "x-unit" in part}
    assert units == {metric.name: metric.metadata["unit"] for metric in METRICS}
    assert units["pmem_residual_dirty_bytes"] == "bytes"


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_in_the_command_line_and_in_the_api(option):
    assert f"--{option.strip('_').replace('_', '-')}" in CliRunner().invoke(cli.app, ["run", "--help"]).output
    assert option in inspect.signature(ds.run).parameters
    assert f"        {option}: " in ds.run.__doc__


@pytest.mark.parametrize("option", [name for name in FIELDS if not has(name, "internal")])
def test_every_crash_option_is_in_the_command_line_and_in_the_api(option):
    described = CliRunner().invoke(cli.app, ["crash", "--help"]).output
    assert re.search(rf"--{flag_of(option)}\b", described)
    assert option in inspect.signature(ds.crash).parameters
    assert f"        {option}: " in ds.crash.__doc__


def test_crash_options_of_the_package_are_no_options_of_users():
    assert [name for name in FIELDS if has(name, "internal")] == ["workers"]
    assert "workers" not in inspect.signature(ds.crash).parameters
    assert "--workers" not in CliRunner().invoke(cli.app, ["crash", "--help"]).output


@pytest.mark.parametrize("table", ["sweep", "control"])
def test_campaign_files_have_the_options_that_the_description_says(table):
    schema = json.loads((Path(ds.__file__).parent / "schemas" / "campaign-file.json").read_text())
    keys = schema["$defs"][table]["properties"]
    assert [name for name, of in keys.items() if "x-option" in of] == [name for name in FIELDS if has(name, "file")]


def test_the_faults_are_those_of_the_description():
    assert FIELDS["faults"].metadata["choices"] == FAULTS
    assert set(DEFAULT_FAULTS) < set(FAULTS)
    assert {"clean", "torn", "recrash"} < set(FAULTS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"points": "some"}, f"points: 'some' is neither 'all' nor 'exhaustive' nor a number from 1 to {10**15}"),
        ({"points": 0}, f"points: '0' is neither 'all' nor 'exhaustive' nor a number from 1 to {10**15}"),
        ({"points": 10**20}, f"points: '{10**20}' is neither 'all' nor 'exhaustive' nor a number from 1 to {10**15}"),
        (
            {"points": "9" * 5000},
            f"points: '{'9' * 20}...' is neither 'all' nor 'exhaustive' nor a number from 1 to {10**15}",
        ),
        ({"check_args": "'open"}, """check: "'open": no closing quotation"""),
        ({"faults": ["all", "flood"]}, "fault: 'flood' is unknown"),
        ({"faults": "flood"}, "fault: 'flood' is unknown"),
        ({"faults": ["clean", "flood"]}, f"fault: 'flood' is unknown (allowed: {', '.join(FAULTS)})"),
        ({"variants": 2000}, "variants: 2000 is not between 1 and 1024"),
        ({"recovery_limit": 0}, f"recovery-limit: 0 is not between 1 and {10**15} instructions"),
        ({"variants": "many"}, "variants: 'many' is not a whole number"),
        ({"workload": None}, "workload: give either a workload or a program with --elf"),
        ({"check_args": ["check"]}, "check: requires --elf: a workload has its own commands"),
    ],
)
def test_crash_options_out_of_range_are_refused(options, said):
    with pytest.raises(ds.ConfigError) as refused:
        ds.crash(**{"design": "opt", "workload": "btree", **options})
    assert said in str(refused.value)


def test_values_of_a_command_line_are_parsed_as_the_description_says():
    values = {"points": "12", "faults": ["all"], "check_args": "check 'a b'", "replay": "e12", "variants": None}
    assert options_of(values) == CrashOptions(12, FAULTS, replay="e12", check_args=("check", "a b"))
    assert options_of({"points": "all", "faults": []}) == CrashOptions("all")


def test_the_command_that_replays_has_the_options_that_change_a_trial():
    options = CrashOptions(12, ("clean",), 4, workers=1, recovery_limit=99)
    words = replay_command(Scenario(design="opt", workload="btree"), 7, "e3", options)
    assert words == "durasim crash --design opt --workload btree --ops 7 --recovery-limit 99 --replay e3"
    program = CrashOptions(check_args=("check", "a b"), again_args=("again",))
    words = replay_command(Scenario(design="opt", elf="p", args=("run",)), None, "e3", program)
    assert shlex.split(words)[4:] == [
        "--elf",
        "p",
        "--check",
        "check 'a b'",
        *["--again", "again", "--replay", "e3", "--", "run"],
    ]


def test_every_option_reaches_the_request():
    given = {"max_instructions": 5, "fast_forward": 2, "warm": False}
    request = Scenario(workload="btree", **given).request()
    assert {name.strip("_") for name in OPTIONS} <= request.keys()
    assert {name: request[name] for name in given} == given | {"fast_forward": "2"}


def test_the_request_has_no_field_that_is_neither_an_option_nor_set():
    fields = set(GENERATE["options"](json.loads(ds.api._core.run_schemas())["request"]))
    assert fields == set(OPTIONS)
    assert GENERATE["SET_BY_PACKAGE"].isdisjoint(OPTIONS)


@pytest.mark.parametrize("call", [ds.run, ds.crash, ds.compare])
def test_an_unknown_argument_is_refused(call):
    needed = {"designs": ["opt"], "workloads": ["btree"]} if call is ds.compare else {"design": "opt"}
    with pytest.raises(TypeError, match="patience"):
        call(**needed, patience=3)


@pytest.mark.parametrize(
    ("call", "wrong", "meant"),
    [
        (ds.run, "max_instrctions", "max_instructions"),
        (ds.crash, "pionts", "points"),
        (ds.compare, "workload", "workloads"),
        (ds.sweep, "desings", "designs"),
    ],
)
def test_a_misspelled_argument_is_refused_with_the_nearest_name(call, wrong, meant):
    with pytest.raises(TypeError, match=rf"^{call.__name__}\(\): unknown name '{wrong}' \(did you mean '{meant}'\?"):
        call(**{wrong: 3})


@pytest.mark.parametrize("call", [ds.run, ds.crash, ds.compare, ds.sweep])
def test_editors_and_interactive_help_list_the_arguments(call):
    """An editor reads the type of the function itself, a notebook its signature."""
    (keywords,) = (of for of in inspect.signature(call.__wrapped__).parameters.values() if of.kind is of.VAR_KEYWORD)
    typed = set(eval(keywords.annotation, vars(ds.api)).__args__[0].__annotations__)  # noqa: S307 - an annotation of ours
    own = {name for name in inspect.signature(call.__wrapped__).parameters if name != keywords.name}
    shown = inspect.signature(call).parameters
    assert typed | own == set(shown)
    assert not typed & own
    for name in typed:
        assert f"\n        {name}: " in call.__doc__, name


def test_numbers_out_of_range_are_refused_as_the_description_says():
    for option, value in (("max_instructions", 0), ("snapshot_at", -1)):
        with pytest.raises(ds.ConfigError, match=option):
            ds.run(workload="btree", **{option: value})
