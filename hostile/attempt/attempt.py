"""Runs one hostile program: the twin of the interpreter in Go.

It is given to python3 >= 3.8 on standard input and needs nothing beyond the
standard library. docs/PROBES.md describes the acts. What only some of them need
is imported there, so that an interpreter that lacks it can do the others.
"""

import base64
import errno
import json
import os
import select
import signal
import sys
import time
import warnings

PROGRAM = "@PROGRAM@"

PREFIX = "\x1eprobe "
MAX_VALUE = 256 << 10
MAX_TEXT = 64 << 10
MAX_FOUND = 4096
PAGE = 4096
LONGEST = 600.0
LOOSE = 60.0
CONNECTING = 3.0
ANSWERING = 0.3
CALM = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Words(Exception):
    """An outcome that has no error number."""


class Interp:
    """One process of a program."""

    def __init__(self, program):
        self.calls = program.get("calls") or {}
        self.mark = program.get("mark", "")
        self.out = 1
        self.partial = False  # what was written last may not have ended its line
        self.result = -1  # where the last line goes, to the parent
        self.single = False
        self.until = time.monotonic() + LONGEST
        self.number = 0
        self.told = {}

    # Steps and lines.

    def steps(self, steps, number, inside):
        """Does a list. Inside another step all bear that one's number."""
        i = 0
        while i < len(steps):
            if not inside:
                number = i
            aside = calls_aside(steps[i:])
            if not aside:
                self.step(steps[i], number, inside)
                i += 1
                continue
            for j, line in enumerate(self.aside(aside)):
                line["step"] = number if inside else i + j
                self.report(aside[j], line, inside)
            i += len(aside)

    def step(self, s, number, inside):
        """Does one step and tells of it; of what may be the end, before it happens."""
        self.number = number
        if not s.get("child") and s["do"] in ("exit", "raise"):
            self.report(s, self.line(s), inside)
            self.do(s)
            return
        line = self.do(s)
        line["step"] = self.number = number
        self.report(s, line, inside)

    def do(self, s):
        """Does one step, in a process of its own if it says so."""
        if s.get("child"):
            return self.child(s)
        act = globals().get("do_" + s["do"])
        if act is None:
            return self.line(s, error="no such act")
        try:
            value = act(self, s)
        except Partly as e:
            return self.line(s, e.value, error_text(e.error))
        except Exception as e:  # whatever it is, the next step is done
            return self.line(s, error=error_text(e))
        return self.line(s, value)

    def line(self, s, value=None, error=""):
        line = {"step": self.number}
        if s.get("as"):
            line["as"] = s["as"]
        line["ok"] = not error
        if error:
            line["errno"] = error
        text = quote(value)
        if text:
            line["value"] = text
        return line

    def report(self, s, line, inside):
        """Inside another step, tells of one again only when it brought something else."""
        if inside:
            line.setdefault("as", s["do"])
            last, times = self.told.get(id(s), (None, 0))
            if last == line or times >= 1000:
                return
            self.told[id(s)] = (line, times + 1)
        self.tell(line)

    def tell(self, line):
        text = ("\n" if self.partial else "") + PREFIX + json.dumps(line) + "\n"
        self.partial = False
        if self.out >= 0:
            try:
                write_all(self.out, text.encode())
            except OSError:
                pass  # a reader that is gone is no reason to end

    def answer(self, line):
        """Hands the last line to the parent."""
        if self.result < 0:
            return
        try:
            write_all(self.result, json.dumps(line).encode())
        except OSError:
            pass
        os.close(self.result)

    # Processes.

    def limit(self):
        """Has this process killed when its time is over, whatever it does then."""
        left = max(self.until - time.monotonic(), 0.001)
        numbers = {"x86_64": (222, 223), "aarch64": (107, 110)}.get(os.uname().machine)
        try:
            import ctypes
            import struct

            event = struct.pack("=Qii48x", 0, signal.SIGKILL, 0)
            timer = ctypes.c_int()
            libc().syscall(ctypes.c_long(numbers[0]), ctypes.c_long(1), event, ctypes.byref(timer))
            when = struct.pack("=qqqq", 0, 0, int(left), int(left % 1 * 1e9))
            if libc().syscall(ctypes.c_long(numbers[1]), ctypes.c_long(timer.value), ctypes.c_long(0), when, None) == 0:
                return
        except Exception:  # no ctypes, no such architecture
            pass
        signal.alarm(int(left) + 1)

    def start(self, steps, session=False, close=False, single=False, until=None, apart=None):
        """Runs the steps in a child; returns its pid and where its last line comes."""
        result, end = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(result)
            os.close(end)
            raise
        if pid == 0:
            try:
                os.close(result)
                self.become(end, steps, session, close, single, until, apart)
            finally:
                os._exit(1)
        os.close(end)
        if apart:
            try:
                apart.settled()
            except Words:
                os.close(result)
                wait(pid)
                raise
        self.partial = True  # whatever it writes
        return pid, result

    def become(self, end, steps, session, close, single, until, apart):
        """Is the child. What it leaves by double fork has no parent here."""
        self.result, self.single = end, single
        if until is not None:
            self.until = min(self.until, until)
        if session:
            os.setsid()
            if os.fork() != 0:
                os._exit(0)
        if apart:
            apart.enter()
        self.limit()
        if close:
            for fd in range(3):
                os.close(fd)
                # What is opened later doesn't become a standard stream.
                os.open("/", os.O_PATH | os.O_CLOEXEC)
            self.out = -1
        if single:
            self.answer(self.do(steps[0]))
            os._exit(0)
        self.steps(steps, self.number, True)
        self.answer({"step": -1, "ok": True})
        os._exit(0)

    def child(self, s):
        """Does one step in a child, whose line it is, unless it died of it."""
        alone = dict(s, child=False)
        number = self.number
        try:
            pid, result = self.start([alone], single=True)
        except OSError as e:
            return self.line(s, error=error_text(e))
        last, status = finish(pid, result)
        if last is not None and not os.WIFSIGNALED(status):
            last["step"] = number
            return last
        error = ended(status)
        return self.line(s, error="" if s["do"] == "exit" else error)

    def aside(self, steps):
        """Does calls in a process of their own."""
        own = os.getpid()
        try:
            result, end = os.pipe()
            pid = os.fork()
        except OSError as e:
            return [self.line(s, error=error_text(e)) for s in steps]
        if pid == 0:
            try:
                os.close(result)
                for s in steps:
                    try:
                        line = self.line(s, call(self, s, own))
                    except Exception as e:
                        line = self.line(s, error=error_text(e))
                    write_all(end, json.dumps(line).encode() + b"\n")
            finally:
                os._exit(0)
        os.close(end)
        lines = [json.loads(text) for text in drain(result).split(b"\n") if text]
        status = wait(pid)
        done = len(lines)
        for i in range(done, len(steps)):
            # The first one that is not done ended the child: by a signal, or it
            # became another program.
            error = "not done: the one before was the last"
            if i == done:
                error = ended(status) if os.WIFSIGNALED(status) else ""
            lines.append(self.line(steps[i], error=error))
        return lines


