"""What differs between asyncio and plain Python. Its twin for asyncio is written by hand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Callable, TypeVar, Union

T = TypeVar("T")

Data = Union[str, bytes, BinaryIO, Iterable[bytes]]
"""What is sent: text, bytes, a file that was opened for reading bytes, or pieces of bytes."""

Callback = Callable[[str], Any]
"""Takes output as it comes."""

PIECE = 256 << 10


def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may block."""
    return function(*args)


def sleep(seconds: float) -> None:
    """Wait so long."""
    time.sleep(seconds)


def call(callback: Callback, text: str) -> None:
    """Call somebody back."""
    callback(text)


def pieces(data: Data) -> Iterator[bytes]:
    """Return data piece by piece."""
    if isinstance(data, (str, bytes)):
        yield data.encode() if isinstance(data, str) else data
    elif hasattr(data, "read"):
        while piece := data.read(PIECE):
            yield piece
    else:
        yield from data


def content(data: Data) -> bytes | Iterator[bytes]:
    """Return data as the body of a request: whole where it is there, so that its length is told ahead."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    return pieces(data)
