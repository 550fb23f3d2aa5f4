"""Files of a sandbox."""

from __future__ import annotations

import hashlib
import io
import os
import resource
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import tranca
from tranca import Sandbox

from .conftest import wait_for


def test_all_there_is_to_do(sandbox: Sandbox) -> None:
    f = sandbox.files
    f.mkdir("a")
    assert f.write("a/b.txt", "ü\n", mode=0o640) == 3
    assert f.read_text("a/b.txt") == "ü\n"
    assert f.read("/work/a/b.txt") == "ü\n".encode()
    info = f.stat("a/b.txt")
    assert (info.name, info.path, info.type, info.size, info.mode) == ("b.txt", "/work/a/b.txt", "file", 3, 0o640)
    assert info.modified is not None
    assert b"".join(f.stream("a/b.txt", offset=2)) == b"\n"
    assert f.mkdir("c/d").type == "directory"
    assert f.move("a/b.txt", "c/d/e").path.endswith("c/d/e")
    assert [i.path for i in f.list(depth=3)] == ["/work/a", "/work/c", "/work/c/d", "/work/c/d/e"]
    assert [i.name for i in f.list()] == ["a", "c"]
    assert f.exists("c")
    f.remove("c")
    f.remove("c")
    assert not f.exists("c")
    sandbox.run("ln -s /nowhere link")
    assert f.stat("link").link_target == "/nowhere"


def test_names_that_are_no_plain_text(sandbox: Sandbox) -> None:
    for name in ("ü", "a b", "a&b=c?d#e%2f", "+", "new\nline", "'\""):
        sandbox.files.write(name, name)
        assert sandbox.files.read_text(name) == name
        sandbox.files.remove(name)
    sandbox.run_python("open(b'bad\\xff', 'w').write('x')")
    (bad,) = sandbox.files.list()
    assert bad.path_bytes == b"/work/bad\xff"
    assert bad.name == "bad\ufffd"


def test_errors(sandbox: Sandbox) -> None:
    f = sandbox.files
    f.mkdir("there")
    with pytest.raises(tranca.NotFoundError):
        f.read("nowhere")
    with pytest.raises(tranca.ExistsError):
        f.mkdir("there")
    with pytest.raises(tranca.InvalidError):
        f.read("there")
    with pytest.raises(tranca.InvalidError):
        f.write("there", "x")
    with pytest.raises(tranca.InvalidError):
        f.read("a\0b")
    with pytest.raises(tranca.InvalidError):
        f.list(depth=0)
    with pytest.raises((tranca.RefusedError, tranca.InvalidError)):
        f.write("/etc/passwd", "x")
    with pytest.raises(tranca.NoSpaceError):
        f.write("large", iter([bytes(1 << 20)] * 300))
    f.remove("large")


def pattern(path: Path, size: int) -> str:
    """Make a file of so many bytes, and return its digest."""
    digest, block = hashlib.sha256(), os.urandom(1 << 20)
    with path.open("wb") as file:
        for n in range(size >> 20):
            piece = block[n:] + block[:n]
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_large_files_in_constant_memory(sandbox: Sandbox, tmp_path: Path) -> None:
    size = 128 << 20
    want = pattern(tmp_path / "up", size)
    (tmp_path / "up").chmod(0o750)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen: list[int] = []
    assert sandbox.files.upload(tmp_path / "up", "big", progress=seen.append) == size
    assert seen[-1] == size
    assert seen == sorted(seen)
    assert sandbox.files.stat("big").mode == 0o750
    assert sandbox.files.download("big", tmp_path / "down", progress=seen.append) == size
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 << 10, f"{grown} KiB"
    assert digest(tmp_path / "down") == want


