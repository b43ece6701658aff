"""C programs with the macros of STAMP, built, run and crashed like programs of users."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import compiled
import durasim as ds

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

ROOT = Path(__file__).resolve().parents[2]
BANK = ROOT / "guest" / "examples" / "stamp" / "bank.c"
INTERFACE = ROOT / "tests" / "guest" / "stamp_test.c"
ROWS = {row["name"]: row["backend"] for row in ds.designs() if not row["control"]}
CRASH = ("crash", "--machine", "tiny", "--points", "60", "--check", "check")


@pytest.fixture(scope="session")
def stamp():
    """stamp(source, backend) builds a program for the simulated machine."""
    return compiled.stamp


def _case(design, program, case):
    """Runs one case of the interface, which prints ok."""
    said = []
    result = ds.run(design=design, machine="tiny", elf=program, args=[case], guest_output=lambda _, b: said.append(b))
    assert (result.guest_exit_code, b"".join(said)) == (0, b"ok\n"), case
    return result


# All designs of a backend share a program: `make test` runs it under the first.
FIRST_OF_BACKEND = {backend: design for design, backend in reversed(ROWS.items())}
FIRST_OR_ALL = [
    pytest.param(design, backend, marks=() if FIRST_OF_BACKEND[backend] == design else pytest.mark.long)
    for design, backend in ROWS.items()
]


@pytest.mark.parametrize(("design", "backend"), [*FIRST_OR_ALL, ("opt", "plain")])
def test_the_interface_on_each_row(stamp, design, backend):
    """Registers and calls are those of the simulated machine, not of the host."""
    for case in ("values", "blocks", "threads"):
        _case(design, stamp(INTERFACE, backend), case)


@pytest.mark.parametrize(("design", "backend"), ROWS.items())
def test_a_transaction_starts_again_on_each_row(stamp, design, backend):
    """Hardware restores its checkpoint, software jumps back."""
    result = _case(design, stamp(INTERFACE, backend), "restart")
    if backend == "markers":
        assert result.tx.aborted == 9


@pytest.mark.parametrize(("design", "backend"), FIRST_OR_ALL)
def test_the_example_survives(program, stamp, conforms, design, backend):
    arguments = ["--design", design, "--elf", stamp(BANK, backend), "--fault", "all", "--json", "-"]
    result = program(*CRASH, *arguments, "--", "run", "-n", "16", "-t", "2", "-a", "4")
    assert result.returncode == 0, result.stdout + result.stderr
    document = json.loads(result.stdout)
    conforms("crash", document)
    assert document["failures"] == []
    # A run that fails before its first store leaves no bytes to compare.
    assert document["judged_by"]["guest"] >= document["judged_by"]["bytes"] > 30
    assert document["trials_by_fault"]["recrash"] > 0


@pytest.mark.parametrize(("backend", "oracle"), [("plain", "guest"), ("markers", "bytes")])
def test_without_durability_it_is_caught_and_replays(program, stamp, tmp_path, backend, oracle):
    path = tmp_path / "verdict.json"
    arguments = [
        "--design",
        "opt",
        "--elf",
        stamp(BANK, backend),
        "--env",
        "X=1",
        "--again",
        "run -n 3",
        "--json",
        path,
    ]
    result = program(*CRASH, *arguments, "--", "run", "-n", "16")
    assert result.returncode == 1, result.stderr
    failure = json.loads(path.read_text())["failures"][0]
    assert oracle in failure["oracle"]
    assert "None" not in result.stdout
    again = program(*shlex.split(failure["command"])[1:])
    assert again.returncode == 1 and failure["message"].split(":")[0] in again.stdout


def test_a_program_without_any_runtime_runs(program, stamp):
    result = program("run", "--elf", stamp(BANK, "plain"), "--machine", "tiny", "--json", "-", "--", "run", "-n", "50")
    document = json.loads(result.stdout)
    assert (document["guest_exit_code"], document["ops"], document["tx"]["begun"]) == (0, 50, 0)


# Threads change private words, in 400 transactions in total.
PRIVATE = """
#include "thread.h"
#include "tm.h"
enum { WORDS = 64, TRANSACTIONS = 400 };
static void work(void *none) {
    TM_THREAD_ENTER();
    TM_BEGIN();
    long *words = (long *)TM_MALLOC(WORDS * sizeof(long));
    for (long i = 0; i < WORDS; ++i) TM_SHARED_WRITE(words[i], 0);
    TM_END();
    for (long i = 1; i < TRANSACTIONS / thread_getNumThread(); ++i) {
        TM_BEGIN();
        for (long w = 0; w < WORDS; w += 8) TM_SHARED_WRITE(words[w], TM_SHARED_READ(words[w]) + 1);
        TM_END();
    }
}
MAIN(argc, argv) {
    TM_STARTUP(atol(argv[argc - 1]));
    thread_startup(atol(argv[argc - 1]));
    GOTO_SIM();
    thread_start(work, NULL);
    GOTO_REAL();
    MAIN_RETURN(0);
}
"""
# They hold all data of a transaction.
ROOMY = {"l1d.size_bytes": 32768, "l2.size_bytes": 65536, "llc.size_bytes": 1 << 20}


@pytest.mark.parametrize("design", ["htm-sgl", "spht-eadr", "spht-eadr-flush", "spht", "nv-htm"])
def test_threads_with_private_data_run_their_hardware_transactions_at_a_time(stamp, tmp_path, design):
    """With a lock of the interface as many would commit in hardware, but two threads would not be faster than one."""
    source = tmp_path / "private.c"
    source.write_text(PRIVATE)
    runs = [
        ds.run(design=design, machine="tiny", domain="eadr", elf=stamp(source, ROWS[design]), args=[threads], set=ROOMY)
        for threads in ("1", "2")
    ]
    for result in runs:
        assert (result.guest_exit_code, result.tx.committed) == (0, 400)
        assert result.tx.htm_committed > 300
    assert runs[1].throughput_ops_per_us > 1.2 * runs[0].throughput_ops_per_us


def _build(*arguments):
    command = [sys.executable, "-m", "durasim.stamp", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_the_command_that_builds(tmp_path, program):
    """Several sources, a folder of headers and a macro."""
    for folder in ("parts", "made"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "part.h").write_text("long part(void);\n")
    (tmp_path / "part.c").write_text('#include "tm.h"\n#include "part.h"\nlong part(void) { return PART; }\n')
    main = (
        '#include "tm.h"\n#include "part.h"\n'
        'MAIN(argc, argv) { TM_STARTUP(1); TM_BEGIN(); TM_END(); printf("%ld\\n", part()); MAIN_RETURN(argc - 1); }\n'
    )
    (tmp_path / "main.c").write_text(main)
    output = tmp_path / "made" / "program"
    built = _build("--backend", "markers", "--output", output, "-I", tmp_path / "parts", "-D", "PART=7",
                   tmp_path / "main.c", tmp_path / "part.c")  # fmt: skip
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    assert program("run", "--machine", "tiny", "--quiet", "--elf", output).stdout == "7\n"


# A program with the layout of STAMP: shared parts are in lib/, next to a tm.h of another system, and include it without
# a path. Each thread takes its own share only if STM is defined.
FOREIGN = {
    "lib/tm.h": "#ifndef TM_H\n#define TM_H 1\n#define TM_BEGIN()\n#define TM_END()\n#define TM_SHARED_READ(x) (x)\n"
    "#define TM_SHARED_WRITE(x, y) ((x) = (y))\n#define TM_STARTUP(n)\n#define TM_THREAD_ENTER()\n#endif\n",
    "lib/thread.h": "#ifndef THREAD_H\n#define THREAD_H 1\nint thread_startup(int);\n#endif\n",
    "lib/counter.h": "void add(long *counter);\n",
    "lib/counter.c": '#include "tm.h"\n#include "counter.h"\nvoid add(long *counter) {\n    TM_BEGIN();\n'
    "    TM_SHARED_WRITE(*counter, TM_SHARED_READ(*counter) + 1);\n    TM_END();\n}\n",
    "app/main.c": '#include <stdio.h>\n#include "counter.h"\n#include "thread.h"\n#include "tm.h"\n'
    "static long counter;\n"
    "static void work(void *none) {\n    TM_THREAD_ENTER();\n#if defined(HTM) || defined(STM)\n"
    "    long share = 120 / thread_getNumThread();\n#else\n    long share = 120;\n#endif\n"
    "    for (long i = 0; i < share; ++i) add(&counter);\n}\n"
    "int main(void) {\n    TM_STARTUP(3);\n    thread_startup(3);\n    thread_start(work, NULL);\n"
    '    thread_shutdown();\n    printf("%ld\\n", counter);\n    return 0;\n}\n',
}


@pytest.mark.parametrize(("design", "backend"), [("tc", "markers"), ("htm-sgl", "htm-sgl"), ("spht", "spht")])
def test_the_headers_of_another_system_are_not_used(tmp_path, program, design, backend):
    for name, text in FOREIGN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    output, lib = tmp_path / "program", tmp_path / "lib"
    built = _build("--backend", backend, "--output", output, "-I", lib, lib / "counter.c", tmp_path / "app" / "main.c")
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    result = program("run", "--machine", "tiny", "--design", design, "--elf", output, "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["ops"] == 120
    assert program("run", "--machine", "tiny", "--design", design, "--quiet", "--elf", output).stdout == "120\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int main(void) { return 0; }\n", "no source starts a transaction"),
        (
            "int main(void) { TM_BEGIN(); TM_END(); return 0; }\nvoid thread_startup(long n) { (void)n; }\n",
            "leave thread.c and memory.c out",
        ),
    ],
)
def test_programs_that_are_no_use_here_are_refused(tmp_path, source, words):
    (tmp_path / "a.c").write_text(source)
    refused = _build("--backend", "markers", "--output", tmp_path / "program", tmp_path / "a.c")
    assert refused.returncode == 2
    assert words in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize(
    ("backend", "source", "words"),
    [("nothing", "a.c", "unknown backend 'nothing'"), ("markers", "a.cpp", "not a C source"),
     ("markers", "missing.c", "the source file"), ("markers", "a.c", "could not compile")],
)  # fmt: skip
def test_what_is_not_built(tmp_path, backend, source, words):
    for name in ("a.c", "a.cpp"):
        (tmp_path / name).write_text("int main(void) { return nothing; }\n")
    refused = _build("--backend", backend, "--output", tmp_path / "program", tmp_path / source)
    assert refused.returncode == 2
    assert words in refused.stderr.splitlines()[0]
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("output", ["missing/folder/program", "."])
def test_a_program_that_cannot_be_written_is_found_before_it_is_built(tmp_path, output):
    place = tmp_path / output
    refused = _build("--backend", "markers", "--output", place, BANK)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1)
    assert refused.stderr.startswith(f"error: {place}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_the_program_does_not_know_is_refused(refused, stamp):
    """Its exit code means wrong usage even without a crash, so it is no verdict about a crash."""
    elf = stamp(BANK, "htm-sgl")
    case = [
        "crash",
        "--design",
        "htm-sgl",
        "--machine",
        "tiny",
        "--elf",
        elf,
        "--again",
        "run -n 2",
        "--check",
        "checkk",
    ]
    words = ("check: ", "'checkk'", "without a power failure", "usage: bank run|check")
    for points in ("20", "all"):
        refused([*case, "--points", points, "--", "run", "-n", "4"], 2, *words)


def test_a_program_that_fails_differs_from_one_that_is_stopped(refused, stamp):
    elf = stamp(BANK, "htm-sgl")
    case = ["crash", "--design", "htm-sgl", "--machine", "tiny", "--elf", elf, "--check", "check", "--", "runn"]
    sentence = refused(case, 3, "usage: bank run|check")
    assert sentence.startswith("durasim: the program fails without a power failure: it exits with 2: usage: ")
