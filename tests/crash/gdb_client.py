"""A client of gdb's remote serial protocol: as much of it as the tests of `crash --gdb` need."""

from __future__ import annotations

import socket
import struct
from typing import Self

PC = 32
"""The number of the program counter among the registers."""


class GdbClient:
    """A connection to a stub.

    Args:
        port: The port of the loopback interface at which the stub waits.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        # A packet goes out at once, as from gdb: else each one waits 40 ms for an acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, packet: str) -> None:
        """Sends a packet."""
        data = packet.encode()
        self._socket.sendall(b"$" + data + b"#" + f"{sum(data) % 256:02x}".encode())

    def ask(self, packet: str) -> str:
        """Sends a packet and returns the answer."""
        self.send(packet)
        return self.answer()

    def answer(self) -> str:
        """Returns the next packet, with runs of equal characters written out."""
        while not ((start := self._received.find(b"$")) >= 0 and len(self._received) >= self._end(start) > 0):
            data = self._socket.recv(1 << 16)
            assert data, "the stub has closed the connection"
            self._received += data
        end = self._end(start)
        packet = self._received[start + 1 : end - 3].decode()
        self._received = self._received[end:]
        self._socket.sendall(b"+")
        text = ""
        characters = iter(packet)
        for character in characters:
            text += text[-1] * (ord(next(characters)) - 29) if character == "*" else character
        return text

    def _end(self, start: int) -> int:
        mark = self._received.find(b"#", start)
        return mark + 3 if mark >= 0 else 0

    def registers(self) -> list[int]:
        """Returns the integer registers and the program counter of the thread that has stopped."""
        return list(struct.unpack("<33Q", bytes.fromhex(self.ask("g"))[: 33 * 8]))

    @property
    def pc(self) -> int:
        """The program counter of the thread that has stopped."""
        return self.registers()[PC]

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Returns memory as the thread that has stopped loads it."""
        return bytes.fromhex(self.ask(f"m{address:x},{size_bytes:x}"))

    def monitor(self, command: str) -> str:
        """Returns the text that `monitor COMMAND` prints."""
        answer, text = self.ask(f"qRcmd,{command.encode().hex()}"), ""
        while answer != "OK":
            assert answer.startswith("O"), answer
            text += bytes.fromhex(answer[1:]).decode()
            answer = self.answer()
        return text
