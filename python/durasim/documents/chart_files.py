"""Files of charts, converted without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from durasim.documents.escaping import shown_exactly
from durasim.errors import host_io, refusal
from durasim.output import replace_file

FORMATS = (".svg", ".png", ".html")


def check_chart_file(field: str, path: str) -> None:
    """Refuses a file that is of no known kind.

    Raises:
        ConfigError: The name of the file ends otherwise than `FORMATS`; the message begins with `field`.
    """
    if Path(path).suffix not in FORMATS:
        raise refusal(field, f"'{path}' ends with none of {', '.join(FORMATS)}")


def write_chart(drawn: dict[str, Any], path: str) -> None:
    """Writes a chart to a file, atomically.

    Args:
        drawn: The chart, as `to_dict` of altair returns it.
        path: The file; its ending is one of `FORMATS`.

    Raises:
        HostIoError: The file cannot be written.
    """
    import vl_convert  # noqa: PLC0415 - slow to load

    suffix = Path(path).suffix
    if suffix == ".svg":
        data = vl_convert.vegalite_to_svg(shown_exactly(drawn)).encode()
    elif suffix == ".png":
        data = vl_convert.vegalite_to_png(shown_exactly(drawn), scale=2)
    else:
        data = vl_convert.vegalite_to_html(drawn, bundle=True).encode()
    try:
        replace_file(Path(path), data)
    except OSError as error:
        raise host_io(path, error) from None
