import os, signal, sys, time

def child(run):
    """Runs in a child that holds no stream open."""
    pid = os.fork()
    if pid == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        try:
            run()
        finally:
            os._exit(0)
    return pid

def say(text):
    b = text if isinstance(text, bytes) else text.encode()
    while b:
        b = b[os.write(1, b):]

def spin():
    while True:
        pass

def p_exit(n): os._exit(int(n))
def p_print(out, err):
    say(out)
    os.write(2, err.encode())
def p_args(*a): say(b'\0'.join(os.fsencode(x) for x in a))
def p_env(): say(b''.join(k + b'=' + v + b'\0' for k, v in sorted(os.environb.items())))
def p_pwd(): say(os.getcwd())
def p_cat():
    while True:
        b = os.read(0, 1 << 16)
        if not b:
            return
        say(b)
def p_sleep(s): time.sleep(float(s))
def p_raise(n):
    os.kill(os.getpid(), int(n))
    time.sleep(60)
def p_segv():
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)
def p_spin(): spin()
def p_spinchild():
    child(spin)
    time.sleep(3600)
def p_alloc(n):
    held = b'x' * int(n)
    say('ok')
def p_allocs(n, size):
    def run():
        held = b'x' * int(size)
        time.sleep(3600)
    for _ in range(int(n)):
        child(run)
    time.sleep(3600)
def p_forks(n):
    made = 0
    for _ in range(int(n)):
        try:
            child(lambda: time.sleep(3600))
        except OSError:
            break
        made += 1
    say(str(made))
def p_bomb():
    say('bomb')
    while True:
        try:
            os.fork()
        except OSError:
            pass
def p_hold(s):
    if os.fork() == 0:
        time.sleep(float(s))
        os._exit(0)
    say('held')
    os._exit(0)
def p_flood(n, stream='stdout'):
    left, block = int(n), b'x' * (1 << 16)
    while left > 0:
        left -= os.write(2 if stream == 'stderr' else 1, block[:left])
def p_fill(name, n):
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    left, block = int(n), b'x' * (1 << 20)
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        while left > 0:
            left -= os.write(fd, block[:left])
    except OSError:
        return say('refused')
    say('ok')
def p_names(n):
    # Links, for a new inode takes ten times as long on a disk. A file has a
    # bounded number of them.
    for i in range(int(n)):
        if i % 30000 == 0:
            first = 'name-%d' % i
            open(first, 'w').close()
        else:
            os.link(first, 'name-%d' % i)
def p_inodes(n):
    made = 0
    try:
        for i in range(int(n)):
            os.close(os.open('inode-%d' % i, os.O_WRONLY | os.O_CREAT, 0o644))
            made += 1
    except OSError:
        pass
    say(str(made))
def p_churn(n):
    for i in range(int(n)):
        os.close(os.open('churn-%d' % i, os.O_WRONLY | os.O_CREAT, 0o644))
        os.unlink('churn-%d' % i)
def p_opens(n):
    held = []
    try:
        for _ in range(int(n)):
            held.append(os.open('/dev/null', os.O_RDONLY))
    except OSError:
        pass
    say(str(len(held)))
def p_fifo(name): os.mkfifo(name)
def p_link(name, target): os.symlink(target, name)
def p_read(name):
    try:
        with open(name, 'rb') as f:
            say(f.read())
    except OSError:
        sys.exit(1)
def p_write(name, text):
    with open(name, 'w') as f:
        f.write(text)
def p_deaf():
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_IGN)
    say('deaf')
    time.sleep(3600)
def p_beat(name):
    def run():
        os.setsid()
        if os.fork():
            return
        i = 0
        while True:
            with open(name, 'w') as f:
                f.write(str(i))
            i += 1
            time.sleep(0.01)
    os.waitpid(child(run), 0)
    say('beating')
def p_leave(name):
    read, write = os.pipe()
    def run():
        i = 0
        while True:
            with open(name, 'w') as f:
                f.write(str(i))
            if i == 0:
                os.close(write)
            i += 1
            time.sleep(0.01)
    child(run)
    os.close(write)
    os.read(read, 1)
    say('beating')
def p_size():
    def show(*_):
        columns, rows = os.get_terminal_size(1)
        say('%dx%d\n' % (rows, columns))
    signal.signal(signal.SIGWINCH, show)
    show()
    while True:
        signal.pause()
def p_echo(port):
    import socket, threading
    def serve(c):
        with c:
            while b := c.recv(1 << 16):
                c.sendall(b)
            c.shutdown(socket.SHUT_WR)
    with socket.create_server(('127.0.0.1', int(port)), backlog=64) as l:
        say('ready')
        while True:
            threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()

globals()['p_' + sys.argv[1]](*sys.argv[2:])
