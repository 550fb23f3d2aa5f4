package attempt

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// connecting and answering bound how long a connection may take, and how long
	// its answer is waited for.
	connecting = 3 * time.Second
	answering  = 300 * time.Millisecond
)

// doConnect connects, sends and tells what comes back.
func doConnect(_ *interp, s *Step) (string, error) {
	data, err := dataBytes(s.Data)
	if err != nil {
		return "", err
	}
	if s.Network == "icmp" {
		return ping(s.Address, data)
	}
	to, family, err := peer(s.Network, s.Address)
	if err != nil {
		return "", err
	}
	kinds := []int{unix.SOCK_STREAM}
	switch s.Network {
	case "udp":
		kinds = []int{unix.SOCK_DGRAM}
	case "unix":
		kinds = []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET}
	}
	for _, kind := range kinds {
		var fd int
		fd, err = dial(family, kind, to)
		if err == unix.EPROTOTYPE {
			continue // the listener is of another kind
		}
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		if err := writeAll(fd, data); err != nil {
			return "", err
		}
		return string(answer(fd)), nil
	}
	return "", err
}

// peer reads an address.
func peer(network, text string) (unix.Sockaddr, int, error) {
	switch network {
	case "unix":
		return &unix.SockaddrUnix{Name: text}, unix.AF_UNIX, nil
	case "vsock":
		cid, port, ok := strings.Cut(text, ":")
		c, err1 := strconv.ParseUint(cid, 10, 32)
		p, err2 := strconv.ParseUint(port, 10, 32)
		if !ok || err1 != nil || err2 != nil {
			return nil, 0, words("the address is not cid:port")
		}
		return &unix.SockaddrVM{CID: uint32(c), Port: uint32(p)}, unix.AF_VSOCK, nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, 0, words("the address is no IP address with a port")
	}
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, unix.AF_INET6, nil
}

// dial connects within the time that a connection may take.
func dial(family, kind int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, to)
	if err == unix.EINPROGRESS {
		err = unix.ETIMEDOUT
		if ready(fd, unix.POLLOUT, time.Now().Add(connecting)) {
			var no int
			if no, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && no != 0 {
				err = unix.Errno(no)
			}
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ready waits until the descriptor is, or until the time.
func ready(fd int, events int16, until time.Time) bool {
	for {
		left := max(time.Until(until).Milliseconds(), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(left))
		if n > 0 {
			return true
		}
		if err != unix.EINTR || left == 0 {
			return false
		}
	}
}

// answer returns what comes until the peer ends or the time is over.
func answer(fd int) []byte {
	var all []byte
	buf := make([]byte, 16<<10)
	for until := time.Now().Add(answering); len(all) < MaxValue && ready(fd, unix.POLLIN, until); {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		all = append(all, buf[:n]...)
	}
	return all
}

// ping sends an echo request by a ping socket, else by a raw one, and returns
// the data of the reply.
func ping(address string, data []byte) (string, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is4() {
		return "", words("the address is no IPv4 address")
	}
	raw := false
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		raw = true
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	packet := append([]byte{8, 0, 0, 0, 0x74, 0x72, 0, 1}, data...)
	binary.BigEndian.PutUint16(packet[2:], checksum(packet))
	if err := unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: ip.As4()}); err != nil {
		return "", err
	}
	buf := make([]byte, 64<<10)
	for until := time.Now().Add(answering); ready(fd, unix.POLLIN, until); {
		n, err := unix.Read(fd, buf)
		if err != nil || n <= 0 {
			continue
		}
		got := buf[:n]
		if raw {
			got = got[min(int(got[0]&15)*4, n):]
		}
		if len(got) >= 8 && got[0] == 0 { // an echo reply
			return string(got[8:]), nil
		}
	}
	return "", nil
}

