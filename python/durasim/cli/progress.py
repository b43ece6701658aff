"""Progress bar of a run, next to the output of the guest."""

from __future__ import annotations

import time

from rich.progress import Progress

from durasim.runs.simulation import GuestOutput

# The bar reappears after this time without output of the guest.
_QUIET_S = 1.0


class RunBar:
    """Progress bar of one run, hidden while the guest writes to the terminal."""

    def __init__(self, bar: Progress, description: str, guest_output: GuestOutput) -> None:
        self._bar = bar
        self._guest_output = guest_output
        self._task = bar.add_task(description, total=None)
        self._wrote_at = -_QUIET_S

    def show(self, done: int, total: int | None) -> None:
        """Shows the operations done and their total; None while it is unknown."""
        self._bar.update(self._task, completed=done, total=total)
        if not self._bar.live.is_started and time.monotonic() - self._wrote_at > _QUIET_S:
            self._bar.start()

    def write(self, stream: str, data: bytes) -> None:
        """Passes the output of the guest through."""
        self._wrote_at = time.monotonic()
        self._bar.stop()
        self._guest_output(stream, data)
