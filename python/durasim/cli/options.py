"""The options of the command line. Each option has one meaning in all commands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from durasim import output
from durasim.cli import completion, render
from durasim.crashes.crash_request import FAULTS
from durasim.documents.described import RunOptions
from durasim.errors import refusal
from durasim.runs.scenario import Scenario

_FIELDS = {field.name: field for field in dataclasses.fields(RunOptions)}

JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON, atomically; '-' is standard output."),
]
Format = Annotated[
    str,
    typer.Option("--format", metavar="NAME", help="table, markdown, csv or json; only table omits columns."),
]
Wide = Annotated[bool, typer.Option("--wide", help="Print all columns, or all rows of a run.")]
Design = Annotated[
    str,
    typer.Option(
        "--design", metavar="NAME", help="Durability design, see `durasim designs`.", autocompletion=completion.designs
    ),
]
NeededDesign = Annotated[
    str | None,
    typer.Option(
        "--design",
        metavar="NAME",
        help="Durability design, see `durasim designs`; required.",
        autocompletion=completion.designs,
    ),
]
MutatedDesign = Annotated[
    str | None,
    typer.Option(
        "--design",
        metavar="NAME",
        help="The design whose mutants are tested (default: every durable design).",
        autocompletion=completion.designs,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        help="Guest workload, see `durasim workloads`.",
        autocompletion=completion.workloads,
    ),
]
Machine = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="Machine preset, see `durasim machines`, or a TOML file.",
        autocompletion=completion.machines,
    ),
]
Ops = Annotated[int | None, typer.Option("--ops", help="Operations of the workload.")]
SuiteThreads = Annotated[
    int | None,
    typer.Option("--threads", help="Threads of the guest (default: the number of the workload's suite)."),
]
Threads = Annotated[int, typer.Option("--threads", help="Threads of the guest.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all random choices; equal seeds give equal results.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH.TO.KEY=VALUE", help="Set a parameter of the machine or design; repeatable."),
]
ScaleName = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="NAME",
        help="paper (full size) or quick (caches, data set and scalable design structures at 1/8).",
    ),
]
Control = Annotated[bool, typer.Option("--control", help="Permit a case that is expected to fail.")]
Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        help="Persistence domain (default: that of the design).",
        autocompletion=completion.domains,
    ),
]
WorkloadArgs = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="Argument of the workload; repeatable.")
]
ProgramArgs = Annotated[
    list[str] | None, typer.Argument(metavar="[ARGS]...", help="Arguments of the program of --elf, after --.")
]
Elf = Annotated[str | None, typer.Option("--elf", metavar="PROG", help="A static RV64GC Linux program.")]
Env = Annotated[
    list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Environment of the guest; repeatable.")
]
CrashPoints = Annotated[
    str, typer.Option("--points", metavar="all|N", help="Persist events to crash at, spread over the run.")
]
FaultNames = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="NAME",
        help=f"How power fails: {', '.join(FAULTS)}, or all (default with --elf); repeatable.",
    ),
]
Variants = Annotated[
    int, typer.Option("--variants", help="Samples per crash point for faults with many possible outcomes.")
]
Replay = Annotated[str | None, typer.Option("--replay", metavar="ID", help="Replay only the failure with this id.")]
Shrink = Annotated[bool, typer.Option("--shrink", help="Minimize the first failure and print its timeline.")]
Mutants = Annotated[
    list[str] | None,
    typer.Option("--mutant", metavar="NAME", help="Test only the mutant with this planted fault; repeatable."),
]
Check = Annotated[
    str | None,
    typer.Option(
        "--check",
        metavar="ARGS",
        help="Arguments with which the --elf program recovers and checks its pool; durasim then compares the bytes.",
    ),
]
Again = Annotated[
    str | None,
    typer.Option(
        "--again",
        metavar="ARGS",
        help="Arguments of the --elf program for the run between two crashes (default: those after --).",
    ),
]
RecoveryLimit = Annotated[
    int | None,
    typer.Option(
        "--recovery-limit",
        metavar="N",
        help="Instruction limit of recovery, check and rerun, each (default: 20 times the crash-free count).",
    ),
]
CampaignFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE.toml|NAME",
        help="Campaign file (see docs/crash.md), or the name of an included one, such as quick.",
    ),
]
Random = Annotated[
    bool, typer.Option("--random", help="Test random machines without programs; check every load and recovery.")
]
RandomDesigns = Annotated[
    list[str] | None,
    typer.Option("--design", metavar="NAME", help="With --random: a design (default: all); repeatable."),
]
Runs = Annotated[
    int | None, typer.Option("--runs", help="With --random: number of machines (default without --seconds: 200).")
]
RandomSeed = Annotated[int, typer.Option("--seed", help="With --random: the first seed; equal seeds give equal runs.")]
RandomReplay = Annotated[
    str | None,
    typer.Option("--replay", metavar="RUN", help="With --random: repeat one run of a design and show its steps."),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Time budget; repeats with new seeds until it is spent.")
]
VerdictsFile = Annotated[
    str | None,
    typer.Option(
        "--verdicts", metavar="FILE", help="Store each verdict in FILE and resume an interrupted campaign from it."
    ),
]
RunOptionValues = Mapping[str, Any] | None
"""Values of the options that `takes_run_options` adds to a command."""

Designs = Annotated[
    str | None,
    typer.Option(
        "--designs",
        metavar="A,B",
        help="Designs, separated by commas; all-SUITE stands for those of its paper. "
        "Those of the workloads' suite if not given.",
        autocompletion=completion.design_lists,
    ),
]
Workloads = Annotated[
    str | None,
    typer.Option(
        "--workloads",
        metavar="X,Y",
        help="Workloads, separated by commas; all-SUITE: all of a suite.",
        autocompletion=completion.workload_lists,
    ),
]
FastForward = Annotated[
    str | None,
    typer.Option("--fast-forward", metavar="MARK|roi", help=_FIELDS["fast_forward"].metadata["help"]),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="NAME",
        help="Baseline design of throughput (default: opt if it is among the designs).",
        autocompletion=completion.designs,
    ),
]
PmemBaseline = Annotated[
    str | None,
    typer.Option(
        "--pmem-baseline",
        metavar="NAME",
        help="Baseline design of bytes written to pmem (default: hercules if it is among the designs, else opt).",
        autocompletion=completion.designs,
    ),
]


def check_json(path: str | None) -> None:
    """Checks before a long run that the document can be written."""
    if path is not None:
        output.check_writable(path)


def finish(path: str | None, document: Any, shown: RenderableType) -> None:
    """Writes the document if requested, and prints the result unless the document went to standard output."""
    if path is not None:
        output.write_json(path, document)
    if path != output.STANDARD_OUTPUT:
        render.show(shown)


def names_of(text: str) -> list[str]:
    """Splits a list of names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def pairs_of(arguments: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Parses the values of `--arg`.

    Raises:
        ConfigError: A value is not of the form name=value.
    """
    pairs = []
    for argument in arguments or []:
        name, separator, value = argument.partition("=")
        if not separator:
            raise refusal("arg", f"'{argument}' is not of the form name=value")
        pairs.append((name, value))
    return tuple(pairs)


def scenario_of(**fields: Any) -> Scenario:
    """Builds the scenario from the options and checks it before any program is built or run."""
    fields |= {name: tuple(fields.get(name) or ()) for name in ("args", "env")}
    fields |= fields.pop("run_options", {})
    settings, workload_args = fields.pop("set_", None), fields.pop("arg", None)
    scenario = Scenario(settings=tuple(settings or ()), workload_args=pairs_of(workload_args), **fields)
    scenario.check()
    return scenario


def takes_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the argument `run_options` of a command by the options of `RunOptions`."""
    own = inspect.signature(command, eval_str=True)
    added = [_option(field) for field in dataclasses.fields(RunOptions)]
    parameters = [
        parameter
        for given in own.parameters.values()
        for parameter in (added if given.name == "run_options" else [given])
    ]

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        chosen = {parameter.name: values.pop(parameter.name) for parameter in added}
        command(**values, run_options=chosen)

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _option(field: dataclasses.Field[Any]) -> inspect.Parameter:
    described: Mapping[str, Any] = field.metadata
    kind = typing.get_type_hints(RunOptions)[field.name]
    if str in typing.get_args(kind):
        kind = str | None
    flag = "--" + field.name.strip("_").replace("_", "-")
    if kind is bool and field.default:
        flag += "/--no-" + flag.removeprefix("--")
    option = typer.Option(flag, metavar=described.get("metavar"), help=described["help"])
    return inspect.Parameter(
        field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=Annotated[kind, option]
    )
