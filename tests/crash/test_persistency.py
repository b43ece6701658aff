"""Persistency models: the images that each permits, of litmus programs and of programs with known mistakes."""

import re
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

LITMUS, CAUSES, BUGS = (Path(__file__).with_name(name) for name in ("persistency.c", "causes.c", "bugs.c"))
ORDERED = {(0, 0), (1, 0), (1, 1)}
ANY = ORDERED | {(0, 1)}
MODELS = ("strict", "epoch", "x86", "x86-clflush")
# For each program, the images under the models.
IMAGES = {
    "no-fence": (ORDERED, ANY, ANY, ANY),
    "fence": (ORDERED, ORDERED, ANY, ANY),
    "clean": (ORDERED, ANY, ANY, ANY),
    "clean-and-fence": (ORDERED, ORDERED, ORDERED, ORDERED),
    "flush": (ORDERED, ANY, ANY, ORDERED),
    "non-temporal": (ORDERED, ANY, ANY, ANY),
    "non-temporal-and-fence": (ORDERED, ORDERED, ORDERED, ORDERED),
    # What a thread has read in the DRAM orders nothing.
    "message": (ORDERED, ANY, ANY, ANY),
    "message-and-clean": (ORDERED, ORDERED, ORDERED, ORDERED),
    "one-line": (ORDERED, ANY, ORDERED, ORDERED),
    "one-line-non-temporal": (ORDERED, ANY, ANY, ANY),
}
MISTAKES, BUG_NAMES = (
    re.findall(r'^    \{"([a-z-]+)", ', source.read_text(encoding="utf-8"), re.MULTILINE) for source in (CAUSES, BUGS)
)
# Mistakes that show under strict persistency, which keeps the order of the stores, and those that also show under epoch
# persistency. Under both a fence orders stores without a clean: a missing clean is none.
UNDER_STRICT = {
    "count-before-contents", "allocation-before-link", "transaction", "lock-persisted", "stale-log", "root-missing",
    "sixteen-bytes", "two-writers",
}  # fmt: skip
UNDER_EPOCH = UNDER_STRICT | {
    "missing-fence", "fence-of-another-kind", "wrong-order", "recovery-without-fences", "dirty-read", "truncated-log",
    "short-checksum",
}  # fmt: skip
CASES = [(shape, model) for shape in IMAGES for model in MODELS]


def crash(source, *words, model, **options):
    return ds.crash(
        design="opt", machine="tiny", elf=compiled.program(source), args=["run", *words],
        check_args=["check", *words], persistency_model=model,
        **{"faults": ("clean",), "points": "exhaustive"} | options,
    )  # fmt: skip


def left(result):
    """Returns the images that the check has refused, and the one that it accepts."""
    found = {re.search(r"left: (\d) (\d)", failure.message).groups() for failure in result.failures}
    return {(int(x), int(y)) for x, y in found} | {(1, 1)}


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("shape", "model"), CASES)
def test_a_litmus_program_leaves_the_images_of_the_model(shape, model):
    result = crash(LITMUS, shape, model=model)
    assert left(result) == IMAGES[shape][MODELS.index(model)]
    assert result.trials_by_fault == {model: result.trials}
    assert result.not_tried == {}


def test_an_image_is_replayed_and_drawn_ones_are_among_all():
    result = crash(LITMUS, "clean", model="x86")
    failure = result.failures[-1]
    assert "--persistency-model x86 --replay" in failure.command
    again = crash(LITMUS, "clean", model="x86", points=None, faults=None, replay=failure.id)
    assert [(found.id, found.message) for found in again.failures] == [(failure.id, failure.message)]
    assert "the persistency model x86 permits" in again.timeline["phases"][0]["failure"]["how"]
    drawn = crash(LITMUS, "clean", model="x86", points="all", variants=1)
    assert {failure.id for failure in drawn.failures} <= {failure.id for failure in result.failures}
    assert drawn.points < drawn.trials <= 2 * drawn.points