class Apart:
    """New namespaces for a child, and what the processes between tell of its end.

    Namespaces of pids and of time are those of the children of who makes them, so
    that one more process is forked. In one of pids there is another between, for
    the first process of one can't be killed from inside, not by its own timer
    either.
    """

    FLAGS = {
        "user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000,
        "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000, "time": 0x80,
    }

    def __init__(self, kinds):
        import mmap

        self.kinds = kinds.split("+")
        self.waits = ("pid" in self.kinds or "time" in self.kinds) + ("pid" in self.kinds)
        self.ends = mmap.mmap(-1, PAGE)  # how each wait ended, four bytes each
        self.began, self.say = os.pipe()  # at its end when it is settled what came of it

    def close(self):
        for fd in (self.began, self.say):
            if fd >= 0:
                os.close(fd)
        self.ends.close()

    def settled(self):
        """Is for the parent: an error if the child could not begin."""
        os.close(self.say)
        self.say = -1
        text, self.began = drain(self.began), -1
        if text:
            raise Words(text.decode())

    def enter(self):
        """Is for the child, of which it returns in one that is in the namespaces."""
        try:
            self.unshare()
            for i in range(self.waits):
                pid = os.fork()
                if pid != 0:
                    os.close(self.say)
                    self.ends[4 * i:4 * i + 4] = wait(pid).to_bytes(4, "little")
                    os._exit(0)
        except Exception as e:
            write_all(self.say, error_text(e).encode())
            os._exit(1)
        os.close(self.say)

    def unshare(self):
        ids = os.geteuid(), os.getegid()
        flags = sum(self.FLAGS[kind] for kind in self.kinds)
        if libc().unshare(flags) != 0:
            import ctypes

            raise OSError(ctypes.get_errno(), "")
        if "user" not in self.kinds:
            return
        for name, text in (("setgroups", b"deny"), ("uid_map", b"0 %d 1" % ids[0]), ("gid_map", b"0 %d 1" % ids[1])):
            try:
                fd = os.open("/proc/self/" + name, os.O_WRONLY | os.O_CLOEXEC)
            except OSError:
                continue  # the ids stay unmapped
            try:
                os.write(fd, text)
            except OSError:
                pass
            finally:
                os.close(fd)

    def ended(self, status):
        """How the child ended, from how the first between it and us did."""
        for i in range(self.waits):
            if os.WIFSIGNALED(status):
                break
            status = int.from_bytes(self.ends[4 * i:4 * i + 4], "little")
        return status


class Partly(Exception):
    """An act that failed when it had reached something."""

    def __init__(self, value, error):
        super().__init__()
        self.value, self.error = value, error


def quote(value):
    """Bytes as a value: what is not printable ASCII as \\xNN, bounded."""
    if value is None:
        return ""
    if isinstance(value, str):
        value = value.encode()
    out, size = [], 0
    for c in value[:MAX_VALUE]:
        piece = chr(c) if 32 <= c <= 126 else "\\x%02x" % c
        size += len(piece)
        if size > MAX_VALUE:
            break
        out.append(piece)
    return "".join(out)


def error_text(e):
    if isinstance(e, Words):
        return str(e)
    if isinstance(e, OSError) and e.errno:
        return errno_name(e.errno)
    if isinstance(e, MemoryError):
        return "ENOMEM"
    return "%s: %s" % (type(e).__name__, e)


