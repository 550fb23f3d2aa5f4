"""A real server for each test: TRANCA_BIN, or bin/tranca of the tree that this is in."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tranca

TREE = Path(__file__).resolve().parents[3]
POLICY = """version: 1
floor: process
limits:
  memory: 512MiB
  file_size: 256MiB
  disk: {size: 256MiB}
"""


class Server:
    """One `tranca serve` in a folder of its own."""

    def __init__(self, program: str, home: Path, folder: Path, *args: str) -> None:
        self.socket = str(folder / "s" / "tranca.sock")
        self.args = [program, "serve", "--socket", self.socket, *args]
        self.home = home
        self.log = folder / "log"
        self.start()

    @property
    def address(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.args, env=environment(self.home), stderr=log, stdout=log)
        wait_for(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def connections(self) -> int:
        """Return how many connections are open, apart from what else the server holds."""
        return sum(1 for fd in self.fds() if fd.startswith("socket:"))

    def fds(self) -> list[str]:
        folder = Path(f"/proc/{self.process.pid}/fd")
        found = []
        for fd in folder.iterdir():
            try:
                found.append(os.readlink(fd))
            except FileNotFoundError:
                continue
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop it as an operator does, which leaves nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0, self.log.read_text()
            assert not Path(self.socket).exists()


def environment(home: Path) -> dict[str, str]:
    """Return the environment of programs that must find nothing of this user's settings."""
    keep = {name: os.environ[name] for name in ("PATH", "TRANCA_CGROUP") if name in os.environ}
    return {**keep, "HOME": str(home), "LANG": "C.UTF-8"}


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so. The time is only for what never comes."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def program() -> str:
    path = os.environ.get("TRANCA_BIN") or str(TREE / "bin" / "tranca")
    assert os.access(path, os.X_OK), f"{path} is not there: make build, or set TRANCA_BIN"
    return path


@pytest.fixture(scope="session")
def home(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder with a policy, which waives what the host can't enforce for this user."""
    home = tmp_path_factory.mktemp("home")
    policy = home / ".config" / "tranca" / "policy.yaml"
    policy.parent.mkdir(parents=True)
    policy.write_text(POLICY)
    again = [program, "run", "-c", "1"]
    tried = subprocess.run(again, env=environment(home), capture_output=True, text=True, check=False)
    if tried.returncode:
        waived = sorted(set(re.findall(r"([a-z_.]+)\n    asked:", tried.stderr)))
        assert waived, tried.stderr
        policy.write_text(POLICY + f"waive: [{', '.join(waived)}]\n")
        subprocess.run(again, env=environment(home), check=True)
    return home


@pytest.fixture
def folder() -> Iterator[Path]:
    # The path of a socket is short, and pytest's folders are not.
    path = Path(tempfile.mkdtemp(prefix="tranca-sdk-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def server(program: str, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server(program, home, folder)
    monkeypatch.setenv("TRANCA_SERVER", server.address)
    monkeypatch.delenv("TRANCA_KEY", raising=False)
    try:
        yield server
        server.stop()
    finally:
        if server.process.poll() is None:
            server.kill()


@pytest.fixture
def sandbox(server: Server) -> Iterator[tranca.Sandbox]:
    with tranca.Sandbox() as sandbox:
        yield sandbox
