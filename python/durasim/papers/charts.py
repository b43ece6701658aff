"""Charts of figures: our numbers as bars with intervals, the published ones as marks in front of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durasim.documents.reproduction import ReproducedRow

if TYPE_CHECKING:
    import altair

OURS, PUBLISHED = "durasim", "published"
_HEIGHT = 240
_BAND_WIDTH = 34
"""Width of a bar with its space, in pixels."""
_WIDTH_MIN = 260
# Of the palette of Okabe and Ito, which readers with any colour vision can distinguish.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_LABELS_STRAIGHT_MAX = 6
"""Characters of a label that fits below its bar without being turned."""


def drawn_rows(plot: Mapping[str, Any], rows: Sequence[ReproducedRow]) -> list[dict[str, Any]]:
    """Returns the data of a chart: single numbers of the plotted metric, ours and the published one."""
    found = []
    for row in rows:
        if row.metric != plot["metric"] or row.baseline != plot.get("baseline", row.baseline):
            continue
        if len(row.ours) != 1 or not row.published:
            continue
        ends = [float(end) for end in row.published.split("-")] if row.published[0].isdigit() else []
        if not ends:
            continue
        low, high = row.interval or (None, None)
        found.append({
            "x": getattr(row, plot["x"]),
            "by": getattr(row, plot["by"]) if "by" in plot else "",
            "ours": row.ours[0],
            "low": low,
            "high": high,
            "published": ends[0],
            "published_to": ends[-1],
            "verdict": row.verdict,
        })  # fmt: skip
    return found


def chart(plot: Mapping[str, Any], rows: Sequence[ReproducedRow]) -> altair.LayerChart | None:
    """Returns the chart of a figure; None if no number of its metric is measured and published as a number."""
    import altair  # noqa: PLC0415 - slow to load

    data = drawn_rows(plot, rows)
    if not data:
        return None
    unit = next(row.unit for row in rows if row.metric == plot["metric"])
    is_grouped = len({of["by"] for of in data}) > 1
    groups, bars = _distinct(data, "x"), _distinct(data, "by")
    is_log = plot.get("scale") == "log"
    x = altair.X("x:N", title=plot["x"], sort=groups, axis=altair.Axis(labelAngle=_angle(groups), labelLimit=240))
    offset = {"xOffset": altair.XOffset("by:N", sort=bars)} if is_grouped else {}
    title = f"{plot['metric'].replace('_', ' ')} ({unit})" if unit else plot["metric"].replace("_", " ")
    scale = altair.Scale(type="log", nice=False) if is_log else altair.Scale(zero=True)
    base = altair.Chart(altair.Data(values=data)).encode(x=x, **offset)
    colour = (
        altair.Color("by:N", title=plot["by"], sort=bars, scale=altair.Scale(range=list(_COLOURS)))
        if is_grouped
        else altair.value(_COLOURS[0])
    )
    y = altair.Y("ours:Q", title=title, scale=scale, stack=None)
    # A bar has no meaning from a logarithmic axis' least value on: a point does.
    ours = base.mark_point(filled=True, size=60) if is_log else base.mark_bar()
    layers = [
        ours.encode(y=y, color=colour),
        base.mark_rule(color="black").encode(y="low:Q", y2="high:Q"),
        base.mark_rule(color="#B00020", strokeWidth=3).encode(y="published:Q", y2="published_to:Q"),
        base.mark_point(color="#B00020", shape="diamond", filled=True, size=46, stroke="white", strokeWidth=1).encode(
            y="published:Q"
        ),
    ]
    width = max(_WIDTH_MIN, _BAND_WIDTH * len(groups) * (len(bars) if is_grouped else 1))
    return altair.layer(*layers).properties(width=width, height=_HEIGHT)


def svg(plot: Mapping[str, Any], rows: Sequence[ReproducedRow]) -> str | None:
    """Returns the chart of a figure as SVG; None if there is nothing to draw."""
    import vl_convert  # noqa: PLC0415 - slow to load

    drawn = chart(plot, rows)
    return None if drawn is None else str(vl_convert.vegalite_to_svg(drawn.to_dict()))


def _distinct(data: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(str(of[key]) for of in data))


def _angle(labels: Sequence[str]) -> int:
    return 0 if max(map(len, labels)) <= _LABELS_STRAIGHT_MAX else -35
