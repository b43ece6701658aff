"""The appendix of an artifact, with the headings that ACM artifact evaluation asks for."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

from durasim import _core
from durasim.artifacts.evidence import Evidence
from durasim.artifacts.packed import shown
from durasim.artifacts.wheels import Wheel
from durasim.documents.escaping import in_markdown
from durasim.documents.summaries import count

_ROWS_MAX = 200
"""Rows of a table in the appendix; the file of numbers has all."""
_SHORT_S = 90
_MEGABYTE = 1_000_000
_NAMES_MAX = 12


def appendix(
    evidence: Evidence, wheels: Sequence[Wheel], *, disk_bytes: int, programs: int, top: str, shows: str,
    folders: Sequence[tuple[str, str]], has_study: bool,
) -> str:  # fmt: skip
    """Returns the appendix as Markdown. Disk, memory and minutes are those of the packed files and documents.

    Args:
        evidence: The points and numbers.
        wheels: The packed wheels.
        disk_bytes: Size of the unpacked artifact with the installed wheels.
        programs: Number of packed programs.
        top: The folder of the unpacked artifact.
        shows: The command that prints the numbers after a rerun.
        folders: Folders of packed files, with words for each.
        has_study: Whether the artifact is of a study.
    """
    import jinja2  # noqa: PLC0415 - keeps the start-up of other commands short

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("durasim", "artifacts"), trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False,  # noqa: S701 - not HTML
    )  # fmt: skip
    environment.filters["md"] = lambda text: in_markdown(str(text).replace("\n", " "))
    documents = [point.document for point in evidence.points]
    compilers = {str(of["provenance"]["guest_compiler"] or "by the authors") for of in documents}
    return environment.get_template("appendix.md").render(
        title=in_markdown(evidence.title),
        count=len(documents),
        version=_core.__version__,
        build=_core.__build__,
        designs=_listed({str(of["design"]) for of in documents}),
        programs=_listed({str(shown(point.prepared.request["workload"])) for point in evidence.points}),
        compilers=_listed(compilers),
        binaries=count(programs, "program"),
        wheel_count=len(wheels),
        wheels_size=_megabytes(sum(of.path.stat().st_size for of in wheels)),
        seeds=_listed({int(of["seed"]) for of in documents}),
        system=f"{platform.system()} {platform.machine()}",
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        memory=_megabytes(max(int(of["host"]["peak_rss_bytes"]) for of in documents)),
        metrics=_listed(dict.fromkeys(metric.replace("\n", " ") for metric in evidence.metrics)),
        disk=_megabytes(disk_bytes),
        minutes=_minutes([float(of["host"]["seconds"]) for of in documents]),
        archive=f"{top}.tar.gz",
        folders=folders,
        study=has_study,
        shows=shows,
        tables=evidence.tables,
        rows_max=_ROWS_MAX,
    )


def _listed(names: set[str] | set[int] | dict[str, None]) -> str:
    """Returns names in one line, sorted if they are a set."""
    ordered = sorted(names) if isinstance(names, set) else list(names)  # type: ignore[type-var]
    first = ", ".join(in_markdown(str(name)) for name in ordered[:_NAMES_MAX])
    return first + (f" and {more} more" if (more := len(ordered) - _NAMES_MAX) > 0 else "")


def _megabytes(size_bytes: int) -> str:
    return f"{max(size_bytes / _MEGABYTE, 1):,.0f} MB"


def _minutes(seconds: Sequence[float]) -> str:
    """Returns the time of all simulations on one core, and that of the longest."""
    longest = f"the longest simulation takes {_time(max(seconds))}"
    return f"{_time(sum(seconds))} on one core of the authors' computer; {longest}"


def _time(seconds: float) -> str:
    return f"{max(seconds, 1):,.0f} s" if seconds < _SHORT_S else f"{seconds / 60:,.0f} minutes"
