"""The document of `durasim reproduce`: published numbers beside ours, with verdicts, and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from durasim.documents.document import Document

SCHEMA = "durasim-reproduction/4"


@dataclass(frozen=True, slots=True)
class ReproducedRow(Document):
    """A published number beside ours.

    Attributes:
        paper: The paper.
        figure: Figure, table or section of the paper.
        metric: Metric.
        design: Design, by its name in the paper.
        workload: Workload, by its name in the paper.
        baseline: Baseline, or empty.
        published: The number, a range of numbers, or words.
        unit: Its unit.
        relation: How it is compared.
        ours: Our numbers, in the unit of the paper; empty if they are not measured, or a program does not have what is
            counted.
        interval: Ends of the 95 % interval of our number; empty if there is none.
        interval_from: What the interval is from: `seeds`, or `batches` of operations of runs with one seed; empty
            without an interval.
        sensitivity_range: Ends of the range of our number over the recorded alternatives to assumptions on the machine
            of its paper; empty if none is known.
        text: Our numbers as they are shown.
        class_: The class of the number; `null` if the baseline itself would pass.
        verdict: The verdict.
        null_verdict: The verdict of the baseline in the place of the design.
        robust: Whether all recorded alternatives to assumptions give this verdict; None if none is known.
        readings: The verdict under each other reading, by its name; empty if they were not asked for.
        note: Remark for the reader.
        error: The reason if it could not be measured; None otherwise.
        command: The first of the commands that measure it, and the number of the others.
        runs: Keys of the points that it reads.
    """

    paper: str
    figure: str
    metric: str
    design: str
    workload: str
    baseline: str
    published: str
    unit: str
    relation: str
    ours: tuple[float, ...]
    interval: tuple[float, ...]
    interval_from: str
    sensitivity_range: tuple[float, ...]
    text: str
    class_: str
    verdict: str
    null_verdict: str
    robust: bool | None
    readings: Mapping[str, str]
    note: str
    error: str | None
    command: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReproducedPoint(Document):
    """A run of a reproduction.

    Attributes:
        key: Hash of all that its simulation reads: its name in the store.
        state: `simulated`, `reused` from the store, or `failed`.
        seconds: Host time of its simulation.
        command: The command that repeats it alone.
        digest: Equal for equal results; None if it failed.
        error: The reason if it failed.
    """

    key: str
    state: str
    seconds: float
    command: str
    digest: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ReadNumber(Document):
    """A number under the scored reading and under another one.

    Attributes:
        number: Figure, metric, design, workload and baseline.
        published: The published number with its unit.
        scored: Ours under the scored reading.
        scored_verdict: Its verdict.
        other: Ours under the other reading.
        other_verdict: Its verdict.
    """

    number: str
    published: str
    scored: str
    scored_verdict: str
    other: str
    other_verdict: str


@dataclass(frozen=True, slots=True)
class ReadingResult(Document):
    """Numbers and verdicts under another reading of a paper, which changes one thing in its runs or formulas.

    Attributes:
        paper: The paper.
        name: Name of the reading.
        place: Where the paper allows it.
        sentence: What the paper says that allows it: a quotation, or a value as its table has it.
        gained: Numbers that it reproduces and the scored reading does not.
        lost: Numbers that the scored reading reproduces and it does not.
        changed: Number of verdicts that differ.
        numbers: The numbers that differ under it.
        claims: Its counts, as those of the reproduction.
    """

    paper: str
    name: str
    place: str
    sentence: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    changed: int
    numbers: tuple[ReadNumber, ...]
    claims: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SeriesPoint(Document):
    """One of our numbers over an axis.

    Attributes:
        x: The value of the axis.
        by: The value that the colour stands for; empty if there is one line.
        ours: The number: the mean over seeds.
        interval: Ends of its 95 % interval over the seeds; empty with fewer than two seeds.
    """

    x: str
    by: str
    ours: float
    interval: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SeriesMark(Document):
    """A published number at a value of an axis.

    Attributes:
        x: The value of the axis.
        from_: The number, or the lower end of its range.
        to: The upper end of its range; the number itself if it is none.
    """

    x: str
    from_: float
    to: float


@dataclass(frozen=True, slots=True)
class ReproducedSeries(Document):
    """Our numbers over an axis, drawn as the paper draws them.

    Attributes:
        paper: The paper.
        figure: Name of the file of the figure.
        title: What is drawn.
        form: `bars` or `curves`.
        unit: Unit of the numbers.
        x: The axis.
        by: The axis that colours stand for; empty for one line.
        scale: `linear` or `log`.
        x_scale: `linear` or `log`: of the horizontal axis of curves.
        reference: The value of the baseline; None if there is none.
        points: Our numbers.
        marks: The published ones.
        peak: Ends of the published range of the axis in which a curve has its largest number; empty if none is.
        error: The reason if nothing can be drawn; None otherwise.
    """

    paper: str
    figure: str
    title: str
    form: str
    unit: str
    x: str
    by: str
    scale: str
    x_scale: str
    reference: float | None
    points: tuple[SeriesPoint, ...]
    marks: tuple[SeriesMark, ...]
    peak: tuple[float, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class Chance(Document):
    """Numbers by chance: those that are reproduced if results of designs are exchanged at random.

    Attributes:
        permutations: Number of permutations of the labels of designs.
        numbers: Published numbers that score and read runs of several designs that have all that they read.
        ours: Those of them that are reproduced without a permutation, intervals left out.
        mean: Mean number of those that a permutation reproduces.
        interval: Ends of the interval that has 95 % of the permutations.
        share_at_least_ours: Share of the permutations that reproduce at least as many as `ours`.
    """

    permutations: int
    numbers: int
    ours: int
    mean: float
    interval: tuple[int, int]
    share_at_least_ours: float


@dataclass(frozen=True, slots=True)
class Reproduction(Document):
    """The document of `durasim reproduce`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        build: Hash of the sources of the build.
        papers: Names of the papers.
        scale: `quick` or `paper`.
        seeds: Least number of seeds of each run.
        wall_s: Time that the command took.
        claims: Number of published numbers by verdict if they score, else by class; `total` and `scored` are sums.
        bands: Verdicts of numbers that score, by the width of the band of a reproduced number in percent.
        chance: What chance gives.
        rows: The published numbers.
        series: Our numbers over axes of the runs, drawn as the papers draw them.
        points: The runs, those of readings among them.
        readings: Other readings, each with the verdicts that it gains and loses; empty if they were not asked for.
    """

    schema: str
    durasim_version: str
    build: str
    papers: tuple[str, ...]
    scale: str
    seeds: int
    wall_s: float
    claims: Mapping[str, int]
    bands: Mapping[str, Mapping[str, int]]
    chance: Chance
    rows: tuple[ReproducedRow, ...]
    series: tuple[ReproducedSeries, ...]
    points: tuple[ReproducedPoint, ...]
    readings: tuple[ReadingResult, ...]

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return sum(point.error is not None for point in self.points)

    @property
    def unmeasured(self) -> int:
        """Number of published numbers that could not be measured."""
        return sum(row.error is not None for row in self.rows)
