"""`--points exhaustive`: every image that reordered cleans and early evictions can leave, each content once."""

from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

CAUSES, PRINTED = (Path(__file__).with_name(name) for name in ("causes.c", "printed.c"))


@pytest.fixture(scope="session")
def elf():
    return compiled.program(CAUSES)


def crash(elf, *words, **options):
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", *words], check_args=["check", *words],
        **{"faults": ("clean", "reorder", "evict"), "points": "exhaustive"} | options,
    )  # fmt: skip


@pytest.mark.parametrize("mistake", ["missing-clean", "missing-fence", "wrong-order", "count-before-contents"])
def test_every_image_is_tried_and_a_right_program_survives_all(elf, mistake):
    wrong, right = crash(elf, mistake), crash(elf, mistake, "right")
    assert wrong.violations > 0
    assert right.failures == ()
    for result in (wrong, right):
        assert {"clean"} < result.trials_by_fault.keys() <= {"clean", "evict", "image"}
        assert result.trials_by_fault["clean"] == result.points
        assert not {"reorder", "evict"} & result.not_tried.keys()


def test_each_image_of_a_run_is_counted_once(elf):
    """Each choice of cleans or of evictions alone is an image, and those of both together come in addition."""
    every = crash(elf, "missing-fence")
    alone = crash(elf, "missing-fence", points="all", variants=1024)
    apart = alone.trials_by_fault.get("reorder", 0) + alone.trials_by_fault.get("evict", 0)
    # The clean image is a choice of the cleans too.
    images = every.trials_by_fault["image"] + every.trials_by_fault.get("evict", 0)
    assert images >= apart - alone.points > 0
    assert every.trials_by_fault == crash(elf, "missing-fence").trials_by_fault


def test_an_image_is_replayed(elf):
    result = crash(elf, "wrong-order")
    failure = next(failure for failure in result.failures if ":" in failure.id)
    again = crash(elf, "wrong-order", points=None, faults=None, replay=failure.id)
    assert [(found.id, found.message) for found in again.failures] == [(failure.id, failure.message)]


def test_too_many_images_are_refused(elf):
    with pytest.raises(
        ds.ConfigError, match=r"points: persist event 1 has 2097152 images, more than 4096: clean lines"
    ):
        ds.crash(
            design="opt", machine="tiny", elf=compiled.program(PRINTED), args=["run", "scatter"],
            check_args=["check"], points="exhaustive", set=["l1d.size_bytes=4KiB"],
        )  # fmt: skip
    done = command_line.run("crash", "--design", "opt", "--elf", elf, "--check", "c", "--points", "every")
    assert done.returncode == 2
    assert "'every' is neither 'all' nor 'exhaustive' nor a number" in done.stderr