@pytest.mark.drawn(6)
@pytest.mark.parametrize("shape", [shape for shape in IMAGES if not shape.startswith("non-temporal")])
def test_the_images_of_the_machine_are_among_those_of_x86(shape):
    result = crash(LITMUS, shape, model=None, faults=("clean", "reorder", "evict"))
    assert left(result) <= IMAGES[shape][MODELS.index("x86")]


@pytest.mark.drawn(8)
@pytest.mark.parametrize("model", ["strict", "epoch"])
@pytest.mark.parametrize("mistake", [*MISTAKES, *BUG_NAMES])
def test_a_mistake_shows_where_the_model_does_not_order_it(mistake, model):
    source = CAUSES if mistake in MISTAKES else BUGS
    options = {"points": "all", "variants": 8, "model": model, "faults": ("nested", "recrash")}
    shows = UNDER_STRICT if model == "strict" else UNDER_EPOCH
    assert (crash(source, mistake, **options).violations > 0) == (mistake in shows)
    assert crash(source, mistake, "right", **options).failures == ()


@pytest.mark.drawn(5)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught_under_x86_and_right_work_survives(mistake):
    options = {"points": "all", "variants": 8, "model": "x86"}
    assert crash(CAUSES, mistake, **options).violations > 0
    assert crash(CAUSES, mistake, "right", **options).failures == ()


@pytest.mark.drawn(5)
@pytest.mark.parametrize("bug", BUG_NAMES)
def test_a_bug_of_published_software_is_caught_under_x86_and_right_work_survives(bug):
    options = {"points": "all", "variants": 8, "model": "x86", "faults": ("nested", "recrash")}
    wrong = crash(BUGS, bug, **options)
    assert wrong.violations > 0
    assert set(wrong.trials_by_fault) <= {"x86", "nested+x86", "recrash+x86"}
    assert crash(BUGS, bug, "right", **options).failures == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"design": "hercules"}, r"hercules has hardware that decides what becomes durable"),
        ({"domain": "eadr"}, r"a model takes the place of the domain adr, and this run has eadr"),
        ({"model": "px86"}, r"persistency-model: 'px86' is unknown \(allowed: strict, epoch, x86, x86-clflush\)"),
        ({"faults": ("torn",)}, r"fault: 'torn' has no meaning under a persistency model"),
        ({"replay": "e1", "points": None, "faults": None}, r"'e1' has an image of the machine"),
        ({"replay": "e1:epoch.0", "points": None, "faults": None}, r"of the persistency model epoch: ask for epoch"),
        ({"replay": "e1:x86.99", "points": None, "faults": None}, r"persist event 1 has \d images under x86"),
    ],
)
def test_what_has_no_meaning_is_refused(options, problem):
    with pytest.raises(ds.ConfigError, match=problem):
        ds.crash(
            **{
                "design": "opt", "machine": "tiny", "elf": compiled.program(LITMUS), "args": ["run", "clean"],
                "check_args": ["check", "clean"], "persistency_model": options.pop("model", "x86"),
                "points": "all",
            } | options
        )  # fmt: skip


def test_the_page_shows_no_image_of_a_model():
    done = command_line.run(
        "explore", "--design", "opt", "--elf", compiled.program(LITMUS), "--check", "check clean",
        "--persistency-model", "x86", "--", "run", "clean",
    )  # fmt: skip
    assert done.returncode == 2
    assert "persistency-model: the page shows what the machine leaves" in done.stderr


@pytest.mark.parametrize("model", MODELS)
def test_a_workload_with_a_log_survives_every_model(model):
    result = ds.crash(
        design="swl-flush", workload="array-swap", machine="tiny", ops=6, workload_args={"populate": 6}, points=25,
        faults=("nested", "recrash"), persistency_model=model,
    )  # fmt: skip
    assert result.failures == ()
    assert {model, f"nested+{model}", f"recrash+{model}"} == result.trials_by_fault.keys()
    assert result.judged_by["history"] > 0
