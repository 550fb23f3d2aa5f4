"""What ordinary programs do. Prints one line for each part that worked."""
import asyncio, ctypes, fcntl, hashlib, mmap, multiprocessing, os, resource, select
import signal, socket, sqlite3, ssl, struct, subprocess, sys, tempfile, threading, time

parts = []


def part(f):
    parts.append(f)
    return f


def square(x):
    return x * x


@part
def shells():
    out = subprocess.run(["sh", "-c", "echo a b | tr ' ' '\\n' | sort -r | head -1"], capture_output=True, text=True)
    assert out.stdout == "b\n", out
    assert subprocess.run("exit 3", shell=True).returncode == 3
    assert subprocess.run(["cat"], input=b"x" * 100000, capture_output=True).stdout == b"x" * 100000
    p = subprocess.Popen(["sleep", "60"], start_new_session=True)
    os.killpg(p.pid, signal.SIGTERM)
    assert p.wait() == -signal.SIGTERM


@part
def spawn_and_fork():
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)
    assert os.waitpid(pid, 0)[1] == 0
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    pid, master = os.forkpty() if os.path.exists("/dev/ptmx") else (None, None)
    if pid == 0:
        os.write(1, b"tty" if os.isatty(0) else b"none")
        os._exit(0)
    if pid:
        assert os.read(master, 10) == b"tty"
        os.waitpid(pid, 0)


@part
def threads():
    seen = []
    ts = [threading.Thread(target=seen.append, args=(i,)) for i in range(8)]
    [t.start() for t in ts], [t.join() for t in ts]
    assert sorted(seen) == list(range(8))


@part
def processes():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(10)) == [x * x for x in range(10)]
    ctx = multiprocessing.get_context("spawn")
    q = ctx.SimpleQueue()
    p = ctx.Process(target=q.put, args=(5,))
    p.start()
    assert q.get() == 5
    p.join()
    m = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    m.buf[0] = 1
    m.close(), m.unlink()


@part
def pidfds():
    p = subprocess.Popen(["sleep", "60"])
    fd = os.pidfd_open(p.pid)
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    assert select.select([fd], [], [], 30)[0] == [fd]
    p.wait()


@part
def event_loops():
    async def main():
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
        server.close()
        proc = await asyncio.create_subprocess_exec("echo", "hi", stdout=subprocess.PIPE)
        assert (await proc.communicate())[0] == b"hi\n"
        await asyncio.to_thread(time.sleep, 0)

    asyncio.run(main())


@part
def loopback():
    assert socket.getaddrinfo("localhost", 80)
    s = socket.create_server(("127.0.0.1", 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    c = socket.create_connection(s.getsockname())
    a, _ = s.accept()
    with tempfile.TemporaryFile() as f:
        f.write(b"y" * 70000)
        f.flush()
        assert os.sendfile(a.fileno(), f.fileno(), 0, 70000) > 0
    assert c.recv(1) == b"y"
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind(("127.0.0.1", 0))
    u.sendto(b"d", u.getsockname())
    assert u.recv(1) == b"d"
    fcntl.ioctl(c.fileno(), 0x541B, b"\0" * 4)
    assert socket.if_nametoindex("lo") == 1
    ssl.create_default_context()


@part
def pairs():
    a, b = socket.socketpair()
    a.sendall(b"z")
    assert b.recv(1) == b"z"


@part
def polling():
    r, w = os.pipe()
    e = select.epoll()
    e.register(r, select.EPOLLIN)
    os.write(w, b"1")
    assert e.poll(5)
    p = select.poll()
    p.register(r)
    assert p.poll(5000)
    libc = ctypes.CDLL(None, use_errno=True)
    for call, args in (("eventfd", (0, 0)), ("timerfd_create", (1, 0)), ("inotify_init1", (0,)),
                       ("memfd_create", (b"m", 0)), ("epoll_create1", (0,))):
        fd = getattr(libc, call)(*args)
        assert fd >= 0, (call, ctypes.get_errno())
        os.close(fd)


@part
def signals_and_timers():
    got = []
    signal.signal(signal.SIGALRM, lambda *_: got.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while not got:
        time.sleep(0.01)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.sigtimedwait([signal.SIGUSR1], 5).si_signo == signal.SIGUSR1


@part
def memory():
    m = mmap.mmap(-1, 1 << 20)
    m[:3] = b"abc"
    m.madvise(mmap.MADV_DONTNEED)
    m.resize(1 << 21)
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"\0" * 8192)
        f.flush()
        with mmap.mmap(f.fileno(), 0) as fm:
            fm[0] = 1
            fm.flush()
    data = bytearray(64 << 20)
    assert len(hashlib.sha256(data).digest()) == 32


@part
def files():
    with tempfile.TemporaryDirectory() as d:
        old = os.getcwd()
        os.chdir(d)
        with open("a", "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            fcntl.lockf(f, fcntl.LOCK_EX)
            f.write("text")
            os.fsync(f.fileno())
        os.link("a", "b"), os.symlink("a", "c"), os.mkfifo("p"), os.rename("b", "e")
        os.chmod("a", 0o600), os.utime("a", (1, 1)), os.truncate("a", 2)
        os.copy_file_range(os.open("a", os.O_RDONLY), os.open("g", os.O_WRONLY | os.O_CREAT), 2)
        os.statvfs("."), os.listdir("."), os.scandir(".").close(), os.access("a", os.R_OK)
        os.chdir(old)


@part
def database():
    with tempfile.TemporaryDirectory() as d:
        c = sqlite3.connect(d + "/db")
        c.execute("pragma journal_mode=wal")
        c.execute("create table t(x)")
        c.executemany("insert into t values(?)", [(i,) for i in range(100)])
        c.commit()
        assert c.execute("select sum(x) from t").fetchone() == (4950,)


@part
def limits_and_facts():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.getrusage(resource.RUSAGE_SELF)
    assert os.sched_getaffinity(0) and os.cpu_count()
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.nice(1), os.getloadavg(), os.uname(), os.urandom(8), os.getgroups()
    assert ctypes.CDLL(None).prctl(15, b"name", 0, 0, 0) == 0


@part
def name_lookup():
    import pwd
    pwd.getpwuid(0)


if __name__ == "__main__":
    import multiprocessing.shared_memory
    for f in parts:
        f()
        print("ok", f.__name__, flush=True)
    if "unix" in sys.argv:
        with multiprocessing.Manager() as m:
            d = m.dict()
            p = multiprocessing.Process(target=d.update, args=({"a": 1},))
            p.start(), p.join()
            assert d["a"] == 1
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.send(b"q")
        assert b.recv(1) == b"q"
        print("ok unix sockets", flush=True)
