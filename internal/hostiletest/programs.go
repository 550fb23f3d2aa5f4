package hostiletest

// Programs that are the same for every backend.
const (
	// Reserve maps 1 TiB of memory and touches none: MEM-10.
	Reserve = `
import mmap
m = libc.mmap
m.restype = ctypes.c_void_p
m.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
p = m(None, 1 << 40, 3, 0x4022, -1, 0)
expect('mapped', p not in (None, ctypes.c_void_p(-1).value))
print('done')`

	// OpenMany opens 500 descriptors, or as many as it may: PRC-05.
	OpenMany = `
held = []
try:
    while len(held) < 500: held.append(os.open('/dev/null', os.O_RDONLY))
except OSError as e: expect(e, e.errno == errno.EMFILE)
print('done' if len(held) == 500 else 'opened %d' % (3 + len(held)))`

	// UnixSockets connects to a socket, to the first of some that can be
	// connected to, and, as a twin, to one of its own: FS-05.
	UnixSockets = `
def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.connect(address)
    time.sleep(0.1)
def first(*paths):
    for p in paths:
        try: return connect(p)
        except OSError as e: last = e
    raise last
def own():
    a = socket.socket(socket.AF_UNIX)
    a.bind('own-socket')
    a.listen()
    connect('own-socket')
twin('own socket', own)
`
)
