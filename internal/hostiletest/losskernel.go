//go:build tranca_weaken

package hostiletest

import (
	"os"
	"strconv"

	"tranca"
)

// HostKernelLosses are those of backends that share the kernel of the host: what
// it shares and does.
func HostKernelLosses() []Loss {
	return []Loss{
		{
			Item: tranca.ItemIsolation,
			Scene: func(s *Stage) {
				s.Open()
				s.Serve()
				s.Hostname()
				s.Neighbour()
				s.Vars["node"] = HostNode(s)
			},
			Program: `
reads('a file', read, V['dir'] + '/secret')
attempt('a listener', lambda: socket.create_connection(('127.0.0.1', V['port']), 5))
attempt('the name', lambda: expect('it', os.uname().nodename == V['host']))
reads('a process', lambda: read('/proc/%d/cmdline' % V['pid']))
attempt('a device', lambda: os.stat(V['node']))
attempt('a call', lambda: socket.socket(16, socket.SOCK_RAW, 0))
status = dict(l.split(':\t', 1) for l in open('/proc/self/status') if ':\t' in l)
attempt('rights', lambda: expect('some', int(status['CapEff'], 16)))` + Alive,
		},
		{
			Item: tranca.ItemProcesses, Scene: (*Stage).Neighbour,
			Program: `
reads('see', lambda: read('/proc/%d/cmdline' % V['pid']))
def name():
    try: os.kill(V['pid'], 0)
    except PermissionError: pass # it is there, and somebody else's
attempt('name', name)` + Alive,
		},
		{
			Item:  tranca.ItemIPC,
			Scene: (*Stage).SharedMemory,
			Program: `
def segments(): return [int(l.split()[0]) for l in open('/proc/sysvipc/shm') if 'key' not in l]
attempt('shared memory', lambda: expect('it', V['key'] in segments()))` + Alive,
		},
		{
			Item: tranca.ItemNetwork,
			Scene: func(s *Stage) {
				abstract := &Listener{}
				abstract.Serve(s, "unix", "@"+s.Mark)
				s.Effect["tcp"], s.Effect["abstract"] = s.Serve().Hit, abstract.Hit
			},
			Program: `
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', V['port']), 5))
attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\0' + V['mark']))
time.sleep(0.1)` + Alive,
		},
		{
			Item: tranca.ItemUser,
			Look: func(s *Stage) bool { return Status(s, s.Marked(), "Uid") == strconv.Itoa(os.Geteuid()) },
		},
		{
			Item: tranca.ItemPrivileges,
			Look: func(s *Stage) bool {
				pid := s.Marked()
				return Status(s, pid, "CapEff") != "0000000000000000" && Status(s, pid, "NoNewPrivs") == "0"
			},
		},
		{
			Item:    tranca.ItemLandlock,
			Program: "\nattempt('device', lambda: os.mknod('device', stat.S_IFCHR | 0o666, 0))" + Alive,
		},
	}
}
