"""What is closed at the end of its block."""

from __future__ import annotations

from types import TracebackType


class AsyncBlock:
    """Is closed at the end of its block, however that ends."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
