"""The keys of study files as arguments of `durasim.sweep`, from schemas/study-file.json.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from durasim.runs.machine import Machine


class StudyArguments(TypedDict, total=False):
    """The keys of a study file.

    Attributes:
        name: Name of the study, in the store and in files that it writes.
        kind: `run` simulates each point, `crash` crashes it; `run` if not given.
        designs: Designs; `all-SUITE` stands for those of a paper.
        workloads: Workloads, or paths of sources relative to the study file; `all-SUITE` stands for all of a suite.
        macros: Macros with which the workloads are compiled, NAME or NAME=VALUE each.
        include_folders: Folders of further headers of the workloads, relative to the study file.
        programs: Own programs instead of workloads.
        machine: A preset or machine file, or several; files are relative to the study file.
        ops: Operations of each workload.
        threads: Threads of the guest, one number or several; those of the suite of a workload if not given.
        seeds: The number of seeds, from 1 on, or a list of them; 1 if not given.
        domain: Persistence domain; that of each design if not given.
        scale: Size of machine, designs and data: `paper` or `quick`.
        control: Whether cases that are expected to fail are permitted.
        set: Parameters of machine and designs that are equal at all points.
        args: Arguments of workloads that are equal at all points.
        run: Options of `durasim run` that are equal at all points.
        crash: Options of `durasim crash` that are equal at all points.
        shared_population: Whether each program is populated once, functionally, and all its points start from its
            snapshot.
        axes: Values of each swept key: a list, or a range with a step, a factor or a number of points.
        constraints: Conditions that a point has to meet, such as `llc >= l2`.
        sample: Draws points from the axes instead of taking all combinations of their values.
        refine: Bisects an axis until two values of it enclose the one at which a metric crosses a threshold.
        pareto: Marks the points that no other point beats in all of these metrics.
        plot: A plot of a metric, as with the options --plot, --x, --by and --plot-file.
    """

    name: str
    kind: Literal["run", "crash"]
    designs: Sequence[str]
    workloads: Sequence[str]
    macros: Sequence[str]
    include_folders: Sequence[str]
    programs: Sequence[Mapping[str, Any]]
    machine: str | Machine | Sequence[str | Machine]
    ops: int
    threads: int | Sequence[int]
    seeds: int | Sequence[int]
    domain: str
    scale: str
    control: bool
    set: Mapping[str, Any]
    args: Mapping[str, Any]
    run: Mapping[str, Any]
    crash: Mapping[str, Any]
    shared_population: bool
    axes: Mapping[str, Any]
    constraints: Sequence[str]
    sample: Mapping[str, Any]
    refine: Mapping[str, Any]
    pareto: Mapping[str, Any]
    plot: Mapping[str, Any]
