"""The progress of a run beside what its guest writes."""

from __future__ import annotations

import time

from rich.progress import Progress

from durasim.simulation import GuestOutput

# After the guest has written nothing for so long, the bar comes back.
_QUIET_S = 1.0


class RunBar:
    """The progress of one run. The bar leaves the terminal while the guest writes to it."""

    def __init__(self, bar: Progress, description: str, guest_output: GuestOutput) -> None:
        self._bar = bar
        self._guest_output = guest_output
        self._task = bar.add_task(description, total=None)
        self._wrote_at = -_QUIET_S

    def show(self, done: int, total: int | None) -> None:
        """Takes the operations that are done, and how many there will be; None as long as nobody knows."""
        self._bar.update(self._task, completed=done, total=total)
        if not self._bar.live.is_started and time.monotonic() - self._wrote_at > _QUIET_S:
            self._bar.start()

    def write(self, stream: str, data: bytes) -> None:
        """Passes through what the guest writes."""
        self._wrote_at = time.monotonic()
        self._bar.stop()
        self._guest_output(stream, data)
