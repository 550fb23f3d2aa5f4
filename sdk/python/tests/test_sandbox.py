"""The life of a sandbox."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import tranca
from tranca import Narrow, Sandbox

from .conftest import Server, wait_for


def test_what_is_known_of_it(server: Server) -> None:
    with Sandbox(ttl=120, idle_timeout=60, metadata={"job": "7", "who": "ü"}, narrow=Narrow(processes=20)) as s:
        assert s.info.metadata == {"job": "7", "who": "ü"}
        assert s.info.idle_timeout_ms == 60_000
        assert s.info.created is not None
        assert s.info.expires is not None
        assert abs(s.info.expires - s.info.created - timedelta(seconds=120)) < timedelta(seconds=5)
        assert s.info.isolation == "process"
        assert s.refresh().id == s.id
        later = s.keep_alive(1000)
        assert later.expires is not None
        assert later.expires > s.info.created + timedelta(seconds=500)
        assert s.id in repr(s)
        limits = s.run_python("1").limits
        assert limits is not None
        assert limits.processes == 20
    with pytest.raises(tranca.ClosedError):
        s.run_python("1")
    s.destroy()
    with pytest.raises(tranca.GoneError, match="destroyed"):
        Sandbox.connect(s.id)


def test_one_that_was_let_go_can_not_be_destroyed(server: Server) -> None:
    with Sandbox() as s:
        s.detach()
    with pytest.raises(tranca.ClosedError):
        s.destroy()
    Sandbox.connect(s.id).destroy()


def test_it_is_found_again_and_lives_on(server: Server) -> None:
    made = Sandbox.create(metadata={"k": "v"})
    made.files.write("x", "1")
    made.detach()
    with Sandbox.connect(made.id) as again:
        assert again.files.read("x") == b"1"
        assert again.info.metadata == {"k": "v"}
    with Sandbox() as other:
        assert [s.id for s in Sandbox.list()] == [made.id, other.id]
        assert [s.id for s in Sandbox.list({"k": "v"})] == [made.id]
        assert Sandbox.list({"k": "w"}) == []
    Sandbox.connect(made.id).destroy()
    assert Sandbox.list() == []


def test_pages(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tranca._sync._sandbox._PAGE", 2)
    with tranca.Client() as client:
        made = [Sandbox.create(client=client) for _ in range(5)]
        assert [s.id for s in client.sandboxes()] == [s.id for s in made]
        for s in made:
            s.destroy()
        assert client.sandboxes() == []


def test_its_time_is_over(server: Server) -> None:
    s = Sandbox.create(ttl=0.5)
    try:
        wait_for(lambda: Sandbox.list() == [])
        with pytest.raises(tranca.GoneError, match="time"):
            s.run_python("1")
        with pytest.raises(tranca.GoneError):
            Sandbox.connect(s.id)
    finally:
        s.destroy()


def test_the_environment(sandbox: Sandbox) -> None:
    sandbox.set_env({"COLOR": "ü", "OTHER": "1"})
    assert sandbox.run("echo $COLOR$OTHER").stdout == "ü1\n"
    sandbox.set_env(unset=["OTHER"])
    assert sandbox.run("echo $COLOR$OTHER").stdout == "ü\n"
    assert sandbox.start("echo $COLOR", env={"COLOR": "red"}).wait().success


def test_ids_that_are_none(server: Server) -> None:
    for bad in ("i" + "0" * 20, "../../etc", "..", "%2e%2e", "a/b", "x?y", "ü", "i\0", " "):
        with pytest.raises((tranca.NotFoundError, tranca.InvalidError, tranca.GoneError)):
            Sandbox.connect(bad)


# httpcore leaves the socket of a failed connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_the_first_error_is_the_one_that_is_told(server: Server) -> None:
    def fail() -> None:
        with Sandbox():
            server.kill()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_key(program: str, home: Path, folder: Path) -> None:
    key = "k" * 40
    (folder / "key").write_text(key)
    (folder / "key").chmod(0o600)
    server = Server(program, home, folder, "--listen", "127.0.0.1:0", "--key-file", str(folder / "key"))
    try:
        port = listening(server)
        url = f"http://127.0.0.1:{port}"
        with tranca.Client(url, key) as client, Sandbox(client=client) as s:
            assert s.run_python("print(1)").stdout == "1\n"
        for wrong in ("", "k" * 39 + "l"):
            with tranca.Client(url, wrong) as client, pytest.raises(tranca.UnauthorizedError) as err:
                client.info()
            assert key not in str(err.value)
    finally:
        server.stop()


def listening(server: Server) -> int:
    """Return the port at which a server listens, which is a moment after it does at its socket."""
    found: list[int] = []

    def look() -> bool:
        rows = Path(f"/proc/{server.process.pid}/net/tcp").read_text().splitlines()[1:]
        own = {fd[8:-1] for fd in server.fds() if fd.startswith("socket:")}
        fields = [row.split() for row in rows]
        found[:] = [int(f[1].split(":")[1], 16) for f in fields if f[3] == "0A" and f[9] in own]
        return len(found) == 1

    wait_for(look)
    return found[0]


def test_times_are_of_now(sandbox: Sandbox) -> None:
    assert sandbox.info.created is not None
    assert abs(datetime.now(timezone.utc) - sandbox.info.created) < timedelta(minutes=5)
