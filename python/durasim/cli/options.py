"""The options of the command line. Each option has one meaning in all commands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from durasim import output
from durasim.cli import completion, formats, render
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
CrashFormat = Annotated[
    str,
    typer.Option("--format", metavar="NAME", help="table, markdown, csv, json or sarif; only table omits columns."),
]
Known = Annotated[
    str | None,
    typer.Option(
        "--known",
        metavar="FILE.sarif",
        help="Findings that are known, as --format sarif writes them: exit 0 if there is no other.",
    ),
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
        metavar="NAME|FILE.cpp",
        help="Guest workload, see `durasim workloads`, or the source of one.",
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
Macros = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="NAME[=VALUE]", help="Macro with which the sources are compiled; repeatable."),
]
IncludeFolders = Annotated[
    list[str] | None, typer.Option("-I", metavar="DIR", help="Folder of further headers of the sources; repeatable.")
]
ProgramArgs = Annotated[
    list[str] | None, typer.Argument(metavar="[ARGS]...", help="Arguments of the program of --elf, after --.")
]
Elf = Annotated[
    str | None, typer.Option("--elf", metavar="PROG", help="An RV64GC Linux program; a dynamic one needs --root.")
]
Root = Annotated[str | None, typer.Option("--root", metavar="DIR", help=_FIELDS["root"].metadata["help"])]
Env = Annotated[
    list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="Environment of the guest; repeatable.")
]
Findings = Annotated[
    str | None,
    typer.Option(
        "--findings", metavar="FILE", help="Failures to choose from: a document of `durasim crash` or `campaign`."
    ),
]
SourceRoot = Annotated[
    str | None,
    typer.Option("--source-root", metavar="DIR", help="Show source files of the program that are below this folder."),
]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, metavar="N", help="Port of the page (default: a free one).")
]
Gdb = Annotated[
    int | None,
    typer.Option(
        "--gdb",
        min=0,
        max=65535,
        metavar="PORT",
        help="Replay the failure under gdb, which connects to this port (0: a free one); requires --replay.",
    ),
]
Shrink = Annotated[bool, typer.Option("--shrink", help="Minimize the first failure and print its timeline.")]
MutatedWorkload = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME|FILE.cpp",
        help="Run each campaign with this workload, or with the source of one, in place of its own.",
        autocompletion=completion.workloads,
    ),
]
Mutants = Annotated[
    list[str] | None,
    typer.Option("--mutant", metavar="NAME", help="Test only the mutant with this planted fault; repeatable."),
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
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Number of concurrent simulations (default: all cores).")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS|NAME",
        help="Simulate on a Dask scheduler (tls://HOST:PORT) or in --jobs jobs of slurm, pbs or lsf.",
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Permit --cluster tcp://HOST:PORT beyond this computer.")]
Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="MINUTES",
        help="Longest wait for the first worker of --cluster (default: a day for slurm, pbs and lsf, else 0.5).",
    ),
]
Seeds = Annotated[
    int, typer.Option("--seeds", min=1, metavar="N", help="Repeat each run with at least N seeds (default: 1).")
]
StoreFile = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE", help="Store of results (default: a file in the user's folder for data)."),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Neither read nor write a store of results.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Answer from the store of results if it has this result, else store it there.")
]
OptionValues = Mapping[str, Any] | None
"""Values of the options that `takes_options` adds to a command."""

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
        help="Workloads or sources of some, separated by commas; all-SUITE: all of a suite.",
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


def store_of(path: str | None, no_store: bool) -> str | bool:
    """Returns the store that `--store` and `--no-store` choose, as for `durasim.sweep`.

    A user without a folder for data gets a warning, and results that are not kept.

    Raises:
        ConfigError: Both are given.
    """
    from durasim.store.location import problem_of_default  # noqa: PLC0415 - keeps the start-up of other commands short

    if no_store and path is not None:
        raise refusal("no_store", "cannot be combined with --store")
    if path is not None:
        return path
    if not no_store and (problem := problem_of_default()) is not None:
        print(
            f"durasim: warning: results are not kept, --store FILE names a place for them ({problem})", file=sys.stderr
        )
        return False
    return not no_store


def reused_store(reuse: bool, path: str | None) -> str | bool:
    """Returns the store that `--reuse` and `--store` choose, as for `durasim.run`.

    Raises:
        ConfigError: Only `--store` is given.
    """
    if path is not None and not reuse:
        raise refusal("store", "requires --reuse")
    return path if path is not None else reuse


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
    """Builds the scenario from the options. Its request checks it before any program is built or run."""
    tuples = ("args", "env", "macros", "include_folders")
    fields |= {name: tuple(fields.get(name) or ()) for name in tuples}
    fields |= fields.pop("run_options", {})
    settings, workload_args = fields.pop("set_", None), fields.pop("arg", None)
    return Scenario(settings=tuple(settings or ()), workload_args=pairs_of(workload_args), **fields)


def takes_options(
    name: str, described: type, without: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces the argument `name` of a command by the options that are the fields of a dataclass.

    Args:
        name: The argument.
        described: The dataclass.
        without: A mark of fields that are left out.
    """
    marks = {"internal", without}
    added = [_option(field, described) for field in dataclasses.fields(described) if not marks & field.metadata.keys()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters = [
            parameter for given in own.parameters.values() for parameter in (added if given.name == name else [given])
        ]

        @functools.wraps(command)
        def with_options(**values: Any) -> None:
            chosen = {parameter.name: values.pop(parameter.name) for parameter in added}
            command(**values, **{name: chosen})

        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate


def _option(field: dataclasses.Field[Any], owner: type) -> inspect.Parameter:
    described: Mapping[str, Any] = field.metadata
    kind, default, help_text = typing.get_type_hints(owner)[field.name], field.default, described["help"]
    if "choices" in described:
        kind = list[str] | None
        help_text += f" Names: {', '.join(described['choices'])}, or all; repeatable."
    elif kind not in (str, bool) and ("words" in described or "elf" in described or str in typing.get_args(kind)):
        # Several words, or a number or a word.
        kind = str if default is not None else str | None
        default = None if default is None else str(default)
    flag = "--" + described.get("flag", field.name).strip("_").replace("_", "-")
    if kind is bool and default:
        flag += "/--no-" + flag.removeprefix("--")
    option = typer.Option(flag, metavar=described.get("metavar"), help=help_text)
    return inspect.Parameter(
        field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, option]
    )


def refuse_with_plan(
    form: str,
    needs_results: Mapping[str, bool],
    *,
    cluster: str | None,
    insecure: bool,
    wait: float | None,
    monitor: int | None,
) -> None:
    """Refuses options that `--plan` does not use.

    Args:
        form: The format of the output.
        needs_results: For each option that requires results, whether it is given.
        cluster: The option `--cluster`.
        insecure: The option `--insecure`.
        wait: The option `--wait`.
        monitor: The option `--monitor`.

    Raises:
        ConfigError: One is given.
    """
    simulating = {"cluster": cluster is not None, "insecure": insecure, "wait": wait is not None}
    for name, is_given in (simulating | {"monitor": monitor is not None}).items():
        if is_given:
            raise refusal(name, "is for simulating: leave it out with --plan")
    for name, is_given in needs_results.items():
        if is_given:
            raise refusal(name, "requires results: leave --plan out")
    if form not in (formats.TABLE, "markdown"):
        raise refusal("format", "is table or markdown with --plan; --json FILE has all points")
