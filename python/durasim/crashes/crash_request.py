"""Crash campaigns: the request passed to the Rust core, and the completion of its result."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.documents.described_crash import CrashOptionArguments, CrashOptions
from durasim.documents.results import CrashResult
from durasim.errors import refusal
from durasim.own_core import command
from durasim.runs.command import words_of_compiler
from durasim.runs.scenario import DEFAULT_MACHINE, DEFAULT_SEED, CommonArguments, Scenario
from durasim.store.reuse import Reuse

DEFAULT_OPS = 200
"""Default operations, fewer than in a run because every crash costs a recovery and a check."""
OPS_AFTER_A_CRASH = 8
"""Maximum number of operations of the run between two crashes."""
FIELDS: Mapping[str, dataclasses.Field[Any]] = {field.name: field for field in dataclasses.fields(CrashOptions)}
"""The options of a campaign by name; crates/crash/src/request.rs explains their metadata."""


_DIGITS_MAX = 20
"""Most digits of the number of an option."""
_U64_MAX = 2**64 - 1


class CrashArguments(CommonArguments, CrashOptionArguments, total=False):
    """The fields of a scenario and of its crash options, as arguments of the Python API."""

    workload: str | None
    threads: int
    root: str | os.PathLike[str] | None


def flag_of(name: str) -> str:
    """Returns the name of an option on the command line, without the dashes."""
    return str(FIELDS[name].metadata.get("flag", name)).replace("_", "-")


def has(name: str, mark: str) -> bool:
    """Whether an option has a mark, such as `drawn`."""
    return bool(FIELDS[name].metadata.get(mark, False))


def options_of(values: Mapping[str, Any]) -> CrashOptions:
    """Returns the options with values from a command, a campaign file or the Python API; None means the default."""
    return CrashOptions(**{name: _parsed(name, value) for name, value in values.items() if value is not None})


def _parsed(name: str, value: Any) -> Any:
    described = FIELDS[name].metadata
    if "choices" in described:
        names = (value,) if isinstance(value, str) else tuple(value)
        is_all = "all" in names and set(names) <= {"all", *described["choices"]}
        return (described["choices"] if is_all else names) or None
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if has(name, "elf"):
            return _split(name, value)
        # No number of an option has more digits.
        is_number = value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX
        return int(value) if "minimum" in described and is_number else value
    return tuple(value) if has(name, "elf") else value


def _split(name: str, value: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise refusal(flag_of(name), f"{value!r}: {str(error).lower()}") from None


def check_options(options: CrashOptions) -> None:
    """Refuses invalid values.

    Raises:
        ConfigError: A number is out of range or a name unknown.
    """
    for name, field in FIELDS.items():
        value = getattr(options, name)
        problem = None if value is None else _problem(value, field.metadata)
        if problem is not None:
            raise refusal(flag_of(name), problem)


def _problem(value: Any, described: Mapping[str, Any]) -> str | None:
    if "choices" in described:
        unknown = [name for name in value if name not in (*described["choices"], "all")]
        return f"'{unknown[0]}' is unknown (allowed: {', '.join(described['choices'])})" if unknown else None
    if "words" in described and "minimum" not in described:
        allowed = ", ".join(described["words"])
        return None if value in described["words"] else f"'{_shown(value)}' is unknown (allowed: {allowed})"
    if "minimum" not in described or value in described.get("words", ()):
        return None
    lowest, highest = described["minimum"], described.get("maximum", _U64_MAX)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and lowest <= value <= highest:
        return None
    if "words" in described:
        words = " nor ".join(f"'{word}'" for word in described["words"])
        return f"'{_shown(value)}' is neither {words} nor a number from {lowest} to {highest}"
    if not is_whole:
        return f"'{_shown(value)}' is not a whole number"
    unit = f" {described['unit']}" if "unit" in described else ""
    return f"{value} is not between {lowest} and {highest}{unit}"


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _DIGITS_MAX * 2 else f"{text[:_DIGITS_MAX]}..."


@dataclass(frozen=True, slots=True)
class PreparedCrash:
    """A campaign that is checked and whose guest program is built.

    Attributes:
        scenario: What is crashed.
        options: The options of the campaign.
        run: The request of its run without a power failure.
        own: What the request of the campaign has in addition.
    """

    scenario: Scenario
    options: CrashOptions
    run: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def request(self) -> dict[str, Any]:
        """The request passed to the Rust core."""
        return {**self.run, **self.own}

    def crash(self, progress: Callable[[int, int], bool] | None = None, **changed: Any) -> CrashResult:
        """Returns the result of the campaign, with some fields of its request changed."""
        document = _core.crash(json.dumps(self.request | changed), progress)
        return finish_crash(json.loads(document), self.scenario, self.options)

    def debug(self, port: int, listening: Callable[[int, bool, str], None]) -> None:
        """Replays the failure under gdb; returns when gdb leaves.

        Args:
            port: A port of the loopback interface; 0 is a free one.
            listening: Called with the port, whether the replay is before the store that the cause of the violation
                names, and a sentence about the place.
        """
        _core.debug(json.dumps(self.request), port, listening)

    def reuse_or_crash(self, reuse: Reuse, progress: Callable[[int, int], bool] | None = None) -> CrashResult:
        """Returns the stored result of the campaign, or runs it and stores the result, unless it is ended early."""
        ended = False

        def watched(done: int, total: int) -> bool:
            nonlocal ended
            ended = progress is not None and not progress(done, total)
            return not ended

        key, document = reuse.find("crash", self.request)
        if document is None:
            document = json.loads(_core.crash(json.dumps(self.request), watched))
            if not ended:
                reuse.keep(key, "crash", self.request, document, crash_command(self.scenario, self.options))
        return finish_crash(document, self.scenario, self.options)


def prepare_crash(scenario: Scenario, options: CrashOptions, **build: bool) -> PreparedCrash:
    """Checks a campaign over `scenario` and builds its guest program.

    Args:
        scenario: What is crashed.
        options: The options of the campaign.
        build: The variant of a workload's program, as for `toolchain.build`.

    Raises:
        ConfigError: A name or number is not allowed.
        ToolchainError: The guest program cannot be built.
    """
    check_options(options)
    if scenario.elf is None:
        run, own = _workload_request(scenario, options, build)
    else:
        run, own = _program_request(scenario, options)
    chosen = {name: getattr(options, name) for name in FIELDS if name not in own}
    return PreparedCrash(scenario, options, run, own | chosen)


def crash_request(scenario: Scenario, options: CrashOptions, **build: bool) -> dict[str, Any]:
    """Returns the request for a campaign over `scenario`; see `prepare_crash`."""
    return prepare_crash(scenario, options, **build).request


def _workload_request(
    scenario: Scenario, options: CrashOptions, build: Mapping[str, bool]
) -> tuple[dict[str, Any], dict[str, Any]]:
    for name in FIELDS:
        if has(name, "elf") and getattr(options, name) != FIELDS[name].default:
            raise refusal(flag_of(name), "requires --elf: a workload has its own commands")
    ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
    return dataclasses.replace(scenario, ops=ops).request(history=True, **build), {
        "history": True,
        "recover_args": scenario.guest_command("recover", ops),
        "check_args": [*scenario.guest_command("recover-and-check", ops), "--dump"],
        "again_args": scenario.guest_command("run", min(ops, OPS_AFTER_A_CRASH)),
    }


def _program_request(scenario: Scenario, options: CrashOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the request for an external program, which has no history: its own check and the bytes judge it."""
    if options.check_args is None:
        raise refusal(
            "check", "is required with --elf: the arguments with which the program recovers and checks its pool"
        )
    return scenario.request(), {
        "history": False,
        "recover_args": None,
        "check_args": list(options.check_args),
        "again_args": list(scenario.args if options.again_args is None else options.again_args),
    }


