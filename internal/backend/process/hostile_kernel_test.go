package process

import (
	"runtime"
	"testing"
)

const (
	onlyRoot = "only a privileged user of the host gets further than EPERM"
	ownRule  = "package seccomp holds the verdict on the call against the kernel's, with and without the filter"
)

// TestHostileKernel asks for parts of the kernel that no program here needs.
func TestHostileKernel(t *testing.T) { runRows(t, kernelRows()) }

func kernelRows() []row {
	return []row{
		namespaceRow(), joinRow(), keysRow(), enginesRow(), siblingRow(), initRow(), adminRow(),
		{
			id: "KRN-09", what: "weaken address randomization, change segments",
			program: `
reached('personality', lambda: forked(lambda: call('personality', 0x0040000)))
reached('modify_ldt', lambda: call(154 if os.uname().machine == 'x86_64' else 'prctl', 0, 0, 0))
twin('ask for the personality', lambda: call('personality', 0xffffffff))
`,
			controls: []control{{what: "the filter", weaken: unfiltered}},
		},
		foreignRow(), statusRow(), inheritRow(),
	}
}

func namespaceRow() row {
	return row{
		id: "KRN-01", what: "make a namespace",
		program: `
NEW = dict(user=0x10000000, mount=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000, uts=0x4000000, cgroup=0x2000000, time=0x80)
USER = NEW['user']
for name, flag in NEW.items():
    attempt('unshare ' + name, lambda: forked(lambda: call('unshare', flag | USER)))

def clone():
    pid = call('clone', USER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def clone3():
    args = ctypes.create_string_buffer(struct.pack('8Q', USER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    pid = call('clone3', args, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

attempt('clone user', lambda: forked(clone))
attempt('clone3 user', lambda: forked(clone3))
twin('fork', lambda: forked(lambda: 1))
twin('thread', lambda: threading.Thread(target=lambda: 1).start())
`,
		controls: []control{{what: "the filter", weaken: unfiltered}},
	}
}

func joinRow() row {
	return row{
		id: "KRN-03", what: "join a namespace",
		program: `
for name in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'):
    reached('setns ' + name, lambda: forked(lambda: call('setns', os.open('/proc/self/ns/' + name, os.O_RDONLY), 0)))
twin('look at a namespace', lambda: os.stat('/proc/self/ns/user'))
`,
		controls: []control{
			{what: "the filter", weaken: unfiltered, escapes: []string{"setns user"}}, // EINVAL: it is in it
			{what: "any boundary", root: true},
		},
	}
}

func keysRow() row {
	const needsRoom = "the kernel looks at the type first: EOPNOTSUPP or ENOKEY where it gets there"
	return row{
		id: "KRN-04", what: "keyrings, which have no namespace",
		program: `
attempt('add_key', lambda: call('add_key', b'user', b'tranca', b'x', 1, -2))
attempt('keyctl', lambda: call('keyctl', 0, -2, 1))
reached('request_key', lambda: call('request_key', b'user', b'tranca', 0, 0))
twin('a syscall by number', lambda: call('personality', 0xffffffff))
`,
		controls: []control{{what: "the filter", weaken: unfiltered}},
		blind:    map[string]string{"request_key": needsRoom},
	}
}

func enginesRow() row {
	return row{
		id: "KRN-05 KRN-06", what: "engines inside the kernel: bpf, perf, userfaultfd, io_uring",
		program: `
attempt('bpf', lambda: call('bpf', 0, ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1).ljust(72, b'\0')), 72))
attempt('perf_event_open', lambda: call('perf_event_open', ctypes.create_string_buffer(struct.pack('IIQ', 1, 112, 0).ljust(40, b'\0') + struct.pack('Q', 0x60).ljust(72, b'\0')), 0, -1, -1, 0))
attempt('userfaultfd', lambda: call('userfaultfd', 1))
attempt('io_uring_setup', lambda: call('io_uring_setup', 4, ctypes.create_string_buffer(120)))
reached('io_uring_enter', lambda: call('io_uring_enter', -1, 1, 0, 0, 0, 0))
reached('io_uring_register', lambda: call('io_uring_register', -1, 0, 0, 0))
twin('epoll', lambda: __import__('select').epoll().close())
`,
		controls: []control{{what: "the filter", weaken: unfiltered}},
		blind: map[string]string{
			"bpf": "kernel.unprivileged_bpf_disabled refuses it too; " + ownRule,
			// Both depend on sysctls of the host.
			"perf_event_open": "kernel.perf_event_paranoid refuses it too; " + ownRule,
		},
	}
}

