"""Hardware transactions as programs see them: atomic, isolated, limited by the L1D, with the status that RTM gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from durasim import _core, toolchain
from durasim.errors import GuestFault

HERE = Path(__file__).resolve().parent
# 48 KiB in 12 ways, as the L1D of the processors that the thesis measures on: 64 sets.
SETS, WAYS = 64, 12
CACHES = {
    "l1d.size_bytes": SETS * WAYS * 64,
    "l1d.ways": WAYS,
    "l2.size_bytes": 1 << 20,
    "l2.ways": 16,
    "llc.size_bytes": 4 << 20,
    "llc.ways": 16,
}
EXPLICIT, RETRY, CONFLICT, CAPACITY, DEBUG, NESTED = (1 << bit for bit in range(6))

Program = Callable[[str], Path]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Compiles a source of this folder, once."""
    folder = tmp_path_factory.mktemp("hardware-transactions")

    def build(name: str) -> Path:
        output = folder / name
        return output if output.is_file() else toolchain.compile_program(HERE / f"{name}.cpp", output)

    return build


def simulate(
    elf: Path,
    *arguments: object,
    cores: int = 1,
    design: str = "htm-sgl",
    functional: bool = False,
    **settings: object,
) -> str:
    """What a program prints."""
    values = {"cores": cores, "dram.capacity_mib": 64} | CACHES | settings
    request = {
        "machine": "tiny",
        "design": design,
        "elf": str(elf),
        "elf_name": elf.name,
        "args": [str(argument) for argument in arguments],
        "seed": 1,
        "workload": elf.name,
        "max_instructions": 200_000_000,
        "functional": functional,
        "set": [f"{path}={value}" for path, value in values.items()],
    }
    written: list[bytes] = []
    result = json.loads(_core.run(json.dumps(request), lambda _stream, data: written.append(data)))
    text = b"".join(written).decode()
    assert result["guest_exit_code"] == 0, text
    return text


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
    text = simulate(program("counters"), 4, 300, **{"core.time_slice_cycles": 2000, "core.context_switch_cycles": 0})
    assert text.startswith("x=1200 y=1200 plain=1500 ")
    assert text.endswith(" torn=0\n")


def test_each_cause_has_its_status_and_leaves_nothing(program: Program) -> None:
    found = {}
    lines = simulate(program("statuses"), cores=2).splitlines()
    assert lines[0] == "open 0"
    for line in lines[1:]:
        name, _, rest = line.partition(" aborted, status ")
        if rest:
            status, stored, still_open = (word.strip() for word in rest.split(","))
            assert (stored, still_open) == ("stored 0", "open 0"), line
            found[name] = int(status, 16)
    assert found == {
        "explicit": EXPLICIT | 0xA5 << 24,
        "nested": EXPLICIT | NESTED | 7 << 24,
        "system call": 0,
        "breakpoint": DEBUG,
        "fault": 0,
        "cache block": 0,
        "capacity": CAPACITY,
        "conflict": CONFLICT | RETRY,
    }
    for name in ("nothing", "open", "flat"):
        assert f"{name} committed, stored 1, open 0" in lines
    assert "left of the many 0" in lines


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


def test_read_sets_outlive_the_l1d_up_to_a_limit(program: Program) -> None:
    elf = program("lines")
    twice = 2 * SETS * WAYS
    assert simulate(elf, "load", 64, twice, 20_000).split() == ["committed", "committed"]
    limited = {"design.rtm.read_set_lines": twice}
    assert simulate(elf, "load", 64, twice, twice + 1, **limited).split() == ["committed", "capacity"]


def test_interrupts_of_the_timer_abort(program: Program) -> None:
    elf = program("lines")
    assert simulate(elf, "load", 64, 1000, 1000, timer_interrupt_cycles=1 << 40).split() == ["committed"] * 2
    assert "other" in simulate(elf, "load", 64, *[1000] * 8, timer_interrupt_cycles=5000).split()


def test_a_page_that_is_copied_interrupts_those_who_have_read_it(program: Program) -> None:
    """Its translation ends on all cores: a shoot-down is an interrupt."""
    assert simulate(program("interrupts"), "copy", "/pmem/file", cores=2) == "aborted 0\n"


@pytest.mark.parametrize("others", [1, 3])
def test_threads_that_may_not_run_on_a_core_do_not_interrupt_it(program: Program, others: int) -> None:
    text = simulate(program("interrupts"), "pinned", others, cores=2, **{"core.time_slice_cycles": 5000})
    assert text == "committed 50\n"


def test_an_lr_of_an_aborted_transaction_reserves_nothing(program: Program) -> None:
    assert simulate(program("interrupts"), "reservation") == "failed 1, word 3\n"


def test_a_functional_run_begins_none(program: Program) -> None:
    text = simulate(program("counters"), 3, 50, functional=True)
    assert text == "x=150 y=150 plain=189 hardware=0 locked=150 torn=0\n"


@pytest.mark.parametrize("name", ["begin", "end", "deep", "commit"])
def test_misuse_is_refused_with_one_sentence(program: Program, name: str) -> None:
    elf = program("misuse")
    sentences = {
        "begin": "htm.begin, htm.end, htm.abort and htm.test are instructions of designs with hardware transactions; "
        "the design of this machine has none",
        "end": "htm.end outside of a hardware transaction",
        "commit": "a transaction commits or aborts inside a hardware transaction, which may still abort",
        "deep": "hardware transactions can be nested 7 deep, and htm.begin begins one more",
    }
    with pytest.raises(GuestFault, match=sentences[name]):
        simulate(elf, name, design="opt" if name == "begin" else "htm-sgl")
