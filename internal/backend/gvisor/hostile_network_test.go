package gvisor

import (
	"net"
	"testing"

	"tranca/internal/hostiletest"
)

// TestHostileNetwork tries to get out by every kind of packet. What counts is
// what listeners of the host see.
func TestHostileNetwork(t *testing.T) {
	runRows(t, []row{packetsRow(), rawRow(), linksRow()})
}

// hostAddresses are those that the host itself answers at.
func hostAddresses(s *scene) (v4, v6 []string) {
	s.Helper()
	v4, v6 = []string{"127.0.0.1"}, []string{"::1"}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		s.Fatal(err)
	}
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if ip.To4() != nil {
			v4 = append(v4, ip.String())
		} else {
			v6 = append(v6, ip.String())
		}
	}
	return v4, v6
}

func packetsRow() row {
	return row{
		id: "NET-01 NET-02 NET-03 NET-05 NET-06 NET-07", what: "TCP, UDP and names to the host, over IPv4 and IPv6",
		scene: func(s *scene) {
			tcp, udp := &hostiletest.Listener{}, &hostiletest.Listener{}
			s.vars["tcp"], s.vars["udp"] = tcp.Port(s, "tcp", ":0"), udp.Packets(s, "udp", ":0")
			s.vars["v4"], s.vars["v6"] = hostAddresses(s)
			s.effect["TCP"] = tcp.Hit
			s.effect["UDP"] = udp.Hit
		},
		program: `
addresses = [(socket.AF_INET, a) for a in V['v4']] + [(socket.AF_INET6, a) for a in V['v6']]
def each(kind, f):
    worked = 0
    for family, a in addresses:
        try:
            with socket.socket(family, kind) as s:
                s.settimeout(1)
                f(s, a)
            worked += 1
        except OSError as e: last = e
    time.sleep(0.2)
    if not worked: raise last
attempt('TCP', each, socket.SOCK_STREAM, lambda s, a: s.connect((a, V['tcp'])))
attempt('UDP', each, socket.SOCK_DGRAM, lambda s, a: s.sendto(b'x', (a, V['udp'])))
def outside(*targets):
    for t in targets:
        try:
            with socket.create_connection(t, 1): return t
        except OSError as e: last = e
    raise last
attempt('metadata', outside, ('169.254.169.254', 80), ('100.100.100.200', 80))
attempt('a name', lambda: socket.getaddrinfo(V['mark'] + '.example', 80))
def own():
    with socket.create_server(('127.0.0.1', 0)) as a:
        c = socket.create_connection(a.getsockname(), 5)
        b, _ = a.accept()
        c.sendall(b'hello')
        expect('hello', b.recv(5) == b'hello')
twin('own loopback', own)
def own6():
    with socket.create_server(('::1', 0), family=socket.AF_INET6) as a:
        socket.create_connection(a.getsockname()[:2], 5).close()
twin('own loopback by IPv6', own6)
`,
		blind: map[string]string{
			"metadata": "a host may have none; the host's own addresses are one",
			"a name":   "a host may have no name server; UDP is how one would be asked",
		},
		controls: []control{{what: "any boundary"}},
	}
}

// rawRow makes what a Sentry could pass on to the host. A raw socket of gVisor's
// own stack would reach that stack's loopback alone, and is refused all the same.
func rawRow() row {
	return row{
		id: "NET-04 NET-09", what: "packet, raw and ping sockets",
		program: `
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
twin('ordinary', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
`,
		controls: []control{{what: "any boundary", root: true}},
	}
}

func linksRow() row {
	return row{
		id: "NET-12", what: "add an address by netlink",
		program: `
attempt('address', add_address, '198.51.100.7')
twin('own address', lambda: socket.create_server(('127.0.0.1', 0)).close())
`,
		blind: map[string]string{"address": "the control would change the host's own interfaces"},
	}
}