def finish_crash(document: Mapping[str, Any], scenario: Scenario, options: CrashOptions) -> CrashResult:
    """Returns the typed result; each failure includes the command that replays it."""
    failures = [
        failure | {"command": replay_command(scenario, document["ops"], failure["id"], options)}
        for failure in document["failures"]
    ]
    return CrashResult.from_dict({"shrunk": None, **document, "failures": failures})


def replay_command(scenario: Scenario, ops: int | None, replay: str, options: CrashOptions) -> str:
    """Returns the command that replays only the failure `replay` of `scenario`."""
    words = [*_words_of_scenario(scenario, ops, options), *_words_of(options, of_elf=False), "--replay", replay]
    return shlex.join([*words, "--", *scenario.args] if scenario.args else words)


def crash_command(scenario: Scenario, options: CrashOptions) -> str:
    """Returns the command that crashes `scenario` with these options."""
    ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
    words = [*_words_of_scenario(scenario, ops, options), *_words_of(options, of_elf=False, drawn=True)]
    return shlex.join([*words, "--", *scenario.args] if scenario.args else words)


def _words_of_scenario(scenario: Scenario, ops: int | None, options: CrashOptions) -> list[str]:
    words = [command(), "crash", "--design", scenario.design]
    if scenario.elf is None:
        words += ["--workload", scenario.workload or "", "--ops", str(ops), *words_of_compiler(scenario)]
    else:
        words += ["--elf", scenario.elf, *_words_of(options, of_elf=True)]
        for pair in scenario.env:
            words += ["--env", pair]
        if scenario.root is not None:
            words += ["--root", scenario.root]
    if scenario.machine != DEFAULT_MACHINE:
        words += ["--machine", scenario.machine]
    if scenario.domain is not None:
        words += ["--domain", scenario.domain]
    if scenario.seed != DEFAULT_SEED:
        words += ["--seed", str(scenario.seed)]
    if scenario.threads != 1:
        words += ["--threads", str(scenario.threads)]
    for setting in scenario.settings:
        words += ["--set", setting]
    for name, value in scenario.workload_args:
        words += ["--arg", f"{name}={value}"]
    if scenario.control:
        words.append("--control")
    return words


def _words_of(options: CrashOptions, *, of_elf: bool, drawn: bool = False) -> Iterator[str]:
    """Yields the options that change a trial, and with `drawn` those that choose trials, as words of a command."""
    for name, field in FIELDS.items():
        value = getattr(options, name)
        if (
            name == "replay"
            or has(name, "internal")
            or has(name, "elf") != of_elf
            or (has(name, "drawn") and not drawn)
        ):
            continue
        if value is None or value == field.default:
            continue
        if isinstance(value, bool):
            yield f"--{'' if value else 'no-'}{flag_of(name)}"
        elif "choices" in field.metadata:
            for choice in value:
                yield from (f"--{flag_of(name)}", choice)
        else:
            yield from (f"--{flag_of(name)}", shlex.join(value) if isinstance(value, tuple) else str(value))
