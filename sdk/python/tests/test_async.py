"""The package for asyncio, against a real server."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tranca
from tranca import AsyncClient, AsyncSandbox

from .conftest import Server

LOOP = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.01)"


def test_runs(server: Server) -> None:
    async def main() -> None:
        async with AsyncSandbox(metadata={"k": "v"}) as s:
            assert (await s.run_python("print(6*7)")).stdout == "42\n"
            assert [i.id for i in await AsyncSandbox.list({"k": "v"})] == [s.id]
            heard: list[str] = []

            async def hear(text: str) -> None:
                await asyncio.sleep(0)
                heard.append(text)

            await s.run("echo one; echo two >&2", on_stdout=hear, on_stderr=heard.append)
            assert sorted(heard) == ["one\n", "two\n"]
            async with s.stream(code="print(1)") as run:
                assert [o.data async for o in run] == [b"1\n"]
            assert run.result.exit.success
            again = await AsyncSandbox.connect(s.id)
            await again.detach()
        with pytest.raises(tranca.ClosedError):
            await s.run_python("1")

    asyncio.run(main())


def test_many_at_once(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient() as client:
            results = await asyncio.gather(*(client.run_python(f"print({n})") for n in range(20)))
        assert [r.stdout for r in results] == [f"{n}\n" for n in range(20)]

    asyncio.run(main())


def test_cancelling_ends_the_run(server: Server) -> None:
    async def main() -> None:
        async with AsyncSandbox() as s:
            up = asyncio.Event()
            task = asyncio.create_task(s.run_python(LOOP, on_stdout=lambda _: up.set()))
            await up.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Runs of one sandbox wait for each other.
            assert (await s.run_python("print('free')", timeout=20)).stdout == "free\n"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(s.run_python(LOOP), 0.5)
            assert (await s.run_python("print('free')", timeout=20)).stdout == "free\n"

    asyncio.run(main())


def test_processes(server: Server) -> None:
    async def main() -> None:
        async with AsyncSandbox() as s:
            p = await s.start(["cat"], stdin=True, tag="cat")

            async def words() -> AsyncIterator[bytes]:
                for word in (b"one ", b"two "):
                    await asyncio.sleep(0.01)
                    yield word

            await p.write(words())
            await p.write(io.BytesIO(b"three"), close=True)
            assert b"".join([o.data async for o in p]) == b"one two three"
            assert (await p.wait()).success
            shell = await s.start(["sh"], terminal=(24, 80))
            await shell.write("stty size; exit 3\n")
            assert b"24 80" in b"".join([o.data async for o in shell])
            assert (await shell.wait()).code == 3
            sleeper = await s.start(["sleep", "100"])
            with pytest.raises(tranca.RequestTimeoutError):
                await sleeper.wait(0.05)
            await sleeper.kill()
            assert (await (await s.process(sleeper.id)).wait()).signal == 9

    asyncio.run(main())


def test_files(server: Server, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSandbox() as s:
            (tmp_path / "up").write_bytes(bytes(range(256)) * 4096)
            assert await s.files.upload(tmp_path / "up", "x") == 1 << 20
            assert await s.files.download("x", tmp_path / "down") == 1 << 20
            assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
            await s.files.mkdir("dir")
            async with s.files.watch("dir") as watch:
                await s.files.write("dir/y", "1")
                async for event in watch:
                    assert event == tranca.FileEvent("created", "y")
                    break
            packed = b"".join([piece async for piece in s.files.archive("dir")])
            await s.files.mkdir("copy")
            await s.files.extract(packed, "copy")
            assert len(await s.files.list("copy", depth=2)) >= 1

    asyncio.run(main())


def test_a_port(server: Server) -> None:
    code = (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 80 + 8000))\n"
        "print('up', flush=True)\n"
        "c, _ = s.accept()\n"
        "data = b''\n"
        "while piece := c.recv(65536): data += piece\n"
        "c.sendall(data[::-1])\n"
    )

    async def main() -> None:
        async with AsyncSandbox() as s:
            p = await s.start(["python3", "-c", code])
            async for _ in p:
                break
            sent = bytes(n % 251 for n in range(1 << 20))
            async with await s.dial(8080) as c:
                await c.send(sent)
                await c.close_write()
                got = b""
                while piece := await c.receive():
                    got += piece
            assert got == sent[::-1]

    asyncio.run(main())


def test_nobody_answers(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(f"unix://{tmp_path}/none") as client:
            with pytest.raises(tranca.ServerUnreachableError, match="tranca serve"):
                await client.info()

    asyncio.run(main())