func siblingRow() row {
	return row{
		id: "KRN-07", what: "steer a sibling by ptrace and its like",
		program: `
child = subprocess.Popen(['sleep', '60'])
secret = ctypes.create_string_buffer(b'secret')
there = ctypes.create_string_buffer(6)
def vm(name):
    mine = struct.pack('QQ', ctypes.addressof(there), 6)
    theirs = struct.pack('QQ', ctypes.addressof(secret), 6)
    # A process of its own whose memory is a copy of ours.
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try:
        return call(name, pid, ctypes.create_string_buffer(mine), 1, ctypes.create_string_buffer(theirs), 1, 0)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
attempt('ptrace seize', lambda: call('ptrace', 0x4206, child.pid, 0, 0))
attempt('ptrace traceme', lambda: forked(lambda: call('ptrace', 0, 0, 0, 0)))
attempt('process_vm_readv', vm, 'process_vm_readv')
attempt('process_vm_writev', vm, 'process_vm_writev')
attempt('pidfd_getfd', lambda: call('pidfd_getfd', call('pidfd_open', child.pid, 0), 0, 0))
twin('signal a sibling', lambda: child.send_signal(0))
child.kill()
`,
		controls: []control{{what: "the filter", weaken: unfiltered}},
	}
}

// initRow looks into the first process of the code's pid namespace. Around it
// stand another uid, Landlock's domain, the filter, and that its memory is
// closed. The control does the same to a child of the program itself.
func initRow() row {
	return row{
		id: "KRN-07 FS-03", what: "look into the first process, signal it",
		scene: func(s *scene) { s.vars["target"] = "init" },
		program: `
pid = 1
if V['target'] != 'init':
    child = subprocess.Popen(['sleep', '60'])
    pid = child.pid
    time.sleep(0.2)
for name in ('environ', 'maps', 'auxv', 'io', 'personality', 'pagemap', 'syscall', 'stack'):
    attempt('read ' + name, lambda: expect('something', read('/proc/%d/%s' % (pid, name), 64)))
attempt('read mem', lambda: os.close(os.open('/proc/%d/mem' % pid, os.O_RDONLY)))
for name in ('root', 'cwd', 'exe', 'ns/pid', 'fd/0'):
    attempt('follow ' + name, lambda: os.stat('/proc/%d/%s' % (pid, name)))
for name in ('fd', 'fdinfo', 'map_files'):
    attempt('list ' + name, lambda: os.listdir('/proc/%d/%s' % (pid, name)))
attempt('ptrace', lambda: forked(lambda: call('ptrace', 0x4206, pid, 0, 0)))
def end():
    for sig in ('TERM', 'SEGV', 'STOP', 'KILL'):
        try: os.kill(pid, getattr(signal, 'SIG' + sig))
        except OSError: pass
    time.sleep(0.2)
    status = read('/proc/%d/status' % pid)
    expect('dead or stopped', b'State:\tZ' in status or b'State:\tT' in status)
attempt('end it', end)
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
twin('its status', lambda: read('/proc/1/status'))
`,
		after: `
twin('another program starts', lambda: expect('init', read('/proc/1/comm') == b'init\n' and os.getpid() > 2))
`,
		holds: []control{{what: "Landlock", weaken: unlocked}},
		controls: []control{{
			what: "init as its target", weaken: unfiltered, vars: map[string]any{"target": "child"},
		}},
		blind: map[string]string{"read stack": "it needs a capability of the host"},
	}
}

func adminRow() row {
	return row{
		id: "KRN-08 DSK-10", what: "administer the host, flush all of its disks",
		program: `
BAD = 1
reached('init_module', lambda: call('init_module', BAD, 1, BAD))
reached('delete_module', lambda: call('delete_module', BAD, 0))
reached('kexec_load', lambda: call('kexec_load', 0, 0, 0, -1))
reached('swapon', lambda: call('swapon', BAD, 0))
reached('swapoff', lambda: call('swapoff', BAD))
reached('reboot', lambda: call('reboot', 0, 0, 0, 0))
reached('settimeofday', lambda: call('settimeofday', BAD, 0))
reached('clock_settime', lambda: call('clock_settime', 0, BAD))
reached('syslog', lambda: call('syslog', 10, 0, 0))
reached('acct', lambda: call('acct', BAD))
reached('quotactl', lambda: call('quotactl', -1, BAD, 0, 0))
reached('sync', lambda: call('sync'))
twin('read the clock', lambda: time.clock_gettime(time.CLOCK_REALTIME))
twin('fsync of a file', lambda: os.fsync(os.open(V['mark'] if V['bare'] else '/work/f', os.O_CREAT | os.O_WRONLY)))
`,
		controls: []control{
			{what: "the filter", weaken: unfiltered, escapes: []string{"settimeofday", "clock_settime", "sync"}},
			{what: "any boundary", root: true},
		},
		blind: map[string]string{
			"init_module": onlyRoot + ", and only in a kernel with modules", "delete_module": onlyRoot + ", and only in a kernel with modules",
			"kexec_load": onlyRoot + ", and only in a kernel with kexec", "quotactl": "a kernel without quota has no such call",
			"acct": "a kernel without process accounting has no such call",
		},
	}
}

