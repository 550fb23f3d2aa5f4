# Made by generate.py from the file of this name in _async.
"""Requests to the server, and its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Union

import httpx

from .._address import Address, start_hint, unreachable
from .._errors import (
    ClosedError,
    InvalidError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnreachableError,
    TrancaError,
    error_of_answer,
)
from .._fields import Fields
from .._frames import TYPE_FRAMES, AnyEvent, FrameDecoder
from .._version import __version__

Params = Mapping[str, Union[str, int, "list[str]", None]]
Content = Union[bytes, Iterator[bytes]]

_MAX_PROBLEM = 1 << 20
_EVENTS = {"Accept": TYPE_FRAMES}
_SILENCE = 60.0  # a server says every few seconds that a stream is alive


class HTTP:
    """The connections to one server. Any number of streams may be open at once."""

    def __init__(self, address: Address, timeout: float) -> None:
        # A stream holds a connection as long as it lives, so their number is the caller's.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=30)
        transport = httpx.HTTPTransport(uds=address.socket or None, limits=limits)
        headers = {"User-Agent": f"tranca-python/{__version__}"}
        if address.key:
            headers["Authorization"] = f"Bearer {address.key}"
        self._address = address
        self._timeout = timeout
        self._client = httpx.Client(base_url=address.url, transport=transport, headers=headers)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def open(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        content: Content | None = None,
        headers: Mapping[str, str] | None = None,
        extra: float | None = None,
    ) -> httpx.Response:
        """Send a request and return its answer with the body still to be read. The caller closes it.

        Each wait for the server is bounded by the usual time and ``extra`` seconds, or, where that is None, not.
        """
        all_headers = dict(headers or {})
        if body is not None:
            content, all_headers["Content-Type"] = _encode(body), "application/json"
        request = self._client.build_request(
            method,
            path,
            params={k: v for k, v in (params or {}).items() if v is not None},
            content=content,
            headers=all_headers,
            timeout=self._bounds(extra),
        )
        if self._client.is_closed:
            raise ClosedError("the connections to the server were closed", fix="make a new client")
        try:
            response = self._client.send(request, stream=True)
        except httpx.TransportError as err:
            raise self._failure(err) from err
        if response.status_code < 300:
            return response
        try:
            raise self._problem(response)
        finally:
            response.close()

    def fields(self, method: str, path: str, **options: Any) -> Fields:
        """Send a request and return the object that is its answer."""
        response = self.open(method, path, **{"extra": 0, **options})
        try:
            text = b"".join([piece for piece in self.pieces(response)])
        finally:
            response.close()
        try:
            return Fields(json.loads(text), "answer")
        except ValueError as err:
            raise ProtocolError(f"an answer that can't be read: {err}") from err

    def nothing(self, method: str, path: str, **options: Any) -> None:
        """Send a request whose answer says nothing."""
        response = self.open(method, path, **{"extra": 0, **options})
        try:
            for _ in self.pieces(response):
                pass
        finally:
            response.close()

    def events(self, method: str, path: str, **options: Any) -> Events:
        """Send a request and return the stream of events that is its answer."""
        return Events(self, self.open(method, path, headers=_EVENTS, extra=_SILENCE, **options))

    def pieces(self, response: httpx.Response) -> Iterator[bytes]:
        """Return the body of an answer as it comes."""
        try:
            for piece in response.iter_raw():
                yield piece
        except httpx.TransportError as err:
            raise self._failure(err) from err

    def _bounds(self, extra: float | None) -> httpx.Timeout:
        if extra is None:
            return httpx.Timeout(None, connect=self._timeout)
        return httpx.Timeout(self._timeout, read=self._timeout + extra, pool=None)

    def _problem(self, response: httpx.Response) -> TrancaError:
        body = b""
        for piece in self.pieces(response):
            body += piece
            if len(body) > _MAX_PROBLEM:
                break
        return error_of_answer(response.status_code, response.headers, body)

    def _failure(self, err: httpx.TransportError) -> TrancaError:
        if isinstance(err, httpx.ConnectError):
            return ServerUnreachableError(unreachable(self._address, err), fix=start_hint(self._address))
        if isinstance(err, httpx.TimeoutException):
            return RequestTimeoutError(f"the server did not answer in time: {type(err).__name__}")
        return ServerUnreachableError(f"the connection broke off: {err or type(err).__name__}")


class Events:
    """A stream of events that is open."""

    def __init__(self, http: HTTP, response: httpx.Response) -> None:
        self._response = response
        self._events = self._read(http)

    def __iter__(self) -> Iterator[AnyEvent]:
        return self._events

    def next(self) -> AnyEvent | None:
        """Return the next event, or None after the last."""
        for event in self._events:
            return event
        return None

    def close(self) -> None:
        """Close the stream, which ends at the server what lives by it. Idempotent."""
        self._response.close()

    def _read(self, http: HTTP) -> Iterator[AnyEvent]:
        decoder = FrameDecoder()
        for piece in http.pieces(self._response):
            for event in decoder.feed(piece):
                yield event
        decoder.end()


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as err:
        raise InvalidError(f"what can't be sent: {err}") from err
