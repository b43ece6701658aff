"""Requirements of every design with several threads beyond test_pairs.py and campaigns/quick.toml: more threads than
cores, hardware threads, and threads that write words of shared lines."""

import pytest

import durasim as ds
from pairing import rows_with

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

DURABLE = rows_with("transactions", control=False)


def _quiet(*_):
    pass


def _crash(design, threads, settings):
    return ds.crash(
        design=design, workload="array-swap", machine="tiny", ops=6 * threads, threads=threads, points=60, set=settings,
        workload_args={"populate": 40},
    )  # fmt: skip


@pytest.mark.parametrize("design", DURABLE)
def test_threads_that_lose_their_core_inside_transactions_survive(design):
    """Six threads on two cores, with slices much shorter than a transaction."""
    settings = ["cores=2", "core.time_slice_cycles=3000", "core.context_switch_cycles=500"]
    result = _crash(design, 6, settings)
    assert result.failures == ()
    run = ds.run(
        design=design, workload="array-swap", machine="tiny", ops=36, threads=6, set=settings,
        workload_args={"populate": 40}, guest_output=_quiet,
    )  # fmt: skip
    assert run.guest_exit_code == 0
    assert run.stats["core.context_switches"].value > 100


@pytest.mark.parametrize("design", DURABLE)
@pytest.mark.parametrize(
    "cores",
    [
        pytest.param(["cores=3"], id="3-cores", marks=pytest.mark.long),
        pytest.param(["cores=2", "core.time_slice_cycles=3000"], id="2-cores"),
    ],
)
def test_two_hardware_threads_for_each_core_survive_or_are_refused(design, cores):
    """Six threads on three cores with two hardware threads, or on two cores, where they also share them in time."""
    try:
        result = _crash(design, 6, ["threads_per_core=2", "core.context_switch_cycles=500", *cores])
        assert result.failures == ()
        assert result.trials_by_fault["clean"] == 60
    except ds.ConfigError as refusal:
        assert refusal.field == "threads_per_core"
        assert "has structures beside each core, which one hardware thread uses" in str(refusal)
        assert design not in ("sp", "htm-sgl", "spht-eadr")


def _share(design, threads, **workload_args):
    options = {"design": design, "workload": "false-sharing", "machine": "tiny", "ops": 20 * threads}
    arguments = {"populate": 20, "shared-lines": "true", **workload_args}
    run = ds.run(**options, threads=threads, workload_args=arguments, guest_output=_quiet)
    crash = ds.crash(**options, threads=threads, workload_args=arguments, points=150)
    return run, crash


@pytest.mark.parametrize("threads", [2, 4])
def test_false_sharing_aborts_hercules_which_makes_progress(threads):
    run, crash = _share("hercules", threads)
    assert run.tx.aborted > 0
    assert run.guest_exit_code == 0
    assert crash.failures == ()


@pytest.mark.parametrize("seed", range(1, 9))
def test_transactions_that_take_long_do_not_abort_each_other_for_ever(seed):
    """TxLens go to slow media through a queue of one entry: one of two transactions ends only after a long wait."""
    settings = {
        "design.hercules.tx_len_store": "controller", "design.hercules.tx_id_bits": 4,
        "pmem.controller.write_queue_entries": 1, "pmem.media.write_latency_ns": 3000,
    }  # fmt: skip
    run = ds.run(
        design="hercules", workload="false-sharing", machine="tiny", ops=30, threads=2, seed=seed,
        workload_args={"populate": 8, "shared-lines": "true"}, max_instructions=5_000_000,
        set=[f"{key}={value}" for key, value in settings.items()], guest_output=_quiet,
    )  # fmt: skip
    assert run.guest_exit_code == 0
    assert (run.tx.committed, run.tx.aborted > 0) == (30, True)


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(
    ("design", "arguments"),
    [("tc", {}), ("swl-flush", {"log-granularity": "word"}), ("swl-eadr", {"log-granularity": "word"})],
    ids=("tc", "swl-flush", "swl-eadr"),
)
def test_designs_that_log_words_isolate_words(design, arguments, threads):
    run, crash = _share(design, threads, **arguments)
    assert run.guest_exit_code == 0
    assert run.tx.aborted == 0
    assert crash.failures == ()


@pytest.mark.parametrize("design", ["swl-flush", "swl-eadr"])
def test_line_granular_undo_overwrites_neighbouring_word(design):
    _, crash = _share(design, 4, **{"log-granularity": "line"})
    assert crash.violations > 0
