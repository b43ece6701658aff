"""The causes of the violations of a campaign, as text for a terminal and as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from durasim.documents.escaping import printable

Json = Mapping[str, Any]

_MISSING = {
    "no-clean": "its line is not cleaned after it",
    "clean-before-store": "its line is cleaned before it, not after it",
    "clean-of-another-line": "another line is cleaned after it, which has nothing to write back",
    "no-fence": "its line is cleaned, and no fence waits for that",
    "other-fence": "its line is cleaned, and the fence after that has no W in its predecessor set",
    "order": "the store that relies on it is durable first",
    "nothing": "its line is cleaned and a fence has waited for that, or the domain keeps every store",
    "undo": "nothing undoes it",
}
_STATES = {
    "lost": "is lost",
    "torn": "is torn",
    "later": "comes too late",
    "early": "is durable and should not be",
}
_OPERATIONS = {"clean": "a clean", "clean-and-fence": "a clean and a fence", "fence": "a fence"}
_STORES_SHOWN = 4


def cause_lines(causes: Json) -> list[str]:
    """Returns the causes as lines for a terminal, without indentation of the first level."""
    if causes["not_searched"] is not None:
        return [f"causes: {causes['not_searched']}"]
    lines: list[str] = []
    found = causes["found"]
    for cause in found:
        lines += _cause(cause, is_only=len(found) == 1)
    for name, what in (
        ("unexplained", "without a cause among the stores"),
        ("not_examined", "not examined for causes"),
    ):
        if causes[name]:
            lines.append(f"{_violations(causes[name])} {what}")
    if causes["debug_information"] is not None:
        lines.append(printable(causes["debug_information"]))
    return lines


def cause_rows(causes: Json | None) -> Iterator[dict[str, Any]]:
    """Yields a row for each cause that was found: the place of its first store, and the step that is missing.

    Args:
        causes: The causes of a campaign, see schemas/causes.json; None if it has none.
    """
    for cause in () if causes is None else causes["found"]:
        store = cause["stores"][0]
        yield {
            "place": place(store),
            **store["at"],
            "pc": store["pc"],
            "size_bytes": store["size_bytes"],
            "what": cause["what"],
            "missing": cause["missing"],
            "confirmed": cause["confirmed"],
            "violations": cause["violations"],
            "first": cause["first"],
        }


def first_cause(causes: Json | None) -> str | None:
    """Returns the place of the first store of the first cause, such as `list.c:48 in push`; None without a cause."""
    found = [] if causes is None else causes["found"]
    return place(found[0]["stores"][0]) if found else None


def place(at: Json) -> str:
    """Returns a place as `list.c:48 in push`, as far as it is known."""
    frame = at["at"]
    where = f"pc {at['pc']:#x}" if frame["line"] is None else f"{_name(frame)}:{frame['line']}"
    return printable(where if frame["function"] is None else f"{where} in {frame['function']}")


def _operation(at: Json) -> str:
    """Returns the place of a clean or fence in the function that the program has, not in one inlined into it."""
    return place({**at, "at": at["inlined_into"][-1]} if at["inlined_into"] else at)


def _name(frame: Json) -> str:
    return PurePosixPath(frame["file"] or "?").name


def _violations(number: int) -> str:
    return "1 violation" if number == 1 else f"{number:,} violations"


def _cause(cause: Json, *, is_only: bool) -> Iterator[str]:
    store, *others = cause["stores"]
    kind = "one cause" if is_only else "cause"
    yield (
        f"{_violations(cause['violations'])} ({cause['first']} is the first), {kind}: {place(store)}: the store of "
        f"{store['size_bytes']} bytes {_STATES[cause['what']]} (value {store['value']}, thread {store['thread']})"
    )
    yield f"  {_MISSING[cause['missing']]}"
    for frame in store["inlined_into"]:
        yield f"  inlined into {place({**store, 'at': frame})}"
    for frame in _callers_of_the_program(store["callers"]):
        yield f"  called from {_caller(store, frame)}"
    if others:
        shown = ", ".join(place(other) for other in others[:_STORES_SHOWN])
        more = f" and {len(others) - _STORES_SHOWN} more" if len(others) > _STORES_SHOWN else ""
        yield f"  with the stores at {shown}{more}"
    yield from _relied(cause["relied"])
    yield _verdict(cause)


def _caller(store: Json, frame: Json) -> str:
    """Returns the place of a call. The address that is known is that of the store."""
    if frame["file"] is None or frame["line"] is None:
        return frame["function"] or "a function without a name"
    return place({**store, "at": frame})


def _callers_of_the_program(callers: list[Json]) -> list[Json]:
    """Returns the callers up to `main`, or to the outermost one whose line is known: after it comes the C library."""
    ends = [number for number, frame in enumerate(callers, 1) if frame["function"] == "main"]
    ends = ends[:1] or [number for number, frame in enumerate(callers, 1) if frame["line"] is not None]
    return callers[: ends[-1]] if ends else []


def _relied(relied: Json | None) -> Iterator[str]:
    if relied is None:
        return
    kinds = {"commit": "acknowledged by the commit at", "fence": "promised by the fence at"}
    if relied["kind"] in kinds:
        yield f"  {kinds[relied['kind']]} {_operation(relied)}"
        return
    cleaned = relied["cleaned_by"]
    how = "since its line was evicted" if cleaned is None else f"since the clean at {_operation(cleaned)}"
    yield f"  relied on by the store at {place(relied)}, durable {how}"


def _verdict(cause: Json) -> str:
    inserted = [f"{_OPERATIONS[operation['what']]} after {_operation(operation)}" for operation in cause["inserted"]]
    tested = cause["tested"]
    of = "" if tested is None else f"{tested['violations']:,} of {tested['trials']:,} crashes violate"
    if cause["confirmed"]:
        return f"  confirmed: with {' and '.join(_short(one) for one in inserted)}, {of}"
    reason = printable(cause["unconfirmed_because"] or "")
    return f"  candidate: {reason}{f' ({of})' if of else ''}"


def _short(operation: str) -> str:
    """Returns an inserted operation without its function."""
    return operation.rsplit(" in ", 1)[0]
