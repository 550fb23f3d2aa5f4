# Made by generate.py from the file of this name in _async.
"""What is closed at the end of its block."""

from __future__ import annotations

from types import TracebackType


class Block:
    """Is closed at the end of its block, however that ends."""

    def close(self) -> None:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
