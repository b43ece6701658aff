"""The options of the command line. Each means the same in every command that has it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from durasim.errors import refusal
from durasim.scenario import Scenario

JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON: the whole file or none; '-' is stdout."),
]
Design = Annotated[str, typer.Option("--design", metavar="ROW", help="Row of the registry, see `durasim designs`.")]
MaybeDesign = Annotated[
    str | None, typer.Option("--design", metavar="ROW", help="Row of the registry, see `durasim designs`.")
]
Workload = Annotated[
    str | None, typer.Option("--workload", metavar="NAME", help="Guest workload, see `durasim workloads`.")
]
Machine = Annotated[
    str, typer.Option("--machine", metavar="NAME|FILE", help="Preset, see `durasim machines`, or a TOML file.")
]
Ops = Annotated[int | None, typer.Option("--ops", help="Operations of the workload.")]
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
    str | None, typer.Option("--domain", metavar="NAME", help="Persistence domain; the design's default if not given.")
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
Designs = Annotated[
    str,
    typer.Option(
        "--designs",
        metavar="A,B",
        help="Rows of the registry, separated by commas; all-SUITE stands for those of its paper.",
    ),
]
Workloads = Annotated[
    str,
    typer.Option("--workloads", metavar="X,Y", help="Workloads, separated by commas; all-SUITE stands for a suite."),
]


def designs_of(text: str) -> list[str]:
    """Splits the value of `--designs`, with the rows that a paper compares in the place of `all-SUITE`."""
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    return suites.designs_of(names_of(text))


def names_of(text: str) -> list[str]:
    """Splits a list of names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def workloads_of(text: str) -> list[str]:
    """Splits the value of `--workloads`, with the members of suites in the place of `all-SUITE`."""
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    return suites.expand(names_of(text))


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
    settings, workload_args = fields.pop("set_", None), fields.pop("arg", None)
    scenario = Scenario(settings=tuple(settings or ()), workload_args=pairs_of(workload_args), **fields)
    scenario.check()
    return scenario
