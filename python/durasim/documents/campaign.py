"""The document of a campaign as a result of the Python API: a dictionary that also shows itself in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from durasim.documents.causes import first_cause
from durasim.documents.presentation import Presented, Summary
from durasim.documents.summaries import number

if TYPE_CHECKING:
    import altair
    import polars


class CampaignResult(Presented, dict[str, Any]):
    """The document of `durasim campaign --json`, a dictionary with the keys that docs/crash.md lists."""

    def summary(self) -> Summary:
        """Returns the runs, trials and violations of each design, domain, workload and number of threads."""
        names = ("design", "domain", "workload")
        numbers = ("threads", "runs", "trials", "violations")
        rows = [(*(of[name] for name in names), *(number(of[name]) for name in numbers)) for of in self["results"]]
        failed = [f"failed: {reason}" for reason in self["failed_checks"]]
        notes = failed or ["passed: all recoveries correct, every control ended as expected"]
        notes += [f"{failure['id']} ({failure['oracle']}): {failure['message']}" for failure in self["failures"][:3]]
        places = [(of, first_cause(of["causes"])) for of in self["causes"]]
        notes += [f"cause in {of['workload']}: {place}" for of, place in places if place is not None][:3]
        title = f"campaign {self['name']}: {number(self['trials'])} trials"
        return Summary(title, (*names, *numbers), rows, len(numbers), notes)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row for each design, domain, workload and number of threads."""
        from durasim.documents.frame import campaign_frame  # noqa: PLC0415 - polars takes a while to load

        return campaign_frame(self)

    def causes_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row for each cause of violations: run, place, missing step, command."""
        from durasim.documents.frame import causes_frame  # noqa: PLC0415 - polars takes a while to load

        names = ("design", "domain", "workload", "seed")
        return causes_frame(({name: of[name] for name in names}, of["causes"], of["command"]) for of in self["causes"])

    def plot(self) -> altair.Chart:
        """Returns a chart of the trials of each design: those after which the promise held, and violations.

        Raises:
            ConfigError: No run of the campaign has ended.
        """
        from durasim.documents.charts import bar_chart  # noqa: PLC0415 - keeps the start-up of commands short

        totals: dict[tuple[str, str], int] = {}
        for of in self["results"]:
            for kind, trials in (("kept", of["trials"] - of["violations"]), ("violated", of["violations"])):
                totals[of["design"], kind] = totals.get((of["design"], kind), 0) + trials
        rows = [(design, kind, trials) for (design, kind), trials in totals.items()]
        title = f"campaign {self['name']}"
        return bar_chart(rows, title=title, of="design", value="trials (count)", group="promise")
