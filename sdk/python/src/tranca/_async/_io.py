"""What differs between asyncio and plain Python. Its plain twin is written by hand."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, BinaryIO, Callable, TypeVar, Union

T = TypeVar("T")

Data = Union[str, bytes, BinaryIO, Iterable[bytes], AsyncIterable[bytes]]
"""What is sent: text, bytes, a file that was opened for reading bytes, or pieces of bytes."""

Callback = Callable[[str], Any]
"""Takes output as it comes; it may be a coroutine function."""

PIECE = 256 << 10


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a function that may block."""
    return await asyncio.to_thread(function, *args)


async def sleep(seconds: float) -> None:
    """Wait so long."""
    await asyncio.sleep(seconds)


async def call(callback: Callback, text: str) -> None:
    """Call somebody back."""
    answer = callback(text)
    if inspect.isawaitable(answer):
        await answer


async def pieces(data: Data) -> AsyncIterator[bytes]:
    """Return data piece by piece."""
    if isinstance(data, (str, bytes)):
        yield data.encode() if isinstance(data, str) else data
    elif hasattr(data, "read"):
        while piece := await in_thread(data.read, PIECE):
            yield piece
    elif isinstance(data, AsyncIterable):
        async for piece in data:
            yield piece
    else:
        for piece in data:
            yield piece


def content(data: Data) -> bytes | AsyncIterator[bytes]:
    """Return data as the body of a request: whole where it is there, so that its length is told ahead."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    return pieces(data)
