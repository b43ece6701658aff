"""Values of presets, designs and programs, for tests of tables and of prose that name them."""

from functools import cache

import durasim as ds
from durasim.programs import toolchain


@cache
def effective(machine, design):
    """Returns the configuration of a run on the preset, with every default."""
    over_objects = next(row for row in ds.designs() if row["name"] == design)["interfaces"] == ["objects"]
    result = ds.run(
        design=design, control=True, workload="pinspect-hashmap" if over_objects else "array-swap", machine=machine,
        ops=1, workload_args={"populate": 4}, guest_output=lambda *_: None,
    )  # fmt: skip
    return result.to_dict()["configuration"]


def value(machine, key):
    """The value of a key on a preset, or None: `machine:PATH`, `design:DESIGN.NAME` or `argument:PROGRAM.NAME`."""
    kind, _, path = key.partition(":")
    if kind == "argument":
        return argument(path).default
    design = path.split(".")[0] if kind == "design" else "opt"
    at = effective(machine, design)
    for part in (["design"] if kind == "design" else []) + path.split("."):
        if not isinstance(at, dict) or part not in at:
            return None
        at = at[part]
    return at


@cache
def workloads():
    """Programs and members of suites, by name."""
    return {workload.name: workload for workload in [*ds.workloads(), *(member.info for member in ds.suite_members())]}


def argument(path):
    """The argument of a workload or of a runtime, or None; there has to be such a workload or runtime."""
    name, wanted = path.split(".")
    owner = (workloads() | {runtime.name: runtime for runtime in toolchain.backends()})[name]
    return next((known for known in owner.arguments if known.name == wanted), None)
