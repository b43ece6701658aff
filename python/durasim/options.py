"""The options of the command line. Each means the same in every command that has it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from durasim import completion, output, render
from durasim.crash_request import FAULTS
from durasim.described import RunOptions
from durasim.errors import refusal
from durasim.scenario import Scenario

_FIELDS = {field.name: field for field in dataclasses.fields(RunOptions)}

JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON: the whole file or none; '-' is stdout."),
]
Format = Annotated[
    str,
    typer.Option("--format", metavar="NAME", help="table, markdown, csv or json; all columns but in a table."),
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
        help="Durability design, see `durasim designs`; needed.",
        autocompletion=completion.designs,
    ),
]
MutatedDesign = Annotated[
    str | None,
    typer.Option(
        "--design",
        metavar="NAME",
        help="The design whose mutants are tried; every durable one if not given.",
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
        help="Preset, see `durasim machines`, or a TOML file.",
        autocompletion=completion.machines,
    ),
]
Ops = Annotated[int | None, typer.Option("--ops", help="Operations of the workload.")]
SuiteThreads = Annotated[
    int | None,
    typer.Option("--threads", help="Threads of the guest; for each workload those of its suite if not given."),
]
Threads = Annotated[int, typer.Option("--threads", help="Threads of the guest.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random; equal seeds, equal results.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH.TO.KEY=VALUE", help="Change a parameter of the machine or design; repeatable."),
]
ScaleName = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="NAME",
        help="paper, or quick: data caches, data, and what of the design shrinks with them, an eighth as large.",
    ),
]
Control = Annotated[bool, typer.Option("--control", help="Run a case that is expected to fail.")]
Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        help="Persistence domain; the design's default if not given.",
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
        help=f"How power fails: {', '.join(FAULTS)}, or all (the default with --elf); repeatable.",
    ),
]
Variants = Annotated[int, typer.Option("--variants", help="Draws at each point of faults that can end in many ways.")]
Replay = Annotated[str | None, typer.Option("--replay", metavar="ID", help="Crash only at the failure of this id.")]
Shrink = Annotated[
    bool, typer.Option("--shrink", help="Reduce the first failure to a small run, and tell its timeline.")
]
Mutants = Annotated[
    list[str] | None,
    typer.Option(
        "--mutant", metavar="NAME", help="Try the mutant with this planted fault; all if not given; repeatable."
    ),
]
Check = Annotated[
    str | None,
    typer.Option(
        "--check",
        metavar="ARGS",
        help="How the program of --elf recovers its pool and then checks it; the bytes are compared after that.",
    ),
]
Again = Annotated[
    str | None,
    typer.Option(
        "--again",
        metavar="ARGS",
        help="Its arguments for the run between two crashes, in which it recovers first; as given after --.",
    ),
]
RecoveryLimit = Annotated[
    int | None,
    typer.Option(
        "--recovery-limit",
        metavar="N",
        help="Instructions of recovery, check and further work each; 20 times the crash-free ones if not given.",
    ),
]
CampaignFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE.toml|NAME",
        help="Names the runs to crash, as docs/crash.md explains; NAME is one that comes with durasim, as quick.",
    ),
]
Random = Annotated[
    bool, typer.Option("--random", help="Try drawn machines without programs, and check every load and recovery.")
]
RandomDesigns = Annotated[
    list[str] | None,
    typer.Option("--design", metavar="NAME", help="With --random: the designs, all if not given; repeatable."),
]
Runs = Annotated[
    int | None, typer.Option("--runs", help="With --random: machines to draw; 200 if --seconds is not given either.")
]
RandomSeed = Annotated[int, typer.Option("--seed", help="With --random: the first seed; equal seeds, equal runs.")]
RandomReplay = Annotated[
    str | None,
    typer.Option("--replay", metavar="RUN", help="With --random: make one run of a design again and show its steps."),
]
Seconds = Annotated[float | None, typer.Option("--seconds", help="Go on with new seeds for so long at most.")]
VerdictsFile = Annotated[
    str | None,
    typer.Option("--verdicts", metavar="FILE", help="Keep each verdict here; go on where an earlier campaign ended."),
]
RunOptionValues = Mapping[str, Any] | None
"""The values of the options that `takes_run_options` gives a command."""

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
        help="Workloads, separated by commas; all-SUITE stands for a suite.",
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
        help="The design that throughput is compared with; opt if it is among the designs.",
        autocompletion=completion.designs,
    ),
]
PmemBaseline = Annotated[
    str | None,
    typer.Option(
        "--pmem-baseline",
        metavar="NAME",
        help="The design that bytes written to pmem are compared with; hercules if it is among the designs, else opt.",
        autocompletion=completion.designs,
    ),
]


def check_json(path: str | None) -> None:
    """Finds out before a long run whether the document can be written."""
    if path is not None:
        output.check_writable(path)


def finish(path: str | None, document: Any, shown: RenderableType) -> None:
    """Writes the document if it is asked for, and shows it unless it went to standard output."""
    if path is not None:
        output.write_json(path, document)
    if path != output.STANDARD_OUTPUT:
        render.show(shown)


def names_of(text: str) -> list[str]:
    """Splits a list of names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def pairs_of(arguments: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Splits the values of `--arg`.

    Raises:
        ConfigError: One is not of the form name=value.
    """
    pairs = []
    for argument in arguments or []:
        name, separator, value = argument.partition("=")
        if not separator:
            raise refusal("arg", f"'{argument}' is not of the form name=value")
        pairs.append((name, value))
    return tuple(pairs)


def scenario_of(**fields: Any) -> Scenario:
    """Builds the scenario from the values of the options and checks it before anything is built or run."""
    fields |= {name: tuple(fields.get(name) or ()) for name in ("args", "env")}
    fields |= fields.pop("run_options", {})
    settings, workload_args = fields.pop("set_", None), fields.pop("arg", None)
    scenario = Scenario(settings=tuple(settings or ()), workload_args=pairs_of(workload_args), **fields)
    scenario.check()
    return scenario


def takes_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command of the command line the options of `RunOptions`, in the place of its argument `run_options`."""
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
