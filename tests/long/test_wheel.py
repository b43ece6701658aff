"""The wheel in an empty environment, outside the repository: the commands work as in a checkout."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.minutes(5), pytest.mark.xdist_group("wheel")]
# Environment variables for access to the package registry.
REGISTRY = ("PIP_CERT", "PIP_INDEX_URL", "PIP_FIND_LINKS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
TINY = ("--machine", "tiny", "--ops", "20", "--arg", "populate=20")


NEEDED = (
    "campaigns/quick.toml",
    "explore/page/index.html",
    "explore/page/page.js",
    "guest/include/durasim/tx.h",
    "guest/stamp/stamp.cpp",
    "guest/suites/hercules.toml",
    "guest/workloads/btree.cpp",
    "machines/tiny.toml",
    "schemas/run.json",
    "sensitivity.csv",
    "third_party_licenses.txt",
)


@pytest.fixture(scope="module")
def wheel():
    wheels = sorted((ROOT / "dist").glob("durasim-*.whl"))
    assert len(wheels) == 1, "make wheel builds it"
    return wheels[0]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Starts a command with the wheel installed, from an empty folder, in an otherwise empty environment."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
    subprocess.run(pip, check=True)
    (folder / "work").mkdir()
    environment = {
        "HOME": str(folder),
        "PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin",
        **{name: os.environ[name] for name in REGISTRY if name in os.environ},
    }

    def start(*command):
        done = subprocess.run(
            command, cwd=folder / "work", env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        return done

    return start


def test_what_travels_in_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        assert f"durasim/{needed}" in names, needed
    assert any(name.endswith("licenses/LICENSE") for name in names)
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "guest").rglob("*") if path.is_file()}
    assert {f"durasim/{name}" for name in here} <= set(names)


def test_it_is_for_glibc_2_28_and_later(wheel):
    assert wheel.name.endswith("manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if re.fullmatch(r"durasim/_core.*\.so", name))
        module = archive.read(name)
    needed = {tuple(map(int, version.split(b"."))) for version in re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", module)}
    assert min(needed) >= (2, 2, 5) and max(needed) <= (2, 28)


def test_no_path_of_the_host_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            assert str(ROOT).encode() not in archive.read(name), name
            assert str(Path.home() / ".cargo").encode() not in archive.read(name), name


def test_run(installed):
    done = installed("durasim", "run", "--workload", "btree", "--ops", "500", "--json", "run.json")
    assert done.returncode == 0
    assert "btree" in done.stdout
    assert "building" not in done.stderr, "the programs are packed"


def test_compare(installed):
    done = installed("durasim", "compare", "--designs", "opt,tc,swl-flush", "--workloads", "btree", *TINY)
    assert done.returncode == 0
    assert "swl-flush" in done.stdout


def test_crash(installed):
    done = installed("durasim", "crash", "--design", "tc", "--workload", "btree", *TINY, "--points", "50")
    assert done.returncode == 0
    assert "all recoveries correct" in done.stdout
    assert installed("durasim", "crash", "--design", "opt", "--workload", "btree", *TINY).returncode == 1


def test_campaign(installed):
    done = installed("durasim", "campaign", "quick")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("what", ["workloads", "designs", "machines"])
def test_lists(installed, what):
    document = json.loads(installed("durasim", what, "--json", "-").stdout)
    assert len(document) > 3


def test_demo(installed):
    done = installed("durasim", "demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all recoveries correct") == 2
    assert "opt† on tiny" in done.stdout or "opt on tiny" in done.stdout
    assert "violations" in done.stdout
    # The steps and their seconds are part of the output of the test.
    print(done.stderr)
    assert "done (after" in done.stderr


def test_own_sources_need_the_compiler(installed):
    script = (
        "import pathlib\n"
        "from durasim.programs import toolchain\n"
        "pathlib.Path('own.cpp').write_text('int main() {}')\n"
        "try:\n"
        "    toolchain.compile_program('own.cpp', 'own')\n"
        "except toolchain.ToolchainError as error:\n"
        "    print(error)\n"
    )
    assert "pip install 'durasim[compiler]'" in installed("python", "-c", script).stdout
