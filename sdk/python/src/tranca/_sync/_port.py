# Made by generate.py from the file of this name in _async.
"""Connections to what listens in a sandbox."""

from __future__ import annotations

import socket
from typing import Any

import httpx

from .._errors import ProtocolError, ServerUnreachableError, UnsupportedError
from ._block import Block

UPGRADE = {"Connection": "Upgrade", "Upgrade": "tranca-port"}


class Connection(Block):
    """A connection to a port of a sandbox. One may receive while another sends."""

    def __init__(self, response: httpx.Response) -> None:
        stream = response.extensions.get("network_stream")
        if response.status_code != 101 or stream is None:
            raise ProtocolError(f"HTTP {response.status_code} where a connection should begin")
        self._response = response
        self._stream: Any = stream

    def __enter__(self) -> Connection:
        return self

    def receive(self, size: int = 65536) -> bytes:
        """Return what has come, at most so many bytes, or nothing after the other end has closed."""
        try:
            data: bytes = self._stream.read(size)
        except (OSError, httpx.TransportError) as err:
            raise ServerUnreachableError(f"the connection broke off: {err}") from err
        return data

    def send(self, data: bytes) -> None:
        """Send all of the data."""
        try:
            self._stream.write(data)
        except (OSError, httpx.TransportError) as err:
            raise ServerUnreachableError(f"the connection broke off: {err}") from err

    def close_write(self) -> None:
        """Tell the other end that nothing more comes."""
        if self._stream.get_extra_info("ssl_object") is not None:
            raise UnsupportedError("TLS can't close one direction alone", fix="use close")
        self._stream.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both directions. Idempotent."""
        self._response.close()
