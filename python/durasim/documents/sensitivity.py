"""The document of `durasim sensitivity`: what alternatives to assumptions change, on the machine of their paper."""

from __future__ import annotations

from dataclasses import dataclass

from durasim.documents.document import Document

SCHEMA = "durasim-sensitivity/1"


@dataclass(frozen=True, slots=True)
class SensitivityRow(Document):
    """A run with an alternative to an assumption, or with all assumptions.

    Attributes:
        key: Key of the assumption; empty for the run with all assumptions: each design has one for a program.
        paper: Name of the folder of the paper whose machine and sizes it has.
        workload: The program.
        setting: The alternative, as for `--set`; empty for the run with all assumptions.
        design: The design variant.
        throughput_ops_per_us: Operations per simulated microsecond; None if the run failed.
        pmem_write_bytes: Bytes written to persistent memory; None if the run failed.
        throughput_ratio: Throughput relative to the run without the alternative; None without either.
        pmem_bytes_ratio: Bytes relative to that run; None too if it writes almost none.
        error: The reason if the run failed; None otherwise.
        command: The command that repeats the run alone.
    """

    key: str
    paper: str
    workload: str
    setting: str
    design: str
    throughput_ops_per_us: float | None
    pmem_write_bytes: int | None
    throughput_ratio: float | None
    pmem_bytes_ratio: float | None
    error: str | None
    command: str


@dataclass(frozen=True, slots=True)
class MovedComparison(Document):
    """The largest change of a ratio of two designs by an alternative to an assumption.

    Attributes:
        key: Key of the assumption.
        paper: The paper.
        workload: The program.
        setting: The alternative.
        design: The design whose throughput is divided.
        baseline: The design by whose throughput it is divided.
        assumed: The ratio with all assumptions.
        instead: The ratio with the alternative.
    """

    key: str
    paper: str
    workload: str
    setting: str
    design: str
    baseline: str
    assumed: float
    instead: float


@dataclass(frozen=True, slots=True)
class Sensitivity(Document):
    """The document of `durasim sensitivity`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        build: Hash of the sources of the build that simulated all rows.
        wall_s: Time that the command took.
        rows: The runs.
        moved: For each assumption the largest change of a ratio of two designs, the largest first.
        not_varied: Keys of assumptions without an alternative.
    """

    schema: str
    durasim_version: str
    build: str
    wall_s: float
    rows: tuple[SensitivityRow, ...]
    moved: tuple[MovedComparison, ...]
    not_varied: tuple[str, ...]

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return sum(row.error is not None for row in self.rows)
