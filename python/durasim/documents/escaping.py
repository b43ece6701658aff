"""Text of others for terminals, pages, charts and tables: names of studies, workloads and files, messages of guests.

Such text may contain control characters, markup, or the beginning of a formula. Each place that shows text has one
function here, so that the text is shown and never obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

# Control characters of ASCII and Latin-1, line and paragraph separators, marks that change the direction of text, and
# halves of surrogate pairs, which no stream can write.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL_IN_LINES = re.compile(_CONTROL.pattern.replace(r"\x00-\x1f", r"\x00-\x08\x0b-\x1f"))
# A spreadsheet takes a cell that begins like this as a formula; it skips spaces, tabs and line breaks.
_FORMULA = re.compile(r"[\t\n ]*[=+\-@]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_MARKUP = re.compile(r"[\\`*_\[\]<>|]")
_WORD_JOINER = "\u2060"


def printable(text: str) -> str:
    r"""Returns a text of one line with control characters in the form that Python writes them, such as `\x1b`."""
    return _CONTROL.sub(_written, text)


def printable_lines(text: str) -> str:
    """Returns a text of several lines; line breaks and tabs are kept, other control characters are not."""
    return _CONTROL_IN_LINES.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def in_html(text: str) -> str:
    """Returns a text for HTML, inside of an element or of an attribute in quotes."""
    import html  # noqa: PLC0415 - keeps the start-up of commands short

    return html.escape(printable(text))


def in_markdown(text: str) -> str:
    """Returns a text for a line or a cell of Markdown."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def in_chart(text: str) -> str:
    """Returns a text for a chart.

    Pages embed a chart as JSON in a script, which `</script>` or `<!--` in a name would end. An invisible character
    after each `<` prevents that wherever the chart is embedded.
    """
    return printable(text).replace("<", f"<{_WORD_JOINER}")


def shown_exactly(chart: Any) -> Any:
    """Returns a chart for an image, without the invisible characters of `in_chart`: an image has no script."""
    if isinstance(chart, dict):
        return {name: shown_exactly(item) for name, item in chart.items()}
    if isinstance(chart, list):
        return [shown_exactly(item) for item in chart]
    return chart.replace(f"<{_WORD_JOINER}", "<") if isinstance(chart, str) else chart


def in_csv(value: Any) -> Any:
    """Returns a cell of a CSV file: a text that a spreadsheet would take as a formula begins with an apostrophe.

    Numbers, also as texts, are unchanged. Control characters are visible: a carriage return would begin a row.
    """
    if not isinstance(value, str):
        return value
    text = printable_lines(value)
    is_formula = _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text


def csv_text(frame: polars.DataFrame) -> str:
    """Returns a data frame as CSV; the elements of lists are separated by spaces."""
    import polars  # noqa: PLC0415 - polars takes a while to load

    lists = [name for name, kind in frame.schema.items() if isinstance(kind, polars.List)]
    flat = frame.with_columns(polars.col(name).list.join(" ") for name in lists)
    texts = [name for name, kind in flat.schema.items() if kind == polars.String]
    columns = (polars.Series(name, [in_csv(value) for value in flat[name]], dtype=polars.String) for name in texts)
    return flat.with_columns(columns).rename({name: in_csv(name) for name in flat.columns}).write_csv()


def chart_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of a chart with their texts as `in_chart` returns them."""
    return [{name: in_chart(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows]
