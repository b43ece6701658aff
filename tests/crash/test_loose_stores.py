"""Programs that are durable without transactions: the oracles check the promises of fences."""

from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds
from durasim.documents.described_crash import FAULTS

HERE = Path(__file__).resolve().parent
# More threads than cores, in slices that end between a clean and its fence.
CROWDED = ["cores=2", "core.time_slice_cycles=2000", "core.context_switch_cycles=0"]
# The lines of a list at different controllers.
SPREAD = ["pmem.controllers=4", "pmem.interleave_bytes=64", "pmem.controller.write_queue_entries=1"]


@pytest.fixture(scope="session")
def published():
    return compiled.program(HERE / "published.cpp")


def crash(elf, domain, threads, *faults, leaves_out=(), points=120, **options):
    arguments = ["run", str(threads), "24", *leaves_out]
    return ds.crash(
        design="opt", machine="tiny", elf=elf, domain=domain, args=arguments, check_args=["check"],
        again_args=["run", "2", "40"], faults=faults, points=points, variants=4, **options,
    )  # fmt: skip


@pytest.mark.parametrize("settings", [(), CROWDED, SPREAD], ids=["tiny", "crowded", "spread"])
@pytest.mark.parametrize("domain", ["adr", "media", "eadr", "bbb", "nv-llc"])
def test_what_fences_promise_is_kept(published, domain, settings):
    result = crash(published, domain, 4, *FAULTS, set=settings)
    assert result.failures == ()
    assert result.trials_by_fault["recrash"] > 0
    assert result.judged_by["bytes"] == result.judged_by["guest"] > 100


@pytest.mark.parametrize(("domain", "left_out"), [("adr", "no-fence"), ("media", "no-fence"), ("adr", "no-clean")])
def test_without_a_fence_or_a_clean_nothing_is_promised(published, domain, left_out):
    """The list is broken, and its check reports it. The lost bytes were not promised."""
    result = crash(published, domain, 4, "clean", "reorder", leaves_out=[left_out], points="all", set=SPREAD)
    assert result.violations > 0
    assert {failure.oracle for failure in result.failures} == {"guest"}


def test_where_caches_survive_a_store_is_promised_without_either(published):
    for left_out in ("no-fence", "no-clean"):
        assert crash(published, "eadr", 2, "clean", leaves_out=[left_out]).failures == ()


def test_a_replay_shows_cleans_and_their_fences():
    command = ["crash", "--design", "swl-flush", "--workload", "array-swap", "--machine", "tiny", "--ops", "6"]
    command += ["--arg", "populate=6", "--replay", "e300"]
    done = command_line.run(*command)
    assert done.returncode == 0, done.stderr
    printed = [line.strip() for line in done.stdout.splitlines()]
    for words in ("clean by core 0", "a fence of core 0 has waited for the clean"):
        assert any(line.endswith(words) for line in printed), done.stdout
