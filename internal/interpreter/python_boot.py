# Runs first in each Python sandbox. The first argument says how many bytes of
# the code stand at the beginning of standard input; what follows them is the
# program's own input. The second is the working folder.
#
# Lines that are comments are cut out before this is used.
def _():
    import sys
    from os import close, environ, open, read, unlink, write
    g, argv, parts, left = globals(), sys.argv, [], int(sys.argv[1])
    while left:
        parts.append(read(0, min(left, 1 << 20)))
        left -= len(parts[-1])
        if not parts[-1]:
            sys.exit('the code was cut off before its end')
    code = b''.join(parts)
    # A real file makes tracebacks, inspect, multiprocessing and __file__ work
    # as people know them. Where none can be made (a full disk) the code runs
    # all the same.
    path = environ.get('TMPDIR', '/tmp') + '/.main.py'
    try:
        try:
            unlink(path)
        except FileNotFoundError:
            pass
        # O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC: never through a link.
        file = open(path, 0o2000301, 0o600)
        more = memoryview(code)
        while more:
            more = more[write(file, more):]
        close(file)
    except OSError:
        pass
    # The frames of this file are left out of the traceback of an error that
    # nobody catches.
    def hook(kind, error, trace, show=sys.excepthook):
        while trace and trace.tb_frame.f_code.co_filename == '<string>':
            trace = trace.tb_next
        error.__traceback__ = trace
        show(kind, error, trace)
    sys.excepthook = hook
    # Behind the standard library: a module beside the code can be imported,
    # and can't stand in for another.
    sys.path.append(argv[2])
    argv[:3] = [path]
    g['__file__'] = path
    del g['_']
    # compile() takes two milliseconds, because it makes all classes of the
    # syntax tree first; exec() doesn't, but names no file. So exec() compiles,
    # the profiler's hook stops it before the first line, and the code object
    # gets its file name then.
    class Stop(BaseException):
        pass
    made = []
    def stop(frame, event, _):
        if event == 'call' and frame.f_code.co_filename == '<string>':
            sys.setprofile(None)
            made.append(frame.f_code)
            raise Stop
    def named(c):
        return c.replace(co_filename=path, co_consts=tuple(
            [named(k) if type(k) is type(c) else k for k in c.co_consts]))
    sys.setprofile(stop)
    try:
        exec(code, {})
    except Stop:
        pass
    except SyntaxError as error:
        error.filename = path
        raise
    finally:
        sys.setprofile(None)
    return named(made[0])
exec(_())
