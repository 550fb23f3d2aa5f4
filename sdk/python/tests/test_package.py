"""The package itself."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tranca
from tranca._address import Address, default_socket

ROOT = Path(__file__).parent.parent


def test_the_plain_package_is_what_generate_makes() -> None:
    subprocess.run([sys.executable, ROOT / "generate.py", "--check"], check=True)


def test_both_packages_have_the_same_methods() -> None:
    for name in ("Client", "Sandbox", "Process", "Files", "Watch", "Run", "Connection"):
        plain, other = getattr(tranca, name), getattr(tranca, f"Async{name}")
        methods = [n for n, _ in inspect.getmembers(plain, callable) if not n.startswith("_")]
        assert methods == [n for n, _ in inspect.getmembers(other, callable) if not n.startswith("_")]
        for method in methods:
            a, b = inspect.signature(getattr(plain, method)), inspect.signature(getattr(other, method))
            assert list(a.parameters) == list(b.parameters)


def test_all_is_there_and_said_what_it_is() -> None:
    for name in tranca.__all__:
        assert hasattr(tranca, name)
        assert name.startswith("_") or inspect.getdoc(getattr(tranca, name)), name


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("TRANCA_SERVER", "TRANCA_KEY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_addresses(no_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Address.of("unix:///a/b.sock", None) == Address("/a/b.sock", "http://tranca", "")
    assert Address.of("b.sock", None) == Address("b.sock", "http://tranca", "")
    assert Address.of("https://h:1/", "k") == Address("", "https://h:1", "k")
    monkeypatch.setenv("TRANCA_SERVER", "http://h:2")
    monkeypatch.setenv("TRANCA_KEY", "secret")
    address = Address.of(None, None)
    assert address == Address("", "http://h:2", "secret")
    assert "secret" not in repr(address)
    for bad in ("ftp://h", "unix://", "http://", "http://u:p@h", "http://h?key=1", "http://[::1"):
        with pytest.raises(tranca.InvalidError):
            Address.of(bad, None)
    for key in ("a b", "a\n", "\u00fc"):
        with pytest.raises(tranca.InvalidError):
            Address.of("http://h", key)


def test_the_default_socket(no_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        assert default_socket() == "/run/tranca/tranca.sock"
    else:
        assert default_socket().endswith(f"/tranca-{os.getuid()}/tranca.sock")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(no_server))
    assert default_socket() == f"{no_server}/tranca/tranca.sock"


def test_a_default_socket_of_somebody_else_is_refused(no_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(no_server))
    folder = no_server / "tranca"
    tranca.Client().close()
    folder.mkdir(mode=0o700)
    tranca.Client().close()
    folder.chmod(0o777)
    with pytest.raises(tranca.RefusedError, match="others may write"):
        tranca.Client()
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(tranca.RefusedError, match="somebody else"):
        tranca.Client()
    folder.rmdir()
    folder.symlink_to(no_server)
    with pytest.raises(tranca.RefusedError):
        tranca.Client()


# httpcore leaves the socket of a failed connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_nobody_answers(no_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(no_server))
    with pytest.raises(tranca.ServerUnreachableError, match=r"tranca\.sock.*tranca serve") as caught:
        tranca.run_python("print(1)")
    assert caught.value.code == "unavailable"
    with pytest.raises(tranca.UnavailableError), tranca.Sandbox():
        pass
    del caught
    gc.collect()


def test_a_sandbox_that_is_not_made_says_so() -> None:
    sandbox = tranca.Sandbox(client=tranca.Client("unix:///nowhere"))
    with pytest.raises(tranca.InvalidError, match="not made yet"):
        sandbox.run_python("1")
