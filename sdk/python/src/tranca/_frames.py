"""Streams of events as frames: a byte that says what it is, a 32-bit length, and so many bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from ._errors import ProtocolError, error_of
from ._fields import Fields

TYPE_FRAMES = "application/vnd.tranca.frames"
MAX_FRAME = 16 << 20
_HEADER = 5


@dataclass(frozen=True)
class OutputEvent:
    """What a program has written."""

    stderr: bool
    data: bytes


@dataclass(frozen=True)
class JSONEvent:
    """Any other event."""

    type: str
    fields: Fields


AnyEvent = Union[OutputEvent, JSONEvent]


class FrameDecoder:
    """Makes events of the pieces in which a stream arrives.

    Nobody's word on a length makes it take memory: it holds what came, and at most one frame of it.
    """

    def __init__(self) -> None:
        self._buf = bytearray()

    def feed(self, data: bytes) -> Iterator[AnyEvent]:
        """Take a piece and give the events that are whole now. Read it to its end."""
        self._buf += data
        at = 0
        try:
            while (size := self._size(at)) is not None:
                kind, payload = self._buf[at], bytes(self._buf[at + _HEADER : at + size])
                at += size
                yield _event(kind, payload)
        finally:
            del self._buf[:at]

    def end(self) -> None:
        """Say that the stream has ended. A frame that is not whole is a ProtocolError."""
        if self._buf:
            raise ProtocolError("the stream of events ends within a frame")

    def _size(self, at: int) -> int | None:
        """Return the size of the frame that begins at a place, or None while it is not whole."""
        if len(self._buf) - at < _HEADER:
            return None
        length = int.from_bytes(self._buf[at + 1 : at + _HEADER], "big")
        if length > MAX_FRAME:
            raise ProtocolError(f"a frame of {length} bytes: at most {MAX_FRAME}")
        size = _HEADER + length
        return size if len(self._buf) - at >= size else None


def _event(kind: int, payload: bytes) -> AnyEvent:
    if kind == ord("o"):
        return OutputEvent(False, payload)
    if kind == ord("e"):
        return OutputEvent(True, payload)
    if kind != ord("j"):
        raise ProtocolError(f"a frame of kind {kind}")
    try:
        fields = Fields(json.loads(payload), "event")
        event = JSONEvent(fields.text("type"), fields)
        problem = fields.maybe("error") if event.type == "error" else None
        error = None if problem is None else error_of(problem)
    except ValueError as err:
        raise ProtocolError(f"an event that can't be read: {err}") from err
    if error is not None:
        raise error
    return event