def errno_name(n):
    """Of two names for one number both interpreters take the same."""
    same = {errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK", 133: "EHWPOISON"}
    return same.get(n) or errno.errorcode.get(n) or "errno %d" % n


def signal_name(n):
    try:
        return signal.Signals(n).name
    except ValueError:
        return "signal %d" % n


def write_all(fd, data):
    view = memoryview(data)
    while len(view):
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


def drain(fd):
    """Reads a descriptor to its end and closes it."""
    text = b""
    while True:
        try:
            piece = os.read(fd, 32 << 10)
        except OSError:
            piece = b""
        if not piece:
            os.close(fd)
            return text
        if len(text) < 8 * MAX_VALUE:
            text += piece


def wait(pid):
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def finish(pid, result):
    text = drain(result)
    status = wait(pid)
    try:
        return json.loads(text), status
    except ValueError:
        return None, status


def ended(status):
    if os.WIFSIGNALED(status):
        return signal_name(os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    return "exit %d" % code if code else ""


def seconds(milliseconds):
    return (milliseconds or 0) / 1000.0


def number(text):
    """A decimal or 0x number of 64 bits, as a signed word."""
    n = int(text, 16 if text.lstrip("-").startswith("0x") else 10)
    n &= (1 << 64) - 1
    return n - (1 << 64) if n >> 63 else n


def data_of(s):
    data = s.get("data", "")
    return bytes.fromhex(data[4:]) if data.startswith("hex:") else data.encode()


def path_of(s, name="path"):
    return s[name].encode()


# Files.


def read_file(name, size):
    fd = os.open(name, os.O_RDONLY | CALM)
    data = b""
    try:
        while len(data) < size:
            try:
                piece = os.read(fd, min(size - len(data), 64 << 10))
            except OSError:
                if not data:
                    raise
                break
            if not piece:
                break
            data += piece
    finally:
        os.close(fd)
    return data


def size_of(s):
    return min(s.get("size") or 4096, MAX_VALUE)


def put(name, flags, data):
    """Writes a whole file."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | flags | CALM, 0o666)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def do_read(it, s):
    data = read_file(path_of(s), size_of(s))
    if not data:
        raise Words("no bytes came")
    return data


def names(folder):
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return sorted(os.fsencode(n) for n in os.listdir(fd))
    finally:
        os.close(fd)


def do_list(it, s):
    return b"\n".join(names(path_of(s)))


def do_find(it, s):
    path = path_of(s)
    found = [b"/" if path.startswith(b"/") else b""]
    for part in path.split(b"/"):
        if part:
            found = matches(found, part)
    out, first, read = b"", None, False
    for name in found:
        if len(out) >= MAX_VALUE:
            break
        try:
            data = read_file(name, size_of(s))
        except OSError as e:
            first = first or e
            continue
        if data:
            read = True
            out += name + b": " + data + b"\n"
    if not read:
        raise first or OSError(errno.ENOENT, "")
    return out


def matches(folders, part):
    import fnmatch

    found = []
    for folder in folders:
        here = [part]
        if b"*" in part or b"[" in part:
            try:
                here = [n for n in names(folder or b".") if fnmatch.fnmatchcase(n, part)]
            except OSError:
                here = []  # what can't be listed has no matches
        for name in here:
            if len(found) == MAX_FOUND:
                return found
            between = b"" if not folder or folder.endswith(b"/") else b"/"
            found.append(folder + between + name)
    return found


def do_write(it, s):
    put(path_of(s), os.O_APPEND if s.get("append") else os.O_TRUNC, data_of(s))


def do_open(it, s):
    flags = {
        "": os.O_RDONLY, "r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR,
        "path": os.O_PATH, "create": os.O_WRONLY | os.O_CREAT,
    }[s.get("flags", "")]
    os.close(os.open(path_of(s), flags | CALM, 0o666))


def do_stat(it, s):
    st = os.stat(path_of(s))
    return "mode %o uid %d gid %d" % (st.st_mode, st.st_uid, st.st_gid)


def do_readlink(it, s):
    return os.readlink(path_of(s))


def do_remove(it, s):
    path = path_of(s)
    try:
        os.unlink(path)
    except OSError as e:
        if e.errno not in (errno.EISDIR, errno.EPERM):
            raise
        try:
            os.rmdir(path)
        except NotADirectoryError:
            raise e from None


def do_mkdir(it, s):
    os.mkdir(path_of(s))


def do_mkfifo(it, s):
    os.mkfifo(path_of(s))


def do_rename(it, s):
    os.rename(path_of(s), path_of(s, "to"))


def do_link(it, s):
    # Unlike the call it stands for, os.link follows a link unless it is told not to.
    os.link(path_of(s), path_of(s, "to"), follow_symlinks=False)


def do_symlink(it, s):
    os.symlink(path_of(s, "to"), path_of(s))


def do_truncate(it, s):
    os.truncate(path_of(s), s.get("size", 0))


def do_chmod(it, s):
    os.chmod(path_of(s), int(s["mode"], 8))


def do_chown(it, s):
    os.chown(path_of(s), s.get("uid", 0), s.get("gid", 0))


def do_mknod(it, s):
    import stat

    kind, major, minor = s["mode"].split()
    mode = stat.S_IFBLK if kind == "b" else stat.S_IFCHR
    os.mknod(path_of(s), mode | 0o666, os.makedev(int(major), int(minor)))


def do_fill(it, s):
    piece = b"tranca" * (32 << 10)
    fd = os.open(path_of(s), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | CALM, 0o666)
    try:
        left = s["size"]
        while left > 0:
            write_all(fd, piece[:left])
            left -= min(left, len(piece))
    finally:
        os.close(fd)


def do_files(it, s):
    path = path_of(s)
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    for i in range(s["count"]):
        try:
            put(path + b"/%d" % i, 0, b"")
        except OSError as e:
            raise Partly(str(i), e) from None
    return str(s["count"])


def do_copyself(it, s):
    try:
        with open("/proc/self/exe", "rb") as f:
            data = f.read()
    except OSError:
        with open(sys.executable, "rb") as f:
            data = f.read()
    path = path_of(s)
    put(path, os.O_TRUNC, data)
    os.chmod(path, int(s.get("mode", "0755"), 8))


def do_swap(it, s):
    path, other = path_of(s), path_of(s) + b".link"
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    put(path + b"/f", os.O_TRUNC, b"mine")
    try:
        os.symlink(path_of(s, "to"), other)
    except FileExistsError:
        pass
    end = time.monotonic() + seconds(s["for"])
    folder = True  # at the path
    while time.monotonic() < end or not folder:
        exchange(path, other)
        folder = not folder
    os.unlink(other)


def exchange(a, b):
    """Flips at once where the file system can, else by renames."""
    try:
        rename = libc().renameat2
        if rename(-100, a, -100, b, 2) == 0:
            return
        import ctypes

        if ctypes.get_errno() == errno.ENOENT:
            raise OSError(errno.ENOENT, "")
    except (AttributeError, ImportError):
        pass
    aside = a + b".aside"
    for old, new in ((a, aside), (b, a), (aside, b)):
        os.rename(old, new)


def do_check(it, s):
    text = read_file(path_of(s), MAX_TEXT).strip()
    if s.get("field"):
        start = s["field"].encode() + b":"
        for line in text.split(b"\n"):
            if line.startswith(start):
                text = line[len(start):].strip()
                break
        else:
            raise Words("no such field")
    if (
        s.get("equals") is not None and text != s["equals"].encode()
        or s.get("differs") is not None and text == s["differs"].encode()
        or s.get("contains") is not None and s["contains"].encode() not in text
    ):
        raise Partly(text, Words("is not so"))
    return text


def do_env(it, s):
    try:
        # As it was at the start: Python may have added a locale.
        with open("/proc/self/environ", "rb") as f:
            return f.read().rstrip(b"\0").replace(b"\0", b"\n")
    except OSError:
        return b"\n".join(k + b"=" + v for k, v in os.environb.items())


# Processes.


def do_run(it, s):
    import subprocess

    path = look(s["args"][0])
    stdin = subprocess.DEVNULL if os.path.exists("/dev/null") else None
    p = subprocess.Popen(
        s["args"], executable=path, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    )
    text = follow(p)
    error = ended((p.returncode & 0xFF) << 8 if p.returncode >= 0 else -p.returncode)
    if error:
        raise Partly(text, Words(error))
    return text


def follow(p):
    """Reads what a program writes until it has ended, which it has to before long."""
    fd = p.stdout.fileno()
    os.set_blocking(fd, False)
    end = time.monotonic() + LOOSE
    text, over = b"", False
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        piece = b""
        try:
            piece = os.read(fd, 32 << 10)
        except BlockingIOError:
            if not over:
                poll.poll(20)
        else:
            if not piece:
                time.sleep(0.001)
        if piece:
            if len(text) < MAX_VALUE:
                text += piece
            continue
        if over:
            p.stdout.close()
            return text
        if time.monotonic() > end:
            p.kill()
        over = p.poll() is not None


def look(name):
    if "/" in name:
        return name
    for folder in os.environ.get("PATH", "").split(":"):
        path = folder + "/" + name
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise OSError(errno.ENOENT, "")


def do_spawn(it, s):
    no_wait, session = s.get("no_wait"), s.get("session")
    until = time.monotonic() + LOOSE if no_wait or session else None
    started, failed = [], None
    for _ in range(max(s.get("count", 0), 1)):
        apart = None
        try:
            apart = Apart(s["new"]) if s.get("new") else None
            pid, result = it.start(s["steps"], session=session, close=s.get("close"), until=until, apart=apart)
        except (OSError, Words) as e:
            if apart:
                apart.close()
            failed = e
            break
        started.append((pid, result, apart))
    for pid, result, apart in started:
        if no_wait:
            os.close(result)
            if session:
                wait(pid)
            continue
        last, status = finish(pid, result)
        if apart and not session:
            status = apart.ended(status)
        error = ended(status)
        if not error and last is None:
            error = "it died"
        if error and failed is None:
            failed = Words(error)
    for _, _, apart in started:
        if apart:
            apart.close()
    if failed is not None:
        raise failed


def do_repeat(it, s):
    mine = it.number
    end = time.monotonic() + seconds(s.get("for"))
    count, i = s.get("count", 0), 0
    while i < count if count else time.monotonic() < end:
        it.steps(s["steps"], mine, True)
        time.sleep(seconds(s.get("every")))
        i += 1
    it.number = mine


def do_sleep(it, s):
    time.sleep(seconds(s["for"]))


def do_ignore(it, s):
    for n in range(1, 65):
        # To ignore the death of children would be to lose how they ended.
        if n not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
            try:
                signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError):
                pass


def do_kill(it, s):
    pid = os.getpid() if s["pid"] == "self" else number(s["pid"])
    os.kill(pid, s.get("signal", 0))


def do_exit(it, s):
    it.answer(it.line(s))
    os._exit(s.get("code", 0))


def do_raise(it, s):
    try:
        signal.signal(s["signal"], signal.SIG_DFL)
    except (OSError, ValueError):
        pass
    os.kill(os.getpid(), s["signal"])


def do_print(it, s):
    data = data_of(s)
    left = s.get("size") or len(data)
    piece = data * max(min(left, 64 << 10) // len(data), 1)
    if s.get("stream") == "err":
        fd = 2
    else:
        fd, it.partial = it.out, True
    while left > 0 and fd >= 0:
        write_all(fd, piece[:left])
        left -= min(left, len(piece))


# Loads.


def gate():
    """A pipe on whose reading end others wait until it is closed, or its maker dies."""
    return os.pipe()


def children(count, what):
    """Forks so many children that do something and end, or as many as it can."""
    pids, error = [], None
    for _ in range(count):
        try:
            pid = os.fork()
        except OSError as e:
            error = e
            break
        if pid == 0:
            try:
                what()
            finally:
                os._exit(0)
        pids.append(pid)
    return pids, error


def do_forks(it, s):
    waiting, held = gate()

    def what():
        os.close(held)
        os.read(waiting, 1)

    pids, error = children(s["count"], what)
    time.sleep(seconds(s.get("for")))
    os.close(held)
    os.close(waiting)
    for pid in pids:
        wait(pid)
    return reached(len(pids), error)


def reached(count, error):
    if error is not None:
        raise Partly(str(count), error)
    return str(count)


def do_zombies(it, s):
    pids, error = children(s["count"], lambda: None)
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    time.sleep(seconds(s.get("for")))
    for pid in pids:
        wait(pid)
    return reached(len(pids), error)


def do_threads(it, s):
    import threading

    threading.stack_size(64 << 10)
    waiting, held = gate()
    made, error = [], None
    for _ in range(s["count"]):
        t = threading.Thread(target=os.read, args=(waiting, 1))
        try:
            t.start()
        except RuntimeError:  # it has no number
            error = OSError(errno.EAGAIN, "")
            break
        made.append(t)
    time.sleep(seconds(s.get("for")))
    os.close(held)
    for t in made:
        t.join()
    os.close(waiting)
    return reached(len(made), error)


class AllFiles:
    """Raises the bound on open files as far as this process may, for a while."""

    def __enter__(self):
        try:
            import resource

            self.was = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.was[1], self.was[1]))
        except (ImportError, OSError, ValueError):
            self.was = None

    def __exit__(self, *_):
        if self.was:
            import resource

            resource.setrlimit(resource.RLIMIT_NOFILE, self.was)


def do_fds(it, s):
    fds, error = [], None
    with AllFiles():
        while len(fds) < s["count"]:
            try:
                # An open file of its own each, not a copy of one.
                fds.append(os.open("/", os.O_PATH | os.O_CLOEXEC))
            except OSError as e:
                error = e
                break
        for fd in fds:
            os.close(fd)
    return reached(len(fds), error)


def do_pipes(it, s):
    import fcntl

    ends, held, error = [], 0, None
    piece = bytes(64 << 10)
    with AllFiles():
        while held < s["size"] and error is None:
            try:
                r, w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError as e:
                error = e
                break
            ends += [r, w]
            try:
                fcntl.fcntl(w, 1031, 1 << 20)  # F_SETPIPE_SZ
            except OSError:
                pass  # it stays small
            before = held
            try:
                while held < s["size"]:
                    held += os.write(w, piece[: s["size"] - held])
            except OSError:
                pass
            if held == before:
                error = OSError(errno.EAGAIN, "")
        for fd in ends:
            os.close(fd)
    return reached(held, error)


def do_alloc(it, s):
    import mmap

    size = s["size"]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if s.get("no_touch"):
        flags |= 0x4000  # MAP_NORESERVE
    waiting, held = gate()
    told, tell = os.pipe()

    def what():
        os.close(held)
        try:
            memory = mmap.mmap(-1, size, flags=flags)
            if not s.get("no_touch"):
                for at in range(0, size, PAGE):
                    memory[at] = 1
        except OSError as e:
            os._exit(e.errno or 1)
        except MemoryError:
            os._exit(errno.ENOMEM)
        os.write(tell, b"1")
        os.read(waiting, 1)

    pids, error = children(max(s.get("count", 0), 1), what)
    os.close(tell)
    there = 0
    while there < len(pids) and os.read(told, 1):  # of each, or the end of all that live
        there += 1
    os.close(told)
    os.close(held)
    os.close(waiting)
    for pid in pids:
        status = wait(pid)
        text = ended(status)
        if text and error is None:
            error = Words(text) if os.WIFSIGNALED(status) else OSError(os.WEXITSTATUS(status), "")
    return reached(there, error)


def do_mmap(it, s):
    import mmap

    if not s.get("path"):
        extra = {"": 0, "hugetlb": 0x40000, "locked": 0x2000}[s.get("flags", "")]

        def touch():
            memory = mmap.mmap(-1, s["size"], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | extra)
            for at in range(0, s["size"], PAGE):
                memory[at] = 1

        return mapped(touch)
    map_file(path_of(s), data_of(s))


def map_file(path, data):
    """Writes to the beginning of a file by a mapping; what it hasn't got can't be."""
    import mmap
    import stat

    if not data:
        raise Words("there are no bytes to write")
    fd = os.open(path, os.O_RDWR | CALM)
    try:
        st = os.fstat(fd)
        regular = stat.S_ISREG(st.st_mode)
        if regular and st.st_size < len(data):
            raise Words("the file is shorter")

        def write():
            memory = mmap.mmap(fd, len(data), flags=mmap.MAP_SHARED)
            memory[:] = data

        mapped(write)
        if regular and os.pread(fd, len(data), 0) != data:
            raise Words("other bytes are there")
    finally:
        os.close(fd)


def mapped(what):
    """Does something in a child, which may die of it and whose end is the outcome."""

    def whole():
        try:
            what()
        except OSError as e:
            os._exit(e.errno or 1)
        except MemoryError:
            os._exit(errno.ENOMEM)

    pids, error = children(1, whole)
    if error is not None:
        raise error
    status = wait(pids[0])
    if os.WIFSIGNALED(status):
        raise Words(ended(status))
    if os.WEXITSTATUS(status):
        raise OSError(os.WEXITSTATUS(status), "")


def burn(count, milliseconds, work):
    """Does the work on so many threads until the process has used so much CPU time for each."""
    import threading

    end = time.process_time_ns() + count * milliseconds * 1000000
    give_up = []

    def thread():
        while time.process_time_ns() < end and not give_up:
            work()

    made = []
    for _ in range(count):
        t = threading.Thread(target=thread)
        try:
            t.start()
        except RuntimeError:
            give_up.append(True)
            break
        made.append(t)
    for t in made:
        t.join()
    if give_up:
        raise OSError(errno.EAGAIN, "")


def do_spin(it, s):
    import zlib

    block = bytes(1 << 20)
    # Over a block as large other threads run meanwhile.
    burn(max(s.get("threads", 0), 1), s["for"], lambda: zlib.crc32(block))


def do_hash(it, s):
    import hashlib

    block = bytes(256 << 10)
    burn(s.get("threads") or len(os.sched_getaffinity(0)), s["for"], lambda: hashlib.sha256(block).digest())


# Network.


def peer(network, text):
    """Reads an address; returns the family and what Python calls an address."""
    import socket

    if network == "unix":
        name = text.encode()
        return socket.AF_UNIX, b"\0" + name[1:] if name.startswith(b"@") else name
    if network == "vsock":
        try:
            cid, port = text.split(":")
            return socket.AF_VSOCK, (int(cid), int(port))
        except ValueError:
            raise Words("the address is not cid:port") from None
    try:
        host, port = text.rsplit(":", 1)
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1].split("%")[0]
            socket.inet_pton(socket.AF_INET6, host)
            return socket.AF_INET6, (host, int(port))
        return socket.AF_INET, (ipv4(host), int(port))
    except (ValueError, OSError, Words):
        raise Words("the address is no IP address with a port") from None


def ipv4(text):
    import socket

    try:
        socket.inet_pton(socket.AF_INET, text)
    except OSError:
        raise Words("the address is no IPv4 address") from None
    return text


def dial(family, kind, to):
    import socket

    c = socket.socket(family, kind)
    try:
        c.setblocking(False)
        try:
            error = c.connect_ex(to)
        except OSError as e:
            error = e.errno or errno.EINVAL  # a path that is too long
        if error == errno.EINPROGRESS:
            error = errno.ETIMEDOUT
            if ready(c, select.POLLOUT, time.monotonic() + CONNECTING):
                error = c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, "")
    except BaseException:
        c.close()
        raise
    return c


def ready(c, events, until):
    poll = select.poll()
    poll.register(c.fileno(), events)
    return bool(poll.poll(max((until - time.monotonic()) * 1000, 0)))


def answer(c):
    """What comes until the peer ends or the time is over."""
    data, until = b"", time.monotonic() + ANSWERING
    while len(data) < MAX_VALUE and ready(c, select.POLLIN, until):
        try:
            piece = c.recv(16 << 10)
        except BlockingIOError:
            continue
        except OSError:
            break
        if not piece:
            break
        data += piece
    return data


def do_connect(it, s):
    import socket

    if s["network"] == "icmp":
        return ping(s["address"], data_of(s))
    family, to = peer(s["network"], s["address"])
    kinds = [socket.SOCK_STREAM]
    if s["network"] == "udp":
        kinds = [socket.SOCK_DGRAM]
    elif s["network"] == "unix":
        kinds = [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET]
    for kind in kinds:
        try:
            c = dial(family, kind, to)
        except OSError as e:
            if e.errno == errno.EPROTOTYPE and kind != kinds[-1]:
                continue  # the listener is of another kind
            raise
        with c:
            write_all(c.fileno(), data_of(s))
            return answer(c)


def ping(address, data):
    import socket

    to = (ipv4(address), 0)
    raw = False
    try:
        c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except OSError:
        raw = True
        c = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    head = b"\x08\0%s\x74\x72\0\x01"
    with c:
        packet = head % b"\0\0" + data
        c.sendto(head % checksum(packet).to_bytes(2, "big") + data, to)
        until = time.monotonic() + ANSWERING
        while ready(c, select.POLLIN, until):
            try:
                got = c.recv(64 << 10)
            except OSError:
                continue
            if raw and got:
                got = got[(got[0] & 15) * 4:]
            if len(got) >= 8 and got[0] == 0:  # an echo reply
                return got[8:]
    return None


def checksum(data):
    total = sum(b << 8 if i % 2 == 0 else b for i, b in enumerate(data))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def do_resolve(it, s):
    import socket

    server = s.get("address") or resolver()
    for family, form in ((socket.AF_INET, "%s:53"), (socket.AF_INET6, "[%s]:53")):
        try:
            socket.inet_pton(family, server.split("%")[0])
        except OSError:
            continue
        server = form % server
        break
    family, to = peer("udp", server)
    question = query(s["name"])
    with dial(family, socket.SOCK_DGRAM, to) as c:
        write_all(c.fileno(), question)
        if not ready(c, select.POLLIN, time.monotonic() + ANSWERING):
            return None
        try:
            return c.recv(4096)
        except OSError:
            return None  # it was sent, which is what counts


def resolver():
    for line in read_file("/etc/resolv.conf", MAX_TEXT).split(b"\n"):
        parts = line.split()
        if len(parts) > 1 and parts[0] == b"nameserver":
            return parts[1].decode()
    raise Words("no nameserver in /etc/resolv.conf")


def query(name):
    """A DNS message that asks for a name's A records."""
    out = b"\x74\x72\x01\0\0\x01\0\0\0\0\0\0"
    name = name.encode()
    for label in (name[:-1] if name.endswith(b".") else name).split(b"."):
        if not 1 <= len(label) <= 63:
            raise Words("a label of the name has not 1 to 63 bytes")
        out += bytes([len(label)]) + label
    return out + b"\0\0\x01\0\x01"


def do_echo(it, s):
    import socket

    hello = b"tranca"
    family, kind, at = socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)
    if s["network"] == "udp":
        kind = socket.SOCK_DGRAM
    elif s["network"] == "unix":
        family, at = peer("unix", s["path"])
    try:
        with socket.socket(family, kind) as l:
            try:
                l.bind(at)
            except OSError as e:
                raise OSError(e.errno or errno.EINVAL, "") from None
            if kind == socket.SOCK_STREAM:
                l.listen(1)
            with dial(family, kind, l.getsockname()) as c:
                write_all(c.fileno(), hello)
                if not ready(l, select.POLLIN, time.monotonic() + CONNECTING):
                    raise OSError(errno.ETIMEDOUT, "")
                got = l.recv(64) if kind == socket.SOCK_DGRAM else l.accept()[0].recv(64)
    finally:
        if s["network"] == "unix" and not s["path"].startswith("@"):
            try:
                os.unlink(s["path"])
            except OSError:
                pass
    if got != hello:
        raise Partly(got, Words("other bytes came"))
    return got


def do_listen(it, s):
    import socket

    data = data_of(s)
    family, at = peer(s["network"], s["address"])
    kind = socket.SOCK_DGRAM if s["network"] == "udp" else socket.SOCK_STREAM
    end = time.monotonic()  # of what follows, when it listens
    with socket.socket(family, kind) as l:
        l.setblocking(False)
        if s["network"] == "tcp":
            l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # else a port rests for a while
        try:
            l.bind(at)
        except OSError as e:
            raise OSError(e.errno or errno.EINVAL, "") from None  # a path that is too long
        try:
            end = time.monotonic() + seconds(s["for"])
            if kind == socket.SOCK_DGRAM:
                return packet(l, data, end)
            l.listen(16)
            return stream(l, data, end)
        finally:
            if s["network"] == "unix" and not s["address"].startswith("@"):
                try:
                    os.unlink(s["address"])
                except OSError:
                    pass


def stream(l, data, end):
    """Takes one connection and answers at once, for who connects doesn't wait for long."""
    import socket

    while ready(l, select.POLLIN, end):
        try:
            c, _ = l.accept()
        except (BlockingIOError, ConnectionAbortedError):
            continue  # it is gone already
        with c:
            c.setblocking(False)
            try:
                write_all(c.fileno(), data)
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it connected, which is what counts
            return answer(c)
    raise OSError(errno.ETIMEDOUT, "")


def packet(l, data, end):
    """Takes one packet and answers it."""
    while ready(l, select.POLLIN, end):
        try:
            got, who = l.recvfrom(64 << 10)
        except BlockingIOError:
            continue
        if data:
            try:
                l.sendto(data, who)
            except OSError:
                pass
        return got
    raise OSError(errno.ETIMEDOUT, "")


def do_socket(it, s):
    import socket

    socket.socket(s["family"], s["type"], s.get("protocol", 0)).close()


def do_addaddr(it, s):
    import socket
    import struct

    ip = socket.inet_aton(ipv4(s["address"]))
    index = first_interface()
    # A request with acknowledgement, to make or to replace.
    body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, index)
    for kind in (2, 1):  # IFA_LOCAL, IFA_ADDRESS
        body += struct.pack("=HH", 8, kind) + ip
    message = struct.pack("=IHHII", 16 + len(body), 20, 0x505, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as c:
        c.sendto(message, (0, 0))
        if not ready(c, select.POLLIN, time.monotonic() + CONNECTING):
            raise OSError(errno.ETIMEDOUT, "")
        got = c.recv(4096)
    if len(got) < 20 or struct.unpack_from("=H", got, 4)[0] != 2:
        raise Words("the answer is none")
    error = struct.unpack_from("=i", got, 16)[0]
    if error:
        raise OSError(-error, "")


def first_interface():
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as c:
        for i in range(1, 65):
            try:
                fcntl.ioctl(c, 0x8910, struct.pack("=16si20x", b"", i))  # SIOCGIFNAME
                return i
            except OSError:
                pass
    raise OSError(errno.ENODEV, "")


# System calls.


def libc():
    """The C library. Without ctypes what needs it fails, and says so."""
    import ctypes

    if not hasattr(libc, "loaded"):
        libc.loaded = ctypes.CDLL(None, use_errno=True)
        libc.loaded.syscall.restype = ctypes.c_long
        libc.loaded.shmat.restype = ctypes.c_void_p
    return libc.loaded


ALONE = ("unshare", "setns", "clone", "clone3", "fork", "vfork", "execve", "execveat")


def calls_aside(steps):
    """The calls at the beginning of a list that are done in a process of their own.

    The kernel refuses some to a process of several threads, as the interpreter in
    Go is, and others make a process or become another program. What follows one
    of them is done there, too, for its changes last as long.
    """
    n = 0
    while n < len(steps) and steps[n]["do"] == "syscall" and not steps[n].get("child"):
        if n == 0 and steps[0]["call"] not in ALONE:
            break
        n += 1
    return steps[:n]


def argument(text, own, buffers, keep, fds):
    """What a text of a call's arguments becomes; its bytes are kept, and what it opens."""
    import ctypes

    if text == "self":
        return ctypes.c_long(own or os.getpid())
    kind, _, rest = text.partition(":")
    if kind == "text":
        keep.append(ctypes.create_string_buffer(rest.encode()))
        return keep[-1]
    if kind == "hex":
        data = bytes.fromhex(rest)
        keep.append(ctypes.create_string_buffer(data, len(data)))
        return keep[-1]
    if kind == "buf":
        buffers.append(ctypes.create_string_buffer(int(rest)))
        return buffers[-1]
    if kind in ("fd", "fdw", "fdp"):
        flags = {"fd": os.O_RDONLY, "fdw": os.O_WRONLY, "fdp": os.O_PATH}[kind]
        fds.append(os.open(rest.encode(), flags | CALM))
        return ctypes.c_long(fds[-1])
    return ctypes.c_long(number(text))


def call(it, s, own=None):
    """Makes a system call; returns what came, and what is now in its buffers."""
    import ctypes

    if s["call"] not in it.calls:
        raise Words("the program has no number of the call " + s["call"])
    arguments, buffers, keep, fds = [], [], [], []
    try:
        for text in s.get("args") or []:
            arguments.append(argument(text, own, buffers, keep, fds))
        arguments += [ctypes.c_long(0)] * (6 - len(arguments))
        # No bytecode of the interpreter between the call and what it returned.
        got = libc().syscall(ctypes.c_long(it.calls[s["call"]]), *arguments)
        if got == 0 and s["call"] in ("clone", "clone3", "fork", "vfork"):
            os._exit(0)
        if got == -1:
            raise OSError(ctypes.get_errno(), "")
    finally:
        for fd in fds:
            try:
                os.close(fd)
            except OSError:
                pass  # the call closed it
    value = str(got).encode()
    for b in buffers:
        data = b.raw.rstrip(b"\0")
        if data:
            value += b" " + data
    return value


def do_syscall(it, s):
    if s["call"] not in ALONE:
        return call(it, s)
    line = it.aside([s])[0]
    if not line["ok"]:
        raise Words(line["errno"])
    return line.get("value", "")


def do_ia32(it, s):
    import ctypes
    import mmap

    if os.uname().machine != "x86_64":
        raise OSError(errno.ENOSYS, "")
    # eax, ebx, ecx from the arguments of a C function; the others 0; int 0x80.
    code = bytes.fromhex("53 89f8 89f3 89d1 31d2 31f6 31ff cd80 5b c3")
    memory = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    words = [number(text) & 0xFFFFFFFF for text in (s.get("args") or [])] + [0, 0]
    result, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_uint32] * 3)(at)
            write_all(end, b"%d" % function(s["number"], words[0], words[1]))
        finally:
            os._exit(0)
    os.close(end)
    text = drain(result)
    status = wait(pid)
    if not text:
        error = ended(status)
        if error:
            raise Words(error)
        return None
    got = int(text)
    if -4096 < got < 0:
        raise OSError(-got, "")
    return str(got)


def do_shm(it, s):
    import ctypes

    data = data_of(s)
    size, flags, attach = 0, 0, 0o10000  # SHM_RDONLY
    if s.get("data"):
        size, flags, attach = max(len(data), PAGE), 0o1000 | 0o666, 0  # IPC_CREAT
    key = ctypes.c_int32(number(s["key"]))
    segment = libc().shmget(key, ctypes.c_size_t(size), flags)
    if segment == -1:
        raise OSError(ctypes.get_errno(), "")
    at = libc().shmat(segment, None, attach)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "")
    try:
        if data:
            ctypes.memmove(at, data, len(data))
        return ctypes.string_at(at, PAGE).rstrip(b"\0")
    finally:
        libc().shmdt(ctypes.c_void_p(at))


def main():
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = json.loads(base64.b64decode(PROGRAM))
    it = Interp(program)
    name = it.mark.encode()[:15]
    try:
        libc().prctl(15, name, 0, 0, 0)  # PR_SET_NAME
    except (ImportError, AttributeError, OSError):
        try:
            put("/proc/self/comm", 0, name)
        except OSError:
            pass
    it.limit()
    it.steps(program["steps"], 0, False)
    it.tell({"step": -1, "ok": True})
    os._exit(0)


main()
