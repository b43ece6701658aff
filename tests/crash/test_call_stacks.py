"""Call stacks of the stores that causes of violations name, with frames of every kind that compilers make."""

from pathlib import Path

import pytest

import compiled
import durasim as ds
from durasim.crashes.sarif import sarif_log
from durasim.documents.causes import cause_lines

SOURCE = Path(__file__).with_name("call_stacks.c")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
# Frames that are found from the stack pointer, from the frame pointer, and by .debug_frame in place of .eh_frame.
FLAGS = {
    "stack-pointer": (),
    "frame-pointer": ("-O0", "-fno-omit-frame-pointer"),
    "debug-frame": ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
}


def line_of(mark):
    (line,) = [number for number, text in enumerate(LINES, 1) if f"/* {mark} */" in text]
    return line


def crash(elf, *words):
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", *words], check_args=["check"], points="all",
        faults=("clean",),
    )  # fmt: skip


CALLS = [
    ("descend", "lost"), ("descend", "deeper"), ("descend", "deeper"), ("inlined", "inlined"), ("work", "work"),
]  # fmt: skip


@pytest.mark.parametrize("kind", FLAGS)
@pytest.mark.parametrize("words", [(), ("thread",)], ids=["main", "thread"])
def test_the_calls_that_have_led_to_a_store_are_named(kind, words):
    result = crash(compiled.program(SOURCE, FLAGS[kind]), *words)
    (cause,) = result.causes["found"]
    (store,) = cause["stores"]
    assert (store["at"]["function"], store["at"]["line"]) == ("set", line_of("store"))
    frames = [(frame["function"], frame["line"]) for frame in (*store["inlined_into"], *store["callers"])]
    expected = [(function, line_of(mark)) for function, mark in CALLS]
    assert frames[: len(expected)] == expected
    outer = frames[len(expected) :]
    if words:
        assert "main" not in dict(outer), "the stack of the thread is its own"
    else:
        assert outer[0] == ("main", line_of("main"))
    text = "\n".join(cause_lines(result.causes))
    calls = [f"called from call_stacks.c:{line_of(mark)} in {function}" for function, mark in CALLS[:3]]
    assert all(call in text for call in calls)
    (stack,) = sarif_log(result)["runs"][0]["results"][0]["stacks"]
    names = [frame["location"]["logicalLocations"][0]["name"] for frame in stack["frames"][: len(CALLS) + 1]]
    assert names == ["set", *(function for function, _ in CALLS)]
