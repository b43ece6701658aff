"""The durable-HTM runtimes as libraries of the host: processes are killed at random moments, and then recovered.

This tests the code of recovery: the page cache outlives the process, so all operations that have returned must be in
the recovered pool, independent of flushes. Durability is not tested.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from guest_programs import NativeBuild, execute

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

# A hundred kills in total.
KILLS = 20
BACKENDS = ["htm-sgl", "spht-eadr", "spht-eadr-flush", "spht", "nv-htm"]
POPULATED = 40
# Maximum processor time of a process before it is killed.
RUNNING_S = 0.15


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_processes_leave_what_recovery_can_use(native: NativeBuild, tmp_path: Path, backend: str) -> None:
    chance, pool = random.Random(backend), tmp_path / "pool"  # noqa: S311 - moments, not secrets
    report = tmp_path / "report"
    # Where the processor has RTM, hardly a transaction takes the lock and its log.
    programs = [
        native("array-swap", backend, before="acknowledged", history=False, defines=defines)
        for defines in ((), ("DURASIM_WITHOUT_RTM",))
    ]
    sizes = ["--ops", "1000000000", "--populate", str(POPULATED), "--element-bytes", "64"]
    sizes += ["--threads", "3", "--log-bytes", "1024"]
    if backend == "spht":
        sizes.append("--links")
    environment = os.environ | {"DURASIM_TEST_REPORT": str(report)}
    killed = recovered = all_acknowledged = 0
    for seed in range(KILLS):
        pool.unlink(missing_ok=True)
        report.write_bytes(bytes(8))
        program = programs[seed % 2]
        command = [program, "run", "--pool-path", pool, "--seed", str(seed), *sizes]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            wait_for_work(process, chance.uniform(0.03, RUNNING_S))
            process.kill()
        killed += process.returncode == -signal.SIGKILL
        if chance.random() < 0.5:
            kill_recovery(program, pool, chance)
        outcome = execute([program, "recover", "--pool-path", pool])
        assert outcome.code == 0, outcome.text
        recovered += int(re.search(r"recovered, (\d+) log entries", outcome.text)[1])
        acknowledged = int.from_bytes(report.read_bytes(), "little")
        least = acknowledged + POPULATED if acknowledged else 0
        checked = execute([program, "check", "--pool-path", pool, "--operations-min", str(least)])
        assert checked.code == 0, checked.text
        all_acknowledged += acknowledged
    assert killed == KILLS, "a process was not killed"
    assert recovered > 0, "no log had anything to replay"
    assert all_acknowledged > 100 * KILLS, "processes were killed before they had done anything"


def wait_for_work(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits until a process has used this much processor time, independent of the load of the host."""
    ticks = seconds * os.sysconf("SC_CLK_TCK")
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        # After the name, which ends with the last parenthesis: utime and stime are the 12th and 13th (proc(5)).
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        if int(fields[11]) + int(fields[12]) >= ticks:
            return
        time.sleep(0.002)


def kill_recovery(program: Path, pool: Path, chance: random.Random) -> None:
    """Kills a recovery, if it has not ended before."""
    with subprocess.Popen([program, "recover", "--pool-path", pool], stdout=subprocess.DEVNULL) as process:
        time.sleep(chance.uniform(0, 0.003))
        process.kill()
