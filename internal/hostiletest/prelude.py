# What every hostile program begins with. It tells what it tried line by line:
#   attempt <name> escaped|denied|read <value>
#   twin <name> ok|broken <value>
# A twin is the same path with an allowed act: where it is broken, "denied" of
# the attempts means nothing.
import errno, fcntl, glob, os, signal, socket, stat, struct, subprocess, sys, threading, time

try:
    import ctypes, json, resource
except ImportError:  # the smallest Python has none of them, and programs for it need only this
    class json:
        loads = staticmethod(lambda s: eval(s, {'true': True, 'false': False, 'null': None}))
        dumps = staticmethod(repr)
else:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long

V = json.loads(sys.argv[1])


def call(name, *args):
    "Makes a system call by its name."
    nr = V['nr'][name] if isinstance(name, str) else name
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    r = libc.syscall(ctypes.c_long(nr), *args)
    if r == -1:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r


def tell(kind, name, verdict, value):
    line = '%s\t%s\t%s\t%s\n' % (kind, name, verdict, json.dumps(str(value)[:6000]))
    os.write(1, line.encode())


def attempt(name, f, *args):
    "Escaped where f returns, denied where it raises."
    try:
        v = f(*args)
    except BaseException as e:
        tell('attempt', name, 'denied', '%s: %s' % (type(e).__name__, e))
    else:
        tell('attempt', name, 'escaped', v)


def reached(name, f, *args):
    "Escaped where the call came through to the kernel, whatever it said then."
    try:
        v = f(*args)
    except OSError as e:
        denied = e.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS)
        tell('attempt', name, 'denied' if denied else 'escaped', e)
    else:
        tell('attempt', name, 'escaped', v)


def reads(name, f, *args):
    "Escaped where what f returns holds the canary, which the program does not know."
    try:
        tell('attempt', name, 'read', f(*args))
    except BaseException as e:
        tell('attempt', name, 'denied', '%s: %s' % (type(e).__name__, e))


def twin(name, f, *args):
    try:
        tell('twin', name, 'ok', f(*args))
    except BaseException as e:
        tell('twin', name, 'broken', '%s: %s' % (type(e).__name__, e))


def expect(what, so):
    if not so:
        raise AssertionError(what)


def forked(f, *args):
    "Calls f in a child, so that what it does to itself stays there."
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = {'v': str(f(*args))}
        except OSError as e:
            answer = {'e': e.errno or 1, 's': e.strerror or str(e)}
        except BaseException as e:
            answer = {'e': errno.EPROTO, 's': '%s: %s' % (type(e).__name__, e)}
        os.write(w, json.dumps(answer).encode())
        os._exit(0)
    os.close(w)
    got = b''
    while chunk := os.read(r, 65536):
        got += chunk
    os.close(r)
    _, status = os.waitpid(pid, 0)
    if not got:
        raise ChildProcessError('child ended with status %d' % status)
    answer = json.loads(got)
    if 'e' in answer:
        raise OSError(answer['e'], answer['s'])
    return answer['v']


def read(path, n=4096):
    with open(path, 'rb') as f:
        return f.read(n)


def write(path, data=b'x'):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def netlink(kind, flags, body):
    "Asks the kernel to change something about the network."
    s = socket.socket(16, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    s.send(struct.pack('IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
    error = struct.unpack('i', s.recv(4096)[16:20])[0]
    if error:
        raise OSError(-error, os.strerror(-error))


def add_address(address):
    "Adds an address to the first interface."
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    local = struct.pack('HH', 4 + len(packed), 2) + packed
    netlink(20, 0x600, struct.pack('BBBBI', family, 8 * len(packed), 2, 0, 1) + local)
