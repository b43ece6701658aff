"""The command line that repeats a run."""

from __future__ import annotations

import dataclasses
import shlex

from durasim.documents.described import RunOptions
from durasim.own_core import command
from durasim.runs.scenario import Scenario

_OWN = {"machine": "--machine", "domain": "--domain", "ops": "--ops", "threads": "--threads", "seed": "--seed"}


def run_command(scenario: Scenario) -> str:
    """Returns the command that repeats the run of `scenario`; options with their default are left out."""
    words = [command(), "run", "--design", scenario.design]
    words += ["--workload", scenario.workload] if scenario.workload is not None else ["--elf", scenario.elf or ""]
    defaults = {field.name: field.default for field in dataclasses.fields(Scenario)}
    changed = {
        name: getattr(scenario, name) for name, default in defaults.items() if getattr(scenario, name) != default
    }
    for name, value in changed.items():
        if name in (*_OWN, "scale"):
            words += [_OWN.get(name, "--scale"), str(value)]
    for option in dataclasses.fields(RunOptions):
        if option.name in changed:
            flag, value = option.name.rstrip("_").replace("_", "-"), changed[option.name]
            words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    for setting in scenario.settings:
        words += ["--set", setting]
    for name, value in scenario.workload_args:
        words += ["--arg", f"{name}={value}"]
    words += words_of_compiler(scenario)
    for pair in scenario.env:
        words += ["--env", pair]
    if scenario.control:
        words.append("--control")
    return shlex.join([*words, "--", *scenario.args] if scenario.args else words)


def words_of_compiler(scenario: Scenario) -> list[str]:
    """Returns the options with which the workload of `scenario` is compiled, as words of a command."""
    macros = [word for macro in scenario.macros for word in ("-D", macro)]
    return macros + [word for folder in scenario.include_folders for word in ("-I", folder)]
