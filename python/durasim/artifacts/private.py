"""Private texts of a computer and its user, which no artifact contains: home, user, host, values of the environment.

Files of an artifact are made without them. A file that has to be packed as it is, or a text that the user wrote, is
searched, and refused if it has one.
"""

from __future__ import annotations

import getpass
import os
import pwd
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from durasim.errors import ConfigError, refusal

_IMPERSONAL = frozenset({
    "admin", "build", "debian", "docker", "fedora", "guest", "localhost", "localhost.localdomain", "root", "runner",
    "test", "ubuntu", "user", "vagrant",
})  # fmt: skip
"""Names of accounts and hosts that identify neither a person nor a computer; some are words of programs."""
_PUBLIC = frozenset({
    "COLORTERM", "LANG", "LANGUAGE", "OLDPWD", "PATH", "PWD", "SHELL", "TERM", "TZ", "XDG_SESSION_TYPE", "_",
})  # fmt: skip
"""Variables whose values are those of many computers, or the present folder; all may still have names and homes."""
_SYSTEM = ("/bin/", "/dev/", "/etc/", "/lib", "/proc/", "/run/", "/sbin/", "/sys/", "/tmp", "/usr/", "/var/")  # noqa: S108
"""Begins of paths that many computers have; C libraries contain some. They may still have names."""
_NAME_MIN = 3
"""Letters of the shortest name that is searched."""
_VALUE_MIN = 8
"""Characters of the shortest value of the environment that is searched in texts of the user."""
_SECRET_MIN = 16
"""Characters of the shortest value that is searched in programs too, if it is no path."""
_HOMES_OF_NONE = ("", "/", "/nonexistent")


@dataclass(frozen=True)
class Private:
    """Private texts, each with the words that describe it.

    Attributes:
        homes: Folders of the user.
        names: Names of user and host.
        values: Values of the environment.
    """

    homes: Mapping[str, str]
    names: Mapping[str, str]
    values: Mapping[str, str]

    def in_text(self, text: str) -> tuple[str, str] | None:
        """Returns a private text in a text that the user wrote, and the words that describe it; None without one."""
        found = None if self._in_texts is None else self._in_texts.search(_encoded(text))
        return None if found is None else self._described(found)

    def refuse_in_text(self, place: str, text: str) -> None:
        """Refuses a text that the user wrote.

        Raises:
            ConfigError: It has a private text; the sentence names the place, the line and the text.
        """
        for number, line in enumerate(text.splitlines(), 1):
            if (found := self.in_text(line)) is not None:
                raise _refused(f"{place}, line {number}," if "\n" in text else place, found)

    def in_file(self, data: bytes) -> tuple[str, str] | None:
        """Returns a private text in a file, and the words that describe it; None without one.

        Names of user and host are searched as parts of paths alone: programs have words of all kinds.
        """
        found = None if self._in_files is None else self._in_files.search(data)
        return None if found is None else self._described(found)

    def refuse_in_file(self, place: str, data: bytes) -> None:
        """Refuses a file that has to be packed as it is.

        Raises:
            ConfigError: It has a private text, see `in_file`; the sentence names the place and the text.
        """
        if (found := self.in_file(data)) is not None:
            raise _refused(place, found)

    def _described(self, found: re.Match[bytes]) -> tuple[str, str]:
        text = next(filter(None, found.groups())).decode(errors="surrogateescape")
        return text, {**self.values, **self.names, **self.homes}[text]

    @cached_property
    def _in_texts(self) -> re.Pattern[bytes] | None:
        return _pattern(map(_whole, [*self.homes, *self.values, *self.names]))

    @cached_property
    def _in_files(self) -> re.Pattern[bytes] | None:
        values = [value for value in self.values if value.startswith("/") or len(value) >= _SECRET_MIN]
        return _pattern([*map(_whole, [*self.homes, *values]), *map(_in_path, self.names)])


def _refused(place: str, found: tuple[str, str]) -> ConfigError:
    text, words = found
    return refusal("artifact", f"{place} contains '{text}', {words}: remove it there, and sweep again")


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _whole(text: str) -> str:
    """Returns an expression for a text that no letter or digit continues."""
    return rf"(?<![A-Za-z0-9])({re.escape(text)})(?![A-Za-z0-9])"


def _in_path(name: str) -> str:
    """Returns an expression for a name that is a part of a path, which hardly any compressed data have by chance."""
    escaped = re.escape(name)
    return rf"""/({escaped})/|[A-Za-z0-9._-]/({escaped})(?=[\0"'\s:;,)])"""


def _pattern(parts: Iterator[str] | list[str]) -> re.Pattern[bytes] | None:
    joined = "|".join(parts)
    return re.compile(_encoded(joined)) if joined else None


def private_texts(known: frozenset[str]) -> Private:
    """Returns the private texts of this computer and its user.

    Args:
        known: Words of durasim, such as names of designs: texts have them whatever the user is called.
    """
    own = _account()
    homes = {os.environ.get("HOME", ""), str(Path.home()), "" if own is None else own.pw_dir}
    homes |= {os.path.realpath(home) for home in homes if home}
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")} | {_user_name()}
    host = socket.gethostname()
    hosts = {host, host.partition(".")[0], os.environ.get("HOSTNAME", "")}
    names = dict.fromkeys(sorted(hosts), "the name of this computer") | dict.fromkeys(sorted(users), "your user name")
    values = {
        value: f"the value of the environment variable {name}"
        for name, value in sorted(os.environ.items())
        if name not in _PUBLIC and not name.startswith("LC_") and _identifies(value) and value not in known
    }
    return Private(
        homes={home: "your home folder" for home in sorted(homes) if home.rstrip("/") not in _HOMES_OF_NONE},
        names={
            name: words
            for name, words in names.items()
            if len(name) >= _NAME_MIN and name.lower() not in _IMPERSONAL and name not in known
        },
        values=values,
    )


def _identifies(value: str) -> bool:
    """Whether a value of the environment may be one of this user or computer alone."""
    return len(value) >= _VALUE_MIN and not value.startswith(_SYSTEM)


def _account() -> pwd.struct_passwd | None:
    """Returns the entry of the user in the list of accounts; None if there is none, as in some containers."""
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:
        return None


def _user_name() -> str:
    """Returns the name of the user; empty if the computer has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