// foreignRow makes calls by another ABI, whose numbers are other calls.
func foreignRow() row {
	r := row{
		id: "KRN-12 NET-11", what: "blocked calls by i386 and x32",
		program: `
import mmap
def i386(nr, *args):
    # push rbx; mov eax, nr; mov ebx, arg; mov ecx, arg; int 0x80; pop rbx; ret
    a = list(args) + [0, 0]
    code = b'\x53\xb8' + struct.pack('I', nr) + b'\xbb' + struct.pack('I', a[0] & 0xffffffff) + b'\xb9' + struct.pack('I', a[1] & 0xffffffff) + b'\xcd\x80\x5b\xc3'
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    r = f()
    if r < 0:
        raise OSError(-r, os.strerror(-r))
    return r
def low(data):
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, mmap.PROT_READ | mmap.PROT_WRITE)
    page.write(data)
    low.kept = page
    return ctypes.addressof(ctypes.c_char.from_buffer(page))
attempt('getpid by i386', lambda: forked(lambda: i386(20)))
attempt('unshare by i386', lambda: forked(lambda: i386(310, 0x10000000)))
attempt('socket AF_ALG by i386', lambda: forked(lambda: i386(359, 38, 5)))
attempt('socketcall by i386', lambda: forked(lambda: i386(102, 1, low(struct.pack('III', 2, 1, 0)))))
reached('getpid by x32', lambda: call(0x40000000 | 39))
twin('getpid', lambda: expect('pid', call(39) == os.getpid()))
`,
		controls: []control{{what: "the filter", weaken: unfiltered, escapes: []string{
			"getpid by i386", "unshare by i386", "socketcall by i386",
		}}},
		blind: map[string]string{
			"socket AF_ALG by i386": "only in a kernel with AF_ALG", "getpid by x32": "only in a kernel with x32",
		},
	}
	if runtime.GOARCH != "amd64" {
		r.program = `twin('no other ABI is tried on this architecture', lambda: 1)`
		r.controls = nil
	}
	return r
}

// statusRow reads what the kernel says of the code's privileges.
func statusRow() row {
	return row{
		id: "KRN-15", what: "no capability, no new privileges, filtered, another uid than on the host",
		program: `
status = dict(l.split(':\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\t' in l)
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
    attempt(name, lambda: expect('none', int(status[name], 16) != 0))
attempt('new privileges', lambda: expect('refused', status['NoNewPrivs'] != '1'))
attempt('unfiltered', lambda: expect('filtered', status['Seccomp'] != '2'))
attempt('uid 0', lambda: expect('not root', os.getuid() == 0 or 0 in os.getgroups()))
attempt('the same uid outside', lambda: expect('mapped', any(int(l.split()[0]) == int(l.split()[1]) == os.getuid() or int(l.split()[1]) == 0 for l in open('/proc/self/uid_map'))))
attempt('change user', lambda: forked(lambda: call('setresuid', 0, 0, 0)))
attempt('drop groups', lambda: forked(lambda: call('setgroups', 0, 0)))
for cap in ((1, 'CAP_DAC_OVERRIDE'), (21, 'CAP_SYS_ADMIN')):
    reached('raise ' + cap[1], lambda: forked(lambda: call('capset', ctypes.create_string_buffer(struct.pack('II', 0x20080522, 0)), ctypes.create_string_buffer(struct.pack('6I', 1 << cap[0], 1 << cap[0], 0, 0, 0, 0)))))
twin('own status', lambda: status['Uid'])
`,
		blind: map[string]string{
			"CapInh": "a service may start with none", "CapAmb": "a service may start with none",
			"unfiltered": "where the suite itself runs in a container it is filtered",
		},
		controls: []control{{what: "any boundary", root: true}},
	}
}

// inheritRow tries to get at what the next program in the same sandbox is
// locked down with: the filter comes from the agent's memory, not from a file.
func inheritRow() row {
	return row{
		id: "KRN-16", what: "change what the next program is locked down with",
		program: `
for d in ('/work', '/tmp', '/dev/shm'):
    for name in ('seccomp', 'seccomp.bpf', 'filter', 'policy.yaml', 'tranca.yaml', 'policy.json', 'init', '.tranca', 'ld.so.preload', '.env'):
        write(d + '/' + name, b'\x06\0\0\0\0\0\xff\x7f')
def descriptors():
    for fd in range(3, 300):
        try: os.fstat(fd)
        except OSError: continue
        return os.readlink('/proc/self/fd/%d' % fd)
    raise OSError('none')
attempt('a descriptor beyond the three', descriptors)
twin('wrote files', lambda: 1)
`,
		after: `
attempt('unshare', lambda: forked(lambda: call('unshare', 0x10000000)))
attempt('no filter', lambda: expect('filter', b'Seccomp:\t2' not in read('/proc/self/status')))
twin('second program', lambda: os.getpid())
`,
		blind: map[string]string{
			"a descriptor beyond the three": "package forkexec tests that no descriptor survives its exec",
			"no filter":                     "the control has a filter too, one that allows all",
		},
		controls: []control{{what: "the filter", weaken: unfiltered}},
	}
}
