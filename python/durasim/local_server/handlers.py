"""The requests that all local pages answer: files of the page, the exchange of the token, and refusals.

tornado parses the requests.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import tornado.httpserver
import tornado.web

from durasim.errors import host_io
from durasim.local_server.access import ADDRESS, HEADERS, Access

FORBIDDEN, UNAUTHORIZED, REFUSED, NOT_FOUND, CLOSED = 403, 401, 400, 404, 499
_BODY_MAX_BYTES = 4096
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_INDEX = "index.html"


def listen(port: int) -> socket.socket:
    """Returns a socket that listens on this computer alone; port 0 means a free one.

    Raises:
        HostIoError: Another program uses the port, or it may not be used.
    """
    try:
        found = socket.create_server((ADDRESS, port))
    except OSError as error:
        raise host_io(f"port {port}", error) from None
    found.setblocking(False)
    return found


def answering(application: tornado.web.Application, opened: socket.socket) -> tornado.httpserver.HTTPServer:
    """Returns a server that answers requests to a listening socket. It needs a running event loop."""
    # One line for each refused request would repeat what its sender is answered.
    for name in ("tornado.access", "tornado.general"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = tornado.httpserver.HTTPServer(application, max_body_size=_BODY_MAX_BYTES)
    server.add_socket(opened)
    return server


def application(
    access: Access, folder: Path, files: Sequence[str], data: Sequence[tuple[str, type[Handler]]], **shared: Any
) -> tornado.web.Application:
    """Returns the requests that a server answers.

    Args:
        access: Who may ask.
        folder: The folder with the files of the page.
        files: The names of these files; no other file is sent.
        data: The path and the handler of each further request.
        **shared: What these handlers have as `shared`.
    """
    given = {"access": access, "folder": folder, "shared": shared}
    return tornado.web.Application(
        [
            (f"/({'|'.join(map(re.escape, files))}|)", _File, given),
            (r"/session", _Session, given),
            *((path, handler, given) for path, handler in data),
        ],
        default_handler_class=_Missing,
        default_handler_args=given,
    )


class Handler(tornado.web.RequestHandler):
    """A request that is answered only if this server was meant."""

    needs_session: ClassVar = True

    def initialize(self, access: Access, folder: Path, shared: dict[str, Any]) -> None:
        """Takes what all requests share."""
        self.access, self.folder, self.shared = access, folder, shared
        self.closed = False

    def set_default_headers(self) -> None:
        """Sets the headers of every answer."""
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuses requests of other sites, and those without a session."""
        headers = self.request.headers
        hosts = headers.get_list("Host")
        problem = self.access.problem_of(hosts[0] if len(hosts) == 1 else None, headers.get_list("Origin"))
        if problem is not None:
            self.refuse(FORBIDDEN, problem)
        elif self.needs_session and not self.access.is_session(self.get_cookie(self.access.cookie)):
            self.refuse(UNAUTHORIZED, "open the address that durasim has printed: it has the token")

    def on_connection_close(self) -> None:
        """Notes that the answer is not wanted any more."""
        self.closed = True

    def refuse(self, status: int, problem: str) -> None:
        """Answers with a sentence."""
        self.set_status(status, "Refused")
        self.answer({"problem": problem})

    def answer(self, document: Any) -> None:
        """Answers with a document."""
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(json.dumps(document, ensure_ascii=True, separators=(",", ":")))

    def write_error(self, status_code: int, **_: Any) -> None:
        """Answers in place of tornado, whose answer is a page."""
        self.answer({"problem": f"the server cannot answer this request ({status_code})"})

    def compute_etag(self) -> None:
        """Returns no hash: no answer is stored."""


class _Missing(Handler):
    """Any other address."""

    def _refuse_all(self) -> None:
        self.refuse(NOT_FOUND, "there is nothing at this address")

    get = head = post = put = delete = patch = options = _refuse_all


class _File(Handler):
    """A file of the page. It has no data, so it needs no session."""

    needs_session = False

    def get(self, name: str) -> None:
        path = self.folder / (name or _INDEX)
        self.set_header("Content-Type", f"{_TYPES[path.suffix]}; charset=utf-8")
        self.finish(path.read_bytes())


class _Session(Handler):
    """Exchanges the token for a cookie that scripts cannot read and that other sites cannot use."""

    needs_session = False

    def post(self) -> None:
        try:
            document = json.loads(self.request.body.decode("utf-8"))
            token = document["token"]
            value = self.access.exchanged(token) if isinstance(token, str) else None
        except (ValueError, KeyError, TypeError):
            value = None
        if value is None:
            self.refuse(UNAUTHORIZED, "the token is not the one that durasim has printed")
            return
        self.set_cookie(self.access.cookie, value, httponly=True, samesite="Strict", path="/")
        self.answer({})
