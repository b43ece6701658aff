"""Numbers of papers that no run gives: sizes and energies of designs, and the lines that transactions write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from durasim import _core
from durasim.errors import refusal, unknown_name
from durasim.output import discard
from durasim.papers.cells import Cells
from durasim.programs import suites
from durasim.runs.scenario import Scenario, design_variants, variant_name, workload_info


def count_of(selection: Mapping[str, Any]) -> Cells:
    """Returns the number of a selection with the key `cost` or `lines`.

    `cost` names a design; `structure` one of its structures, whose bits are returned, or `field` another number of its
    cost, such as `crash_energy_mj`. `lines` names a workload, `ops` its transactions, and `field` is `avg`, `min` or
    `max` of the lines of 64 bytes that a transaction writes.

    Raises:
        ConfigError: A name is unknown.
        ToolchainError: The guest program cannot be built.
    """
    if "lines" in selection:
        return Cells.of(_lines(selection["lines"], selection["ops"], selection["field"]))
    design = variant_name(selection["cost"])
    if design not in design_variants():
        raise unknown_name("cost", design, design_variants())
    cost: Any = design_variants()[design]["cost"]
    if "structure" not in selection:
        fields = {name: number for name, number in cost.items() if isinstance(number, int | float)}
        if selection.get("field") not in fields:
            raise unknown_name("field", str(selection.get("field")), fields)
        return Cells.of(float(fields[selection["field"]]))
    structures = {of["name"]: of for of in cost["structures"]}
    if selection["structure"] not in structures:
        raise unknown_name("structure", selection["structure"], structures)
    return Cells.of(float(structures[selection["structure"]]["bits"]))


@cache
def _lines(workload: str, ops: int, field: str) -> float:
    workload_info(workload)
    arguments = (("no-check", "true"),)
    scenario = Scenario(
        workload=workload, ops=ops, threads=suites.threads_of(workload), seed=1, workload_args=arguments
    )
    profile = json.loads(_core.profile(json.dumps(scenario.request()), discard))
    if field not in profile["tx_lines"]:
        raise refusal("field", f"'{field}' is none of {', '.join(profile['tx_lines'])}")
    return float(profile["tx_lines"][field])
