"""Job scripts for batch systems, taken by programs in the place of sbatch, qsub and bsub."""

import os
import re
import subprocess
import sys

import pytest
from cluster_study import write_study

SUBMIT = """#!/bin/sh
cp "$1" "$FOLDER/script.$$"
echo "Submitted batch job 4711$$"
"""
CANCEL = """#!/bin/sh
echo "$@" >> "$FOLDER/cancelled"
"""
START = """
import sys
from durasim.studies.job_cluster import JobCluster
if __name__ == "__main__":
    cluster = JobCluster(sys.argv[1], 2)
    cluster.start(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    cluster.stop()
"""
START_JOBS = "cluster.start(int(sys.argv[2]) if len(sys.argv) > 2 else 0)"
WORKER = (
    "PYTHON -m distributed.cli.dask_worker tls://HOST --name NAME --nthreads 1 --memory-limit MEMORY --nanny "
    "--death-timeout 60 --no-dashboard --protocol tls:// --tls-ca-file FILE --tls-cert FILE --tls-key FILE"
)
EXPORT = "export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES=[]"
SCRIPTS = {
    "slurm": [
        "#SBATCH -J durasim", "#SBATCH -n 1", "#SBATCH --cpus-per-task=1", "#SBATCH --mem=2G", "#SBATCH -t 00:30:00",
    ],
    "pbs": ["#PBS -N durasim", "#PBS -l select=1:ncpus=1:mem=5120MB", "#PBS -l walltime=00:30:00"],
    "lsf": ["#BSUB -J durasim", "#BSUB -n 1", "#BSUB -M 2147484", "#BSUB -W 00:30"],
}  # fmt: skip
# Expected memory of a simulation in GiB, and the memory of its job.
MEMORY = {"slurm": (0, "2.00GiB"), "pbs": (3, "5.00GiB"), "lsf": (1, "2.00GiB")}
COMMANDS = {"slurm": ("sbatch", "scancel"), "pbs": ("qsub", "qdel"), "lsf": ("bsub", "bkill")}


def fakes(folder, system, submit=SUBMIT):
    for name, text in zip(COMMANDS[system], (submit, CANCEL), strict=True):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    more = {"PATH": f"{folder}:{os.environ['PATH']}", "FOLDER": str(folder), "DASK_CONFIG": str(folder / "none")}
    # LSF takes the script from its standard input where its configuration says so.
    more |= {"DASK_JOBQUEUE__LSF__USE_STDIN": "False", "HOME": str(folder), "LSF_ENVDIR": str(folder)}
    return environment | more


@pytest.mark.parametrize("system", SCRIPTS)
def test_jobs_are_submitted_with_the_expected_script_and_cancelled(tmp_path, system):
    environment = fakes(tmp_path, system)
    expected, memory = MEMORY[system]
    ran = subprocess.run(
        [sys.executable, "-c", START, system, str(expected * 2**30)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert f"durasim: {system}: 2 jobs submitted, waiting for workers" in ran.stderr
    scripts = list(tmp_path.glob("script.*"))
    assert len(scripts) == 2
    worker = WORKER.replace("MEMORY", memory)
    for script in scripts:
        text = script.read_text().replace(sys.executable, "PYTHON")
        text = re.sub(r"tls://[\d.]+:\d+", "tls://HOST", text)
        text = re.sub(r"--name \S+", "--name NAME", re.sub(r"(--tls-\S+) \S+", r"\1 FILE", text))
        assert [line for line in text.splitlines() if line] == ["#!/usr/bin/env bash", *SCRIPTS[system], EXPORT, worker]
    assert len((tmp_path / "cancelled").read_text().split()) == 2
    assert not list(tmp_path.rglob(".dask-jobqueue.*"))


def test_a_batch_system_that_refuses_a_job_is_one_sentence(tmp_path):
    environment = fakes(tmp_path, "slurm", "#!/bin/sh\necho 'no such account' >&2\nexit 1\n")
    text = START.replace(START_JOBS, f"try:\n        {START_JOBS}\n    except OSError as error:\n        print(error)")
    text = text.replace("import sys\n", "import sys\nfrom durasim.errors import HostIoError\n").replace(
        "OSError", "HostIoError"
    )
    ran = subprocess.run(
        [sys.executable, "-c", text, "slurm"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.startswith("slurm: the jobs cannot be submitted: Command exited with non-zero exit code"), (
        ran.stderr
    )
    assert "no such account" in ran.stdout
    assert ran.stdout.count("\n") == 1


def test_jobs_that_never_start_are_cancelled_after_the_longest_wait(tmp_path):
    words = ["sweep", write_study(tmp_path, 4), "--no-store", "--cluster", "slurm", "--jobs", 1, "--wait", 0.01]
    ran = subprocess.run(
        [sys.executable, "-m", "durasim", *map(str, words)],
        env=fakes(tmp_path, "slurm") | {"XDG_DATA_HOME": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 4, ran.stderr
    sentence = (
        "slurm: no job has started a worker within 0.01 minutes, and the jobs are cancelled: --wait MINUTES waits"
    )
    assert sentence in ran.stderr.splitlines()[-1]
    assert (tmp_path / "cancelled").exists()