// checksum is that of the Internet protocols.
func checksum(data []byte) uint16 {
	sum := uint32(0)
	for i, b := range data {
		if i%2 == 0 {
			sum += uint32(b) << 8
		} else {
			sum += uint32(b)
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// doResolve asks for the IPv4 addresses of a name.
func doResolve(_ *interp, s *Step) (string, error) {
	server := s.Address
	if server == "" {
		var err error
		if server, err = resolver(); err != nil {
			return "", err
		}
	}
	if ip, err := netip.ParseAddr(server); err == nil {
		server = netip.AddrPortFrom(ip, 53).String()
	}
	to, family, err := peer("udp", server)
	if err != nil {
		return "", err
	}
	question, err := query(s.Name)
	if err != nil {
		return "", err
	}
	fd, err := dial(family, unix.SOCK_DGRAM, to)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := writeAll(fd, question); err != nil {
		return "", err
	}
	if !ready(fd, unix.POLLIN, time.Now().Add(answering)) {
		return "", nil
	}
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		n = 0 // it was sent, which is what counts
	}
	return string(buf[:max(n, 0)]), nil
}

func resolver() (string, error) {
	text, err := readFile("/etc/resolv.conf", MaxText)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if parts := strings.Fields(line); len(parts) > 1 && parts[0] == "nameserver" {
			return parts[1], nil
		}
	}
	return "", words("no nameserver in /etc/resolv.conf")
}

// query is a DNS message that asks for a name's A records.
func query(name string) ([]byte, error) {
	out := []byte{0x74, 0x72, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, label := range strings.Split(strings.TrimSuffix(name, "."), ".") {
		if len(label) == 0 || len(label) > 63 {
			return nil, words("a label of the name has not 1 to 63 bytes")
		}
		out = append(append(out, byte(len(label))), label...)
	}
	return append(out, 0, 0, 1, 0, 1), nil
}

// doEcho connects to itself.
func doEcho(_ *interp, s *Step) (string, error) {
	const hello = "tranca"
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	var at unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	switch s.Network {
	case "udp":
		kind = unix.SOCK_DGRAM
	case "unix":
		family, at = unix.AF_UNIX, &unix.SockaddrUnix{Name: s.Path}
		if !strings.HasPrefix(s.Path, "@") {
			defer func() { _ = unix.Unlink(s.Path) }()
		}
	}
	l, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, at); err != nil {
		return "", err
	}
	if kind == unix.SOCK_STREAM {
		if err := unix.Listen(l, 1); err != nil {
			return "", err
		}
	}
	if at, err = unix.Getsockname(l); err != nil {
		return "", err
	}
	fd, err := dial(family, kind, at)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := writeAll(fd, []byte(hello)); err != nil {
		return "", err
	}
	if !ready(l, unix.POLLIN, time.Now().Add(connecting)) {
		return "", unix.ETIMEDOUT
	}
	from := l
	if kind == unix.SOCK_STREAM {
		if from, _, err = unix.Accept4(l, unix.SOCK_CLOEXEC); err != nil {
			return "", err
		}
		defer unix.Close(from)
	}
	buf := make([]byte, 64)
	n, err := unix.Read(from, buf)
	if err == nil && string(buf[:max(n, 0)]) != hello {
		err = words("other bytes came")
	}
	return string(buf[:max(n, 0)]), err
}

func doSocket(_ *interp, s *Step) (string, error) {
	fd, err := unix.Socket(s.Family, s.Type|unix.SOCK_CLOEXEC, s.Protocol)
	if err == nil {
		unix.Close(fd)
	}
	return "", err
}

// doAddaddr asks the kernel by netlink for an address on the first interface.
func doAddaddr(_ *interp, s *Step) (string, error) {
	ip, err := netip.ParseAddr(s.Address)
	if err != nil || !ip.Is4() {
		return "", words("the address is no IPv4 address")
	}
	index, err := firstInterface()
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	four := ip.As4()
	const flags = unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	m := make([]byte, 0, 40)
	m = binary.NativeEndian.AppendUint32(m, 40)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWADDR)
	m = binary.NativeEndian.AppendUint16(m, flags)
	m = append(m, 1, 0, 0, 0, 0, 0, 0, 0)          // sequence, sender
	m = append(m, unix.AF_INET, 32, 0, 0)          // family, prefix, flags, scope
	m = binary.NativeEndian.AppendUint32(m, index) // of the interface
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		m = binary.NativeEndian.AppendUint16(m, 8)
		m = binary.NativeEndian.AppendUint16(m, kind)
		m = append(m, four[:]...)
	}
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "", err
	}
	if !ready(fd, unix.POLLIN, time.Now().Add(connecting)) {
		return "", unix.ETIMEDOUT
	}
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "", err
	}
	if n < 20 || binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return "", words("the answer is none")
	}
	if no := int32(binary.NativeEndian.Uint32(buf[16:])); no != 0 {
		return "", unix.Errno(-no)
	}
	return "", nil
}

// firstInterface returns the lowest index of a network interface.
func firstInterface() (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("")
	for i := uint32(1); err == nil && i <= 64; i++ {
		r.SetUint32(i)
		if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, r) == nil {
			return i, nil
		}
	}
	return 0, unix.ENODEV
}

// doShm looks into a System V segment or, with data, makes it first.
func doShm(_ *interp, s *Step) (string, error) {
	key, err := number(s.Key)
	if err != nil {
		return "", err
	}
	data, err := dataBytes(s.Data)
	if err != nil {
		return "", err
	}
	size, flags, attach := 0, 0, unix.SHM_RDONLY
	if s.Data != "" {
		size, flags, attach = max(len(data), pageSize), unix.IPC_CREAT|0o666, 0
	}
	id, err := unix.SysvShmGet(int(int32(key)), size, flags)
	if err != nil {
		return "", err
	}
	mem, err := unix.SysvShmAttach(id, 0, attach)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.SysvShmDetach(mem) }()
	copy(mem, data)
	return strings.TrimRight(string(mem[:min(len(mem), pageSize)]), "\x00"), nil
}
