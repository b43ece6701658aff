"""Bad input: one clear sentence, the documented exit code, no panic, no partial file."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import compiled
import durasim as ds
import elf_files as ef
from durasim.runs import scenario

RUN = ["run", "--workload", "btree", "--machine", "tiny", "--ops", "20", "--arg", "populate=20"]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--design", "hercles", ["design", "hercles", "did you mean 'hercules'", "opt"]),
        ("--workload", "btre", ["workload", "btre", "did you mean 'btree'", "`durasim workloads`"]),
        ("--machine", "tinny", ["machine", "tinny", "did you mean 'tiny'", "hercules-tecs23-modern"]),
        ("--domain", "adrr", ["domain", "adrr", "adr"]),
        ("--arg", "populat=3", ["populat", "populate"]),
        ("--arg", "populate=many", ["populate", "many"]),
        ("--arg", "node-bytes=1", ["node-bytes", "64"]),
        ("--arg", "populate", ["name=value"]),
        ("--set", "l1d.sizes_kb=3", ["l1d", "sizes_kb"]),
        ("--set", "nothing.here=3", ["nothing"]),
        ("--set", "l1d.ways=0", ["l1d.ways", "0", "between 1 and 64"]),
        ("--set", "design.opt.x=1", ["design.opt", "x"]),
        (
            "--set",
            "llc.tag_latency_cycles=31",
            ["llc.tag_latency_cycles", "31", "between 1 and the 30 cycles of a hit"],
        ),
        ("--set", "l1d.tag_latency_cycles=0", ["l1d.tag_latency_cycles", "0 is not between 1"]),
        ("--set", "tlb.walkers=1", ["tlb", "missing field `l1`"]),
        ("--set", "tlb=big", ["tlb", "invalid type"]),
        ("--max-instructions", "1000", ["max_instructions", "1000"]),
        ("--root", "missing", ["root", "a workload reads no files"]),
        ("--set", "no_equals_sign", ["no_equals_sign", "path.to.key=value"]),
        ("--ops", "0", ["ops", "0", "1"]),
        ("--ops", "many", ["--ops"]),
        ("--seed", "-1", ["seed", "-1"]),
        ("--threads", "0", ["threads", "0"]),
        ("--threads", "65", ["threads", "64"]),
        ("--machine", "missing.toml", ["missing.toml"]),
        ("--pool", "missing/folder/pool", ["missing/folder/pool"]),
    ],
)
def test_options_of_run(refused, option, value, words):
    # The last value of an option takes effect.
    code = 4 if option == "--pool" else 2
    refused([*RUN, option, value], code, *words)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("l1.ways", 0, ["between 1 and 256"]),
        ("l1.entries", 3, ["3 is not between the 4 ways of a set and 2^20"]),
        ("l2.entries", 1 << 21, ["between the 12 ways of a set and 2^20"]),
        ("l2.latency_cycles", 0, ["between 1 and 1000"]),
        ("l2.latency_cycles", "slow", ["invalid type", "slow"]),
        ("walkers", 0, ["between 1 and 64"]),
        ("l3.entries", 8, ["l3"]),
    ],
)
def test_tlbs_that_cannot_be_built(refused, key, value, words):
    refused([*RUN, "--machine", "pinspect-micro20", "--set", f"tlb.{key}={value}"], 2, "tlb", key.split(".")[0], *words)


@pytest.mark.parametrize(
    ("design", "words"),
    [("hercules", ["the older version of a line", "section 4.5.1"]), ("opt", ["exclusive caches are not supported"])],
)
def test_an_exclusive_hierarchy_is_refused(refused, design, words):
    refused(
        [*RUN, "--design", design, "--set", "interconnect.inclusion=exclusive"], 2, "interconnect.inclusion", *words
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], ["frobnicate"]),
        ([], ["command"]),
        (["run"], ["workload", "--elf"]),
        (["run", "--bogus"], ["--bogus"]),
        (["run", "--workload", "btree", "--elf", "x"], ["give either"]),
        (["run", "--elf", "x", "--ops", "3"], ["ops"]),
        (["run", "--elf", "x", "--arg", "a=3"], ["arg"]),
        (["run", "--elf", "x", "--threads", "4", "--", "run"], ["threads", "after --"]),
        (["crash", "--design", "tc", "--elf", "x", "--check", "c", "--threads", "4"], ["threads", "after --"]),
        (["run", "--workload", "btree", "--", "extra"], ["--arg"]),
        (["run", "--elf", "x", "--env", "HOME"], ["NAME=value"]),
        (["crash", "--design", "hercules", "--workload", "btree", "--points", "some"], ["points", "some", "all"]),
        (["crash", "--design", "hercules", "--workload", "btree", "--points", "0"], ["points"]),
        (["crash", "--design", "hercules", "--workload", "btree", "--replay", "nonsense"], ["replay", "nonsense"]),
        (["crash", "--workload", "btree"], ["design", "required"]),
        (["crash", "--design", "tc"], ["workload", "--elf"]),
        (["crash", "--design", "tc", "--elf", "x"], ["check", "recovers"]),
        (["crash", "--design", "tc", "--workload", "btree", "--check", "c"], ["check", "--elf"]),
        (["crash", "--design", "tc", "--workload", "btree", "--again", "c"], ["again", "--elf"]),
        (["crash", "--design", "tc", "--workload", "btree", "--", "extra"], ["--arg"]),
        (["crash", "--campaign", "x.toml"], ["`durasim campaign FILE.toml`"]),
        (["crash", "--planted"], ["`durasim mutation`"]),
        (["run", "--workload", "btree", "--no-warm"], ["warm", "fast_forward or from"]),
        (["crash", "--design", "tc", "--workload", "btree", "--replay", "e1", "--points", "5"], ["points", "--replay"]),
        (
            ["crash", "--design", "tc", "--workload", "btree", "--replay", "e1", "--fault", "torn"],
            ["fault", "--replay"],
        ),
        (["crash", "--design", "tc", "--workload", "btree", "--replay", "e1", "--variants", "5"], ["variants"]),
        (["crash", "--design", "tc", "--workload", "btree", "--fault", "clean", "--variants", "5"], ["variants"]),
        (
            ["crash", "--design", "tc", "--elf", "x", "--check", "c", "--again", "a", "--fault", "torn"],
            ["again", "--fault recrash"],
        ),
        (["compare", "--workloads", "btree", "--elf", "x", "--designs", "opt"], ["workloads", "give either"]),
        (["compare", "--elf", "x"], ["designs", "belongs to no suite"]),
        (["compare", "--designs", "opt,tc", "--workloads", "btree", "--baseline", "kiln"], ["baseline", "kiln", "tc"]),
        (["machines", "tinny"], ["tinny", "tiny"]),
        (["machines", "tiny", "--show", "tiny"], ["show"]),
        (["compare", "--designs", "opt,hercles", "--workloads", "btree"], ["hercles", "hercules"]),
        (["compare", "--designs", "opt", "--workloads", "btre"], ["btre", "btree"]),
        (["compare", "--designs", "opt,opt", "--workloads", "btree"], ["opt", "twice"]),
        (["compare", "--designs", ",", "--workloads", "btree"], ["designs"]),
        (["machines", "--show", "tinny"], ["tinny", "tiny"]),
    ],
)
def test_command_lines(refused, arguments, words):
    refused(arguments, 2, *words)


def test_a_key_out_of_range(refused):
    sentence = refused([*RUN, "--set", "pmem.media.read_latency_ns=-5"], 2, "pmem.media.read_latency_ns")
    assert "-5" in sentence


def test_a_domain_the_design_does_not_tolerate(refused, program):
    arguments = [*RUN, "--design", "swl-eadr", "--domain", "adr"]
    refused(arguments, 2, "swl-eadr", "adr", "--control")
    assert program(*arguments, "--control").returncode == 0


@pytest.mark.parametrize(
    ("text", "word"), [("[[", "machine.toml"), ("name = 3", "name"), ("unknown_key = 1", "unknown_key"), ("", "name")]
)
def test_a_machine_file_that_is_wrong(refused, tmp_path, text, word):
    path = tmp_path / "machine.toml"
    path.write_text(text)
    refused([*RUN, "--machine", path], 2, word)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (ef.elf32(), ["32"]),
        (ef.elf64(ef.exit_with(0), machine=ef.EM_X86_64), ["RISC-V"]),
        (ef.elf64(ef.exit_with(0), kind=ef.ET_DYN, interpreter=True), ["dynamic linker is damaged"]),
        (ef.elf64(ef.exit_with(0), interpreter=True), ["dynamic linker is damaged"]),
        (ef.elf64(ef.exit_with(0))[:40], ["truncated"]),
        (ef.elf64(ef.exit_with(0))[:-4], ["truncated"]),
        (b"#!/bin/sh\n", ["ELF"]),
        (b"", ["ELF"]),
    ],
    ids=["32-bit", "x86-64", "dynamic", "interpreter", "no-headers", "truncated", "script", "empty"],
)
def test_programs_that_cannot_be_loaded(refused, elf, tmp_path, data, words):
    path = tmp_path / "result.json"
    sentence = refused(["run", "--elf", elf(data), "--json", path], 2, "prog")
    assert any(word.lower() in sentence.lower() for word in words), sentence
    assert not path.exists()


def test_a_program_that_is_not_there(refused, tmp_path):
    refused(["run", "--elf", tmp_path / "missing"], 2, "missing")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ([ef.JUMP_TO_ZERO], ["pc 0x0"]),
        ([ef.UNKNOWN_OPCODE], [hex(ef.BASE + ef.HEADERS_BYTES), "7b"]),
        ([ef.li(ef.A7, ef.SYS_EXECVE), ef.ECALL, *ef.exit_with(0)], [f"system call {ef.SYS_EXECVE} (execve)"]),
    ],
    ids=["void", "opcode", "system-call"],
)
def test_programs_that_have_to_be_stopped(refused, elf, tmp_path, code, words):
    path = tmp_path / "result.json"
    refused(["run", "--elf", elf(ef.elf64(code)), "--json", path], 3, *words)
    assert not path.exists()


@pytest.mark.parametrize("mode", [(), ("--functional",), ("--fast-forward", "roi")])
def test_a_program_that_takes_memory_without_end(refused, mode):
    elf = compiled.program(Path(__file__).parents[1] / "programs" / "allocates.c")
    machine = ["--machine", "tiny", "--set", "dram.capacity_mib=1024"]
    run = ["run", "--design", "opt", *machine, "--elf", elf, *mode, "--max-memory-mib", "16"]
    refused(run, 2, "max_memory_mib", "more", "pc 0x")


@pytest.mark.parametrize("call", [ef.SYS_UNKNOWN, ef.SYS_IO_URING_SETUP])
def test_a_call_that_a_program_only_tries_does_not_stop_it(program, elf, call):
    code = [ef.li(ef.A7, call), ef.ECALL, *ef.exit_with_minus_a0()]
    result = program("run", "--elf", elf(ef.elf64(code)), "--json", "-", "--quiet")
    assert result.returncode == 1, result.stderr
    assert json.loads(result.stdout)["guest_exit_code"] == errno.ENOSYS


@pytest.mark.parametrize("spoil", ["short", "long", "version"])
def test_a_pool_file_that_does_not_fit(program, refused, tmp_path, spoil):
    pool = tmp_path / "pool"
    assert program(*RUN, "--pool", pool).returncode == 0
    data = pool.read_bytes()
    if spoil == "short":
        pool.write_bytes(data[: len(data) // 2 - 3])
    elif spoil == "long":
        pool.write_bytes(data + b"x")
    else:
        # The version is in the first line of the file, after its magic.
        pool.write_bytes(data[:8] + b"\xff\xff\xff\xff" + data[12:])
    before = pool.read_bytes()
    refused([*RUN, "--pool", pool], 2, "pool")
    assert pool.read_bytes() == before


def test_a_full_disk(refused):
    refused([*RUN, "--json", "/dev/full"], 4, "/dev/full", "No space left")


@pytest.mark.parametrize("folder", ["missing", "/proc"])
def test_a_folder_that_takes_no_file(refused, tmp_path, folder):
    refused([*RUN, "--json", f"{folder}/result.json"], 4, f"{folder}/result.json", cwd=tmp_path)


def test_no_partial_file_when_the_disk_fills_up(program, tmp_path):
    """Simulates a full file system by a limit on the size of files, which also applies to root."""
    path = tmp_path / "result.json"
    assert program(*RUN).returncode == 0  # builds the guest program
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200));"
    start = "sys.argv[0] = 'durasim'; runpy.run_module('durasim', run_name='__main__')"
    command = [sys.executable, "-B", "-c", limit + start, *RUN, "--json", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 4, result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_standard_output_that_is_full(hello):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - only the descriptor is needed
        result = subprocess.run(
            [sys.executable, "-m", "durasim", "run", "--elf", str(hello)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=300,
        )  # fmt: skip
    assert result.returncode == 4, result.stderr
    assert "standard output" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_goes_away(hello):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "durasim", "run", "--elf", str(hello)]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    os.close(write)
    assert result.returncode == 128 + signal.SIGPIPE
    assert result.stderr == ""
    for words in (["designs"], ["designs", "--json", "-"], ["machines", "tiny"], ["--help"]):
        command = f"({sys.executable} -m durasim {' '.join(words)}; echo $? >&3) 3>&2 | true"
        shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300)
        assert shown.stderr.strip().isdigit(), (words, shown.stderr)


def test_data_that_the_host_cannot_hold_are_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(scenario, "_available_bytes", lambda: 4_000_000)
    run = {"design": "opt", "workload": "pinspect-kv-pmap", "machine": "tiny", "ops": 1}
    with pytest.raises(ds.ConfigError, match=r"footprint-bytes: data of 4,000,001 bytes do not fit into 4,000,000"):
        ds.run(**run, workload_args={"footprint-bytes": 4_000_001})
    with pytest.raises(ds.ConfigError, match=r"footprint-bytes: data of 12,\d{3},\d{3},\d{3} bytes do not fit"):
        ds.run(**run | {"workload": "pinspect-kv-pmap-d-full"})
