"""A run is described once, at its request and its result: everything generated from that is up to date."""

import dataclasses
import inspect
import json
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

import durasim as ds
from durasim import cli
from durasim.documents.described import RunOptions
from durasim.documents.results import METRICS, RunResult
from durasim.runs.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
GENERATE = runpy.run_path(str(ROOT / "tools" / "generate_schemas.py"))
OPTIONS = [field.name for field in dataclasses.fields(RunOptions)]


def test_generated_files_are_up_to_date():
    generated = GENERATE["generate"]()
    assert {path.name for path in generated} == {"run.json", "described.py"}
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


def test_numbers_out_of_range_are_refused_as_the_description_says():
    for option, value in (("max_instructions", 0), ("snapshot_at", -1)):
        with pytest.raises(ds.ConfigError, match=option):
            ds.run(workload="btree", **{option: value})
