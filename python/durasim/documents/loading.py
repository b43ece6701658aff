"""Loading of documents of durasim from files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from durasim import output
from durasim.documents.artifact import Rerun
from durasim.documents.campaign import CampaignResult
from durasim.documents.difference import Difference
from durasim.documents.explanation import Explanation
from durasim.documents.reproduction import Reproduction
from durasim.documents.results import Comparison, CrashResult, RunResult
from durasim.documents.sensitivity import Sensitivity
from durasim.documents.stored_results import StoredResults
from durasim.documents.sweep import SweepResult
from durasim.documents.sweep_plan import Plan
from durasim.errors import refusal

_Typed = (
    RunResult | CrashResult | Comparison | Difference | Explanation | SweepResult | Plan | StoredResults | Reproduction
    | Rerun | Sensitivity
)  # fmt: skip
Loaded = _Typed | dict[str, Any]

_TYPED: Mapping[str, type[_Typed]] = {
    "durasim-run/5": RunResult,
    "durasim-crash/6": CrashResult,
    "durasim-compare/4": Comparison,
    "durasim-diff/2": Difference,
    "durasim-explain/1": Explanation,
    "durasim-sweep/2": SweepResult,
    "durasim-sweep-plan/1": Plan,
    "durasim-results/1": StoredResults,
    "durasim-reproduction/4": Reproduction,
    "durasim-sensitivity/1": Sensitivity,
    "durasim-rerun/1": Rerun,
}
_PLAIN = ("durasim-campaign/4", "durasim-mutation/1", "durasim-designs-check/2")
"""Documents that the API also returns as plain objects."""


def load(path: str | os.PathLike[str]) -> Loaded:
    """Loads a document written by a command with `--json`, or by `to_json` of a result.

    Args:
        path: The file.

    Returns:
        A `RunResult`, `CrashResult`, `Comparison`, `Difference`, `Explanation`, `SweepResult`, `Plan`,
        `StoredResults`, `Reproduction` or `Rerun`; for campaigns, mutations and `designs --check` the JSON object.

    Raises:
        ConfigError: The file is not a document of durasim, or one of another version or kind.
        HostIoError: The file cannot be read.
    """
    path = os.fspath(path)
    document = output.read_json(path, "load")
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema in _PLAIN and isinstance(document, dict):
        return CampaignResult(document) if schema == _PLAIN[0] else document
    if not isinstance(schema, str) or schema not in _TYPED:
        found = f"a document {schema}" if isinstance(schema, str) else "a document without a schema"
        raise refusal("load", f"{path} is {found}; this version reads {', '.join([*_TYPED, *_PLAIN])}")
    return _TYPED[schema].from_dict(document)


def load_run(path: str | os.PathLike[str], field: str) -> RunResult:
    """Loads the result of a run.

    Args:
        path: The file.
        field: The argument that messages name.

    Raises:
        ConfigError: The file is no result of `durasim run --json` of this version.
        HostIoError: The file cannot be read.
    """
    path = os.fspath(path)
    document = output.read_json(path, field)
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if not isinstance(schema, str) or _TYPED.get(schema) is not RunResult:
        found = f"a document {schema}" if isinstance(schema, str) else "a document without a schema"
        raise refusal(field, f"{path} is {found}, and no result of `durasim run --json` of this version")
    return RunResult.from_dict(document)
