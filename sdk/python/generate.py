"""Makes the plain package from the one for asyncio. With --check it only says whether that was done."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "tranca"
BY_HAND = {"_io.py"}
WORDS = [
    (r"async (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Iterable|HTTPTransport|[A-Z]\w+)", r"\1"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\baiter_raw\b", "iter_raw"),
    (r"\baclose\b", "close"),
    (r"The package for asyncio\. The plain one beside it is made from this by generate\.py\.",
     "The plain package. All but _io.py is made from the one for asyncio by generate.py."),
]  # fmt: skip
HEAD = "# Made by generate.py from the file of this name in _async.\n"


def plain(text: str) -> str:
    for pattern, by in WORDS:
        text = re.sub(pattern, by, text)
    return HEAD + text


def main() -> int:
    stale = 0
    for source in sorted((PACKAGE / "_async").iterdir()):
        if source.name in BY_HAND or source.suffix != ".py":
            continue
        target, text = PACKAGE / "_sync" / source.name, plain(source.read_text())
        if target.exists() and target.read_text() == text:
            continue
        stale += 1
        if "--check" in sys.argv:
            print(f"{target} is not what {source} makes: run generate.py")
        else:
            target.write_text(text)
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
