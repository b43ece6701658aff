"""A Dask scheduler and its workers as processes of a test."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_START_S = 120
# Three failures of a point end it, as with clusters that durasim starts. No page and no port beside those of Dask.
_ENVIRONMENT = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s",
}
_OF_ONE = (("cert", "cert"), ("key", "key"))


_CERTIFICATE = """
from pathlib import Path
from distributed.security import Security
made = Security.temporary()
for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
    Path(f"{name}.pem").write_text(text)
"""


@dataclass(frozen=True)
class Certificates:
    """Temporary certificates in the files of a folder."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Makes certificates of a new authority."""
        folder.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-c", _CERTIFICATE], cwd=folder, check=True)
        return cls(folder)

    def options(self) -> list[str]:
        """Returns the options of a scheduler or worker."""
        return [f"--tls-{name}={self.folder / file}.pem" for name, file in (("ca-file", "ca"), *_OF_ONE)]

    def environment(self) -> dict[str, str]:
        """Returns the environment of a study."""
        prefix = "DASK_DISTRIBUTED__COMM__TLS__"
        found = {f"{prefix}CLIENT__{name.upper()}": str(self.folder / f"{file}.pem") for name, file in _OF_ONE}
        return found | {f"{prefix}CA_FILE": str(self.folder / "ca.pem")}


class DaskProcesses:
    """Ends all processes that it has started."""

    def __init__(self, folder: Path, *arguments: str, protocol: str = "tcp") -> None:
        self.folder, self._arguments, self._protocol = folder, arguments, protocol
        self._started: list[subprocess.Popen[bytes]] = []
        self.address = ""
        self.scheduler: subprocess.Popen[bytes]

    def start_scheduler(self, port: int = 0) -> str:
        """Starts a scheduler and returns its address once it listens."""
        words = ["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-jupyter"]
        log = self.folder / f"scheduler-{len(self._started)}.log"
        self.scheduler = self._start(log, [*words, "--protocol", self._protocol, *self._arguments])
        self.address = awaited(lambda: re.search(rf"Scheduler at:\s+({self._protocol}://\S+)", log.read_text()))[1]
        return self.address

    def start_worker(self, *arguments: str, address: str = "", **environment: str) -> subprocess.Popen[bytes]:
        """Starts a worker process without a process that watches it."""
        words = ["dask_worker", address or self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard"]
        words += ["--memory-limit", "0", "--local-directory", str(self.folder), *self._arguments]
        words += [] if "--nanny" in arguments else ["--no-nanny"]
        return self._start(self.folder / f"worker-{len(self._started)}.log", [*words, *arguments], environment)

    def _start(self, log: Path, words: list[str], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]],
                stdout=file,
                stderr=file,
                env={**os.environ, **_ENVIRONMENT, **(environment or {})},
            )
        self._started.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()


def awaited(found):
    """Waits until `found()` is true and returns its result."""
    deadline = time.monotonic() + _START_S
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result
