"""Hardware transactions from the view of programs: atomic, isolated, limited by the L1D, with the status of RTM."""

from __future__ import annotations

import itertools

import pytest
from htm_runs import (
    CAPACITY,
    CONFLICT,
    DEBUG,
    EXPLICIT,
    NESTED,
    RETRY,
    SETS,
    WAYS,
    Program,
    simulate,
    simulate_and_count,
)

from durasim.errors import GuestFault


@pytest.mark.parametrize(
    ("threads", "rounds", "per_core"), [(2, 400, 1), (8, 200, 1), (24, 100, 1), (2, 400, 2), (4, 200, 2), (24, 100, 2)]
)
def test_counters_are_exact_and_no_attempt_sees_half_a_transaction(
    program: Program, threads: int, rounds: int, per_core: int
) -> None:
    text = simulate(program("counters"), threads, rounds, cores=threads // per_core, threads_per_core=per_core)
    values = {name: int(value) for name, value in (word.split("=") for word in text.split())}
    total = threads * rounds
    assert (values["x"], values["y"], values["torn"]) == (total, total, 0)
    assert values["plain"] == total + threads * ((rounds + 3) // 4)
    assert values["hardware"] + values["locked"] == total
    assert values["hardware"] > 0


def test_more_threads_than_cores(program: Program) -> None:
    """A thread that leaves its core aborts its open transaction; with long time slices none does."""
    for slice_cycles in (2000, 1 << 40):
        settings = {"core.time_slice_cycles": slice_cycles, "core.context_switch_cycles": 0}
        text, result = simulate_and_count(program("counters"), 4, 300, **settings)
        assert text.startswith("x=1200 y=1200 plain=1500 ")
        assert text.endswith(" torn=0\n")
        assert (result["tx"]["aborted_by"]["trap"] > 0) == (slice_cycles == 2000)


def statuses(lines: list[str]) -> dict[str, int]:
    """Returns the status of each aborted attempt. None of its stores remains."""
    found = {}
    for line in lines:
        name, _, rest = line.partition(" aborted, status ")
        if rest:
            status, stored, still_open = (word.strip() for word in rest.split(","))
            assert (stored, still_open) == ("stored 0", "open 0"), line
            found[name] = int(status, 16)
    return found


ABORTED = {
    "explicit": EXPLICIT | 0xA5 << 24,
    "nested": EXPLICIT | NESTED | 7 << 24,
    "seven aborted": EXPLICIT | NESTED | 9 << 24,
    "system call": 0,
    "breakpoint": DEBUG,
    "fault": 0,
    "cache block": 0,
    "capacity": CAPACITY,
    "conflict": CONFLICT | RETRY,
}
COMMITTED = ("nothing", "open", "flat", "seven")


def test_each_cause_has_its_status_and_leaves_nothing(program: Program) -> None:
    """Transactions that are nested up to seven deep commit and abort with the outermost one."""
    lines = simulate(program("statuses"), cores=2).splitlines()
    assert lines[0] == "open 0"
    assert statuses(lines) == ABORTED
    for name in COMMITTED:
        assert f"{name} committed, stored 1, open 0" in lines
    assert "left of the many 0" in lines


def test_an_attempt_of_a_functional_run_may_not_be_tried_again(program: Program) -> None:
    """No transaction starts, and the status has no bit that suggests a retry."""
    lines = simulate(program("statuses"), cores=2, functional=True).splitlines()
    assert statuses(lines) == dict.fromkeys((*ABORTED, *COMMITTED), 0)


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("abort", f"status {EXPLICIT | 5 << 24:#x}, integer 0, floating point 0, fcsr 0, frame 0, word 100\n"),
        ("end", f"status {(1 << 64) - 1:#x}, integer 25, floating point 32, fcsr 0x61, frame 16, word 356\n"),
    ],
)
def test_registers_and_the_stack_come_back(program: Program, how: str, found: str) -> None:
    """Their changes by a transaction are reverted if it aborts, and kept if it commits."""
    assert simulate(program("registers"), how) == found


@pytest.mark.parametrize(("how", "committed", "aborted"), [("inside", 1, 1), ("outside", 2, 0)])
def test_an_abort_ends_transactions_of_the_program_that_began_inside(
    program: Program, how: str, committed: int, aborted: int
) -> None:
    """A transaction that was open before stays open. In both cases the next one commits with a hardware transaction."""
    text, result = simulate_and_count(program("inside"), how)
    assert text == "1\n"
    tx = result["tx"]
    assert (tx["begun"], tx["committed"], tx["aborted"]) == (2, committed, aborted)
    assert (tx["htm_committed"], tx["aborted_by"]["explicit"]) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        # The transaction has the line in its write set.
        ("forwarded", f"status {CONFLICT | RETRY}, line 0 1\n"),
        ("inside", f"status {CONFLICT | RETRY}, line 0 1\n"),
        # Loads before the start are not part of the transaction.
        ("before", "committed, loaded 0, stored during it 1, line 0 1\n"),
    ],
)
def test_another_thread_stores_to_the_line_of_a_load(program: Program, kind: str, found: str) -> None:
    """The store aborts it after a load of the transaction, even one from the store buffer, not after earlier ones."""
    assert simulate(program("loads"), kind, cores=2) == found


def test_loads_that_the_store_buffer_answers_mix_no_versions(program: Program) -> None:
    """Another thread stores to the line at any moment: attempts commit with the values they read, or abort."""
    committed, conflicts, mixtures = map(int, simulate(program("loads"), "rounds", 2000, cores=2).split())
    assert (committed + conflicts, mixtures) == (2000, 0)
    assert min(committed, conflicts) > 200


