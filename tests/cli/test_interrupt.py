"""Ctrl-C ends a run cleanly."""

import signal
import subprocess
import sys
import time

import elf_files


def test_interrupting_a_program_that_never_ends(elf, tmp_path):
    path = tmp_path / "result.json"
    spin = elf(elf_files.elf64([*elf_files.write_from_pc(1, b"spinning\n"), elf_files.SPIN]))
    process = subprocess.Popen(
        [sys.executable, "-m", "durasim", "run", "--elf", str(spin), "--json", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "spinning\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert complaint.count("\n") <= 1
    assert time.monotonic() - begin < 10
    assert not path.exists()


def test_interrupting_a_campaign_before_its_first_crash():
    options = ["--design", "opt", "--workload", "array-swap", "--machine", "tiny", "--ops", "100000000"]
    with subprocess.Popen(
        [sys.executable, "-m", "durasim", "crash", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        # Nothing is printed while the run is counted; a signal before Python listens would end it in another way.
        time.sleep(3)
        assert process.poll() is None
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert time.monotonic() - begin < 10
