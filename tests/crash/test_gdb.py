"""A failing trial under gdb: forwards, backwards, across the power failure, into the check."""

import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from gdb_client import GdbClient

import command_line
import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("causes.c")
# The numbers of signals in the protocol.
SIGTRAP, SIGCHLD, SIGPWR = "05", "14", "20"
POOL = 0x10_0000_0000


@pytest.fixture(scope="module")
def failing():
    """A program, the first of its failures, and the store that the cause names."""
    elf = compiled.program(SOURCE)
    result = ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", "missing-clean"],
        check_args=["check", "missing-clean"], points=60, faults=("clean",),
    )  # fmt: skip
    (cause,) = result.causes["found"]
    (store,) = cause["stores"]
    return elf, cause["first"], store


def words(elf, *more):
    return [
        "crash", "--design", "opt", "--machine", "tiny", "--elf", str(elf), "--check", "check missing-clean", *more,
        "--", "run", "missing-clean",
    ]  # fmt: skip


@contextmanager
def stub(failing):
    """The command that waits for gdb, its port, and what it has printed."""
    elf, failure, _ = failing
    with waiting(words(elf, "--replay", failure, "--gdb", "0")) as waits:
        yield waits


@contextmanager
def waiting(arguments):
    command = [sys.executable, "-m", "durasim", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        text = ""
        for line in process.stderr:
            text += line
            if (found := re.search(r"127\.0\.0\.1:(\d+)", line)) is not None:
                break
        else:
            pytest.fail(f"the command does not wait: {text}")
        try:
            yield process, int(found[1]), text
        finally:
            process.kill()


def address_of(elf, function):
    """The address of a function, from the symbols of a program."""
    tool = shutil.which("nm") or pytest.skip("nm is not installed")
    listed = subprocess.run([tool, str(elf)], capture_output=True, text=True, check=True).stdout
    (address,) = [int(line.split()[0], 16) for line in listed.splitlines() if line.split()[-1] == function]
    return address


def stopped(answer):
    """The signal and the thread of a stop."""
    found = re.match(r"T([0-9a-f]{2})(?:.*?thread:p?[0-9a-f.]*?([0-9a-f]+);)?", answer)
    assert found is not None, answer
    return found[1]


def test_the_replay_starts_before_the_blamed_store_and_runs_to_the_end_of_the_check(failing):
    _, failure, store = failing
    event = int(re.match(r"e(\d+)", failure)[1])
    with stub(failing) as (_, port, text), GdbClient(port) as gdb:
        assert "before the store that the cause names: the run (run 1 of 2)" in text
        gdb.ask("?")
        assert gdb.pc == store["pc"]
        before = gdb.registers()
        assert stopped(gdb.ask("s")) == SIGTRAP
        after = gdb.registers()
        assert after[:32] == before[:32], "a store changes no register"
        assert after[32] in (before[32] + 2, before[32] + 4)
        # Back over the store, and over the instruction before it.
        assert stopped(gdb.ask("bs")) == SIGTRAP
        assert gdb.registers() == before
        gdb.ask("bs")
        assert gdb.pc != store["pc"]
        gdb.ask("s")
        assert gdb.registers() == before
        # The power fails, and after it the check runs on what was left.
        assert stopped(gdb.ask("vCont;c")) == SIGPWR
        assert f"persist event {event}: the power has failed" in gdb.monitor("where")
        listed = gdb.monitor("runs").splitlines()
        assert listed[0].startswith("* 1: the run, power fails after persist event") and len(listed) == 2
        assert listed[1].startswith("  2: the check, to its end, arguments: check missing-clean")
        assert stopped(gdb.ask("vCont;c")) == SIGCHLD
        assert "it has exited with code 1" in gdb.monitor("where")
        assert gdb.ask("vCont;c") == "W01"


def test_breakpoints_stop_forwards_and_backwards_and_in_the_check(failing):
    elf, _, _ = failing
    publish, main = address_of(elf, "publish"), address_of(elf, "main")
    with stub(failing) as (_, port, _), GdbClient(port) as gdb:
        gdb.ask("?")
        assert gdb.ask(f"Z0,{main:x},4") == gdb.ask(f"Z0,{publish:x},4") == "OK"
        # Back to the begin of the run.
        places = []
        while "replaylog:begin" not in (answer := gdb.ask("bc")):
            assert stopped(answer) == SIGTRAP
            places.append(gdb.pc)
        assert places[-1] == main and set(places[:-1]) <= {publish}
        # And forwards over the same places.
        again = []
        while stopped(gdb.ask("vCont;c")) != SIGPWR:
            again.append(gdb.pc)
        assert again[: len(places)] == places[::-1]
        assert gdb.ask(f"z0,{publish:x},4") == "OK"
        # The check is the same program, started anew.
        assert stopped(gdb.ask("vCont;c")) == SIGTRAP
        assert gdb.pc == main
        assert "the check (run 2 of 2)" in gdb.monitor("where")
        argc = gdb.registers()[10]
        assert argc == 3
        # Backwards, the begin of the check follows the power failure.
        assert "replaylog:begin" in gdb.ask("bc")
        assert stopped(gdb.ask("bc")) == SIGPWR
        assert "the run (run 1 of 2)" in gdb.monitor("where")


def test_watchpoints_stop_after_the_store_and_memory_is_what_the_thread_loads(failing):
    _, _, store = failing
    with stub(failing) as (_, port, _), GdbClient(port) as gdb:
        gdb.ask("?")
        lines = gdb.monitor(f"line {store['address']:#x}")
        assert "media" in lines and f"line {store['address'] & ~63:#x}" in lines
        # The program maps its pool at the first address of the window of persistent memory.
        first = re.match(r"line (0x[0-9a-f]+)", gdb.monitor(f"line {POOL:#x}"))[1]
        at = POOL + store["address"] - int(first, 16)
        assert gdb.ask(f"Z2,{at:x},8") == "OK"
        answer = gdb.ask("vCont;c")
        assert f"watch:{at:x};" in answer
        value = int(store["value"], 16)
        assert int.from_bytes(gdb.memory(at, 8), "little") == value
        assert f"{value:016x}" not in gdb.monitor(f"line {at:#x}").splitlines()[1], "it has not left the core"
        # Backwards it stops before the store.
        assert f"watch:{at:x};" in gdb.ask("bc")
        assert gdb.pc == store["pc"]
        assert int.from_bytes(gdb.memory(at, 8), "little") == 0


def test_threads_stop_at_all_breakpoints_in_both_directions():
    """gdb lifts a breakpoint to let one thread pass it, while the others run on."""
    elf = compiled.program(SOURCE.with_name("bumps.c"))
    arguments = [
        "crash", "--design", "opt", "--machine", "tiny", "--elf", str(elf), "--check", "check", "--replay", "e1",
        "--gdb", "0", "--", "run",
    ]  # fmt: skip
    with waiting(arguments) as (_, port, _), GdbClient(port) as gdb:
        gdb.ask("?")
        breakpoint_of = f"0,{address_of(elf, 'bump'):x},4"

        def place(answer):
            position = re.search(r"after instruction (\d+)", gdb.monitor("where"))[1]
            return re.search(r"thread:(?:p\d+\.)?([0-9a-f]+)", answer)[1], int(position)

        assert gdb.ask("Z" + breakpoint_of) == "OK"
        forwards = []
        while stopped(answer := gdb.ask("vCont;c")) == SIGTRAP:
            forwards.append(place(answer))
            gdb.ask("z" + breakpoint_of)
            assert stopped(gdb.ask(f"vCont;s:{forwards[-1][0]}")) == SIGTRAP
            gdb.ask("Z" + breakpoint_of)
        backwards = []
        while "replaylog:begin" not in (answer := gdb.ask("bc")):
            backwards.append(place(answer))
        assert len(forwards) == 20 and {thread for thread, _ in forwards} == {"02", "03"}
        assert forwards == backwards[::-1]


def test_a_replay_cannot_be_changed(failing):
    with stub(failing) as (_, port, _), GdbClient(port) as gdb:
        gdb.ask("?")
        registers = gdb.ask("g")
        assert gdb.ask("G" + registers).startswith("E")
        assert gdb.ask(f"M{gdb.registers()[2]:x},1:00").startswith("E")
        assert gdb.ask("m10,8").startswith("E"), "nothing is mapped there"
        assert "monitor where" in gdb.monitor("help")
        assert "no address" in gdb.monitor("line x")


def test_threads_are_listed_with_their_cores(failing):
    with stub(failing) as (_, port, _), GdbClient(port) as gdb:
        gdb.ask("?")
        assert gdb.ask("qfThreadInfo").startswith("m")
        assert bytes.fromhex(gdb.ask("qThreadExtraInfo,1")).decode() == "thread 0 on core 0"


def test_the_command_ends_when_gdb_leaves(failing):
    with stub(failing) as (process, port, _):
        with GdbClient(port) as gdb:
            gdb.ask("?")
        assert process.wait(60) == 1, "the verdict of the replay"
        assert "violation" in process.stdout.read()


def test_what_cannot_be_is_refused(failing):
    elf, failure, _ = failing
    ended = command_line.run(*words(elf, "--gdb", "0"))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "--replay" in ended.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = command_line.run(*words(elf, "--replay", failure, "--gdb", str(port)))
    assert ended.returncode == 2
    assert f"port {port} is in use" in ended.stderr


RUNS = {
    # The hardware has recovered; the program's recovery fails at its second event, and runs again before the check.
    ("swl-flush", "e40/g2"): ("the run", "the recovery", "the recovery", "the check"),
    # Lines of persistent memory may be where only the design finds them.
    ("hoop", "e40"): ("the run", "the check"),
    ("hercules", "e40+e3"): ("the run", "the further work", "the check"),
}


@pytest.mark.parametrize(("design", "failure"), RUNS)
def test_all_runs_of_a_trial_are_replayed(design, failure):
    arguments = [
        "crash", "--design", design, "--workload", "array-swap", "--machine", "tiny", "--ops", "6", "--threads", "2",
        "--arg", "populate=8", "--replay", failure, "--gdb", "0",
    ]  # fmt: skip
    events = [int(event) for event in re.findall(r"[eg](\d+)", failure)]
    with waiting(arguments) as (process, port, text):
        assert "at the first instruction" in text, "no cause names a store"
        with GdbClient(port) as gdb:
            assert _ended(gdb, RUNS[design, failure], events) == "W00"
        assert process.wait(60) == 0


def _ended(gdb, runs, events):
    """Goes through all runs to the last answer."""
    gdb.ask("?")
    for number, name in enumerate(runs, 1):
        assert f"{name} (run {number} of {len(runs)})" in gdb.monitor("where")
        stack = gdb.registers()[2]
        assert len(gdb.memory(stack, 64)) == 64
        answer = gdb.ask("vCont;c")
        if number <= len(events):
            assert stopped(answer) == SIGPWR
            assert f"persist event {events[number - 1]}: the power has failed" in gdb.monitor("where")
            # From a checkpoint in the middle of the run, and up to the power failure again.
            gdb.ask("bs")
            before = gdb.registers()
            gdb.ask("bs")
            gdb.ask("s")
            assert gdb.registers() == before
            assert stopped(gdb.ask("vCont;c")) == SIGPWR
        else:
            assert stopped(answer) == SIGCHLD
        if number < len(runs):
            gdb.ask("s")
    return gdb.ask("vCont;c")


def test_gdb_itself(failing):
    debugger = shutil.which("gdb-multiarch") or pytest.skip("gdb-multiarch is not installed")
    elf, _, store = failing
    with stub(failing) as (_, port, _):
        commands = (
            f"target remote 127.0.0.1:{port}", "info registers pc", "backtrace", "reverse-stepi", "stepi",
            "print $pc", "continue", "monitor where", "break main", "continue", "kill",
        )  # fmt: skip
        options = [option for command in commands for option in ("-ex", command)]
        command = [debugger, "-nx", "-batch", *options, str(elf)]
        printed = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout
    assert f"{store['pc']:#x} <missing_clean+" in printed, printed
    assert "#0  0x" in printed and "causes.c:" in printed
    assert "SIGPWR" in printed and "the power has failed" in printed
    assert "Breakpoint 1, main" in printed