def test_transfers_go_on(sandbox: Sandbox, tmp_path: Path) -> None:
    size = 4 << 20
    want = pattern(tmp_path / "up", size)
    whole = (tmp_path / "up").read_bytes()
    sandbox.files.write("part", whole[: 1 << 20])
    seen: list[int] = []
    assert sandbox.files.upload(tmp_path / "up", "part", resume=True, progress=seen.append) == size
    assert seen[0] > 1 << 20
    (tmp_path / "down").write_bytes(whole[: 3 << 20])
    seen.clear()
    assert sandbox.files.download("part", tmp_path / "down", resume=True, progress=seen.append) == size
    assert seen[0] > 3 << 20
    assert digest(tmp_path / "down") == want


def test_a_transfer_that_breaks_is_made_again(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tranca._sync import _files
    from tranca._sync._http import HTTP

    want = pattern(tmp_path / "up", 4 << 20)
    broken: list[str] = []
    real_told, real_pieces = _files._told, HTTP.pieces

    def told(file: io.BufferedReader, progress: object) -> Iterator[bytes]:
        for n, piece in enumerate(real_told(file, None)):
            if n == 5 and len(broken) < 2:
                broken.append("up")
                raise tranca.ServerUnreachableError("broken by the test")
            yield piece

    def pieces(self: HTTP, response: object) -> Iterator[bytes]:
        for n, piece in enumerate(real_pieces(self, response)):  # type: ignore[arg-type]
            if n == 5 and len(broken) < 4:
                broken.append("down")
                raise tranca.ServerUnreachableError("broken by the test")
            yield piece

    monkeypatch.setattr(_files, "_told", told)
    sandbox.files.upload(tmp_path / "up", "x")
    monkeypatch.setattr(HTTP, "pieces", pieces)
    sandbox.files.download("x", tmp_path / "down")
    assert broken == ["up", "up", "down", "down"]
    assert digest(tmp_path / "down") == want


def test_archives(sandbox: Sandbox, tmp_path: Path) -> None:
    f = sandbox.files
    f.mkdir("tree/a")
    f.write("tree/a/deep", "1")
    f.write("tree/b", "2")
    packed = b"".join(f.archive("tree"))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = {m.name.rstrip("/").removeprefix("./") for m in tar.getmembers()}
    assert {"a/deep", "b"} <= {n.removeprefix("tree/") for n in names}
    f.mkdir("copy")
    assert f.extract(packed, "copy") > 0
    found = [i.path for i in f.list("copy", depth=3) if i.type == "file"]
    assert sorted(p.rsplit("/", 1)[1] for p in found) == ["b", "deep"]
    with (tmp_path / "x.tar").open("wb") as file:
        file.write(packed)
    f.mkdir("again")
    with (tmp_path / "x.tar").open("rb") as file:
        f.extract(file, "again")
    assert len(f.list("again", depth=3)) == len(f.list("copy", depth=3))


def test_an_archive_that_leads_out_is_refused(sandbox: Sandbox) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("../../tmp/out")
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"x"))
    sandbox.files.mkdir("into")
    with pytest.raises((tranca.InvalidError, tranca.RefusedError)):
        sandbox.files.extract(out.getvalue(), "into")
    assert not sandbox.files.exists("/tmp/out")


def test_watch(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("dir/sub")
    with sandbox.files.watch("dir", recursive=True) as watch:
        sandbox.files.write("dir/sub/x", "1")
        seen = []
        for event in watch:
            seen.append((event.kind, event.path))
            if event == tranca.FileEvent("written", "sub/x"):
                break
        assert ("created", "sub/x") in seen
        sandbox.files.remove("dir/sub/x")
        for event in watch:
            if event.kind == "removed":
                assert event.path == "sub/x"
                break
    with pytest.raises(tranca.NotFoundError), sandbox.files.watch("nowhere"):
        pass


def test_a_watch_ends_with_its_folder(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("dir")
    with sandbox.files.watch("dir") as watch:
        sandbox.files.remove("dir")
        with pytest.raises(tranca.GoneError):
            for _ in watch:
                pass
    wait_for(lambda: not sandbox.files.exists("dir"))