def test_a_write_set_commits_if_no_set_of_the_l1d_overflows(program: Program) -> None:
    elf = program("lines")
    all_lines = SETS * WAYS
    numbers = [1, 2, 63, 64, 65, 500, all_lines - 1, all_lines, all_lines + 1, 1000]
    expected = ["committed" if number <= all_lines else "capacity" for number in numbers]
    assert simulate(elf, "store", 64, *numbers).split() == expected
    # All of one set, and of every second one.
    one_set = simulate(elf, "store", 64 * SETS, 1, WAYS, WAYS + 1).split()
    assert one_set == ["committed", "committed", "capacity"]
    half = simulate(elf, "store", 128, all_lines // 2, all_lines // 2 + 1).split()
    assert half == ["committed", "capacity"]


def lines_until_a_set_overflows(seed: int) -> int:
    """Draws lines like lines.cpp until a set has one more than its ways, and returns their number."""
    # The offset in the page, which translation does not change, determines the set of a line.
    assert SETS * 64 == 4096
    sets: list[set[int]] = [set() for _ in range(SETS)]
    for count in itertools.count(1):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        line = seed >> 48
        sets[line % SETS].add(line)
        if len(sets[line % SETS]) > WAYS:
            return count
    raise AssertionError("lines are drawn until a set overflows")


def test_a_write_set_of_drawn_lines_commits_if_no_set_of_the_l1d_overflows(program: Program) -> None:
    """Each seed has another limit. With one line less a transaction commits, at the limit it does not."""
    limits = {seed: lines_until_a_set_overflows(seed) for seed in range(1, 11)}
    assert len(set(limits.values())) > 5
    arguments = [number for seed, limit in limits.items() for number in (seed, limit - 1, seed, limit)]
    assert simulate(program("lines"), "draw", *arguments).split() == ["committed", "capacity"] * len(limits)


def test_read_sets_outlive_the_l1d_up_to_a_limit(program: Program) -> None:
    elf = program("lines")
    twice = 2 * SETS * WAYS
    assert simulate(elf, "load", 64, twice, 20_000).split() == ["committed", "committed"]
    limited = {"design.rtm.read_set_lines": twice}
    assert simulate(elf, "load", 64, twice, twice + 1, **limited).split() == ["committed", "capacity"]


def test_interrupts_of_the_timer_abort(program: Program) -> None:
    elf = program("lines")
    assert simulate(elf, "load", 64, 1000, 1000, timer_interrupt_cycles=1 << 40).split() == ["committed"] * 2
    text, result = simulate_and_count(elf, "load", 64, *[1000] * 8, timer_interrupt_cycles=5000)
    interrupted = text.split().count("other")
    assert interrupted > 0
    by = result["tx"]["aborted_by"]
    assert by == dict.fromkeys(by, 0) | {"trap": interrupted}


def test_a_page_that_is_copied_interrupts_its_readers(program: Program) -> None:
    """Its translation is invalidated on all cores: a shoot-down is an interrupt."""
    assert simulate(program("interrupts"), "copy", "/pmem/file", cores=2) == "aborted 0\n"


def test_code_that_a_transaction_has_stored_is_not_decoded_before_it_commits(program: Program) -> None:
    """Decoding an instruction reads it: the transaction aborts, and the previous code is executed."""
    assert simulate(program("decoded"), "other", cores=2) == f"aborted {CONFLICT | RETRY}, returned 1\n"


@pytest.mark.parametrize("how", ["own", "unfenced"])
def test_code_that_a_transaction_has_stored_and_executed_is_gone_when_it_aborts(program: Program, how: str) -> None:
    """Code decoded from its own stores is rolled back with them, with or without a FENCE.I."""
    assert simulate(program("decoded"), how) == f"aborted {EXPLICIT | 2 << 24:#x}, returned 1\n"


@pytest.mark.parametrize("others", [1, 3])
def test_threads_that_may_not_run_on_a_core_do_not_interrupt_it(program: Program, others: int) -> None:
    text = simulate(program("interrupts"), "pinned", others, cores=2, **{"core.time_slice_cycles": 5000})
    assert text == "committed 50\n"


def test_an_lr_of_an_aborted_transaction_reserves_nothing(program: Program) -> None:
    assert simulate(program("interrupts"), "reservation") == "failed 1, word 3\n"


def test_a_functional_run_begins_none(program: Program) -> None:
    text = simulate(program("counters"), 3, 50, functional=True)
    assert text == "x=150 y=150 plain=189 hardware=0 locked=150 torn=0\n"


@pytest.mark.parametrize("name", ["end", "deep", "commit"])
def test_misuse_is_refused_with_one_sentence(program: Program, name: str) -> None:
    sentences = {
        "end": "htm.end outside of a hardware transaction",
        "commit": "a transaction commits or aborts inside a hardware transaction, which may still abort",
        "deep": "hardware transactions can be nested 7 deep, and htm.begin begins one more",
    }
    with pytest.raises(GuestFault, match=sentences[name]):
        simulate(program("misuse"), name)


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("name", ["begin", "end", "abort", "test"])
def test_designs_without_hardware_transactions_refuse_their_instructions(
    program: Program, name: str, functional: bool
) -> None:
    sentence = (
        "htm.begin, htm.end, htm.abort and htm.test are instructions of designs with hardware transactions; "
        "the design of this machine has none"
    )
    with pytest.raises(GuestFault, match=sentence):
        simulate(program("misuse"), name, design="opt", functional=functional)
