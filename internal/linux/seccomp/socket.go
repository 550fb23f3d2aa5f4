package seccomp

import "golang.org/x/sys/unix"

// sockTypeMask keeps a socket's type; above it are SOCK_CLOEXEC and
// SOCK_NONBLOCK, and the kernel refuses anything else there.
const sockTypeMask = 0xf

// socketType leads on by a socket's type, which is argument 1.
func socketType(in []span, yes, no rule) rule {
	return &test{arg: 1, mask: sockTypeMask, in: in, yes: yes, no: no}
}

// socketRule allows TCP and UDP, of the sandbox's own network namespace, and
// where the profile says so, unix sockets. Every other family is refused by not
// being named: packet, netlink, vsock, the kernel's cryptography and all that a
// module would be loaded for. For want of netlink, the resolver takes both IP
// families for usable, and listing interfaces fails.
//
// The protocol is judged too: SOCK_DGRAM with ICMP makes a ping socket, and
// SOCK_STREAM with SCTP or MPTCP loads other code than TCP.
func socketRule(p Profile) rule {
	protocol := refuse(unix.EPROTONOSUPPORT)
	datagram := allowIf(2, only(0, unix.IPPROTO_UDP), protocol)
	stream := allowIf(2, only(0, unix.IPPROTO_TCP), protocol)
	inet := socketType(only(unix.SOCK_STREAM), stream,
		socketType(only(unix.SOCK_DGRAM), datagram, notPermitted))
	var unixSocket rule = refuse(unix.EACCES)
	if p.UnixSockets {
		unixSocket = unixType(p)
	}
	return &test{
		arg: 0, mask: allBits, in: only(unix.AF_INET, unix.AF_INET6), yes: inet,
		no: &test{
			arg: 0, mask: allBits, in: only(unix.AF_UNIX), yes: unixSocket,
			no: refuse(unix.EAFNOSUPPORT),
		},
	}
}

// socketPairRule allows pairs of unix sockets. A connected stream or seqpacket
// socket cannot be given another peer; a datagram socket can, by connect and by
// each sendto, and would reach any socket file that the code can see. So
// without unix sockets there are no datagram pairs. SOCK_RAW is out because the
// kernel takes it for SOCK_DGRAM.
func socketPairRule(p Profile) rule {
	return &test{
		arg: 0, mask: allBits, in: only(unix.AF_UNIX), yes: unixType(p),
		no: refuse(unix.EAFNOSUPPORT),
	}
}

// unixType allows the types of unix socket that a profile has.
func unixType(p Profile) rule {
	if p.UnixSockets {
		return socketType(only(unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET), allow, notPermitted)
	}
	return socketType(only(unix.SOCK_STREAM, unix.SOCK_SEQPACKET), allow, refuse(unix.EACCES))
}

// socketOptionRule refuses to attach filter programs to sockets and to load
// protocols on top of TCP; the errno is that of a kernel without them.
func socketOptionRule() rule {
	no := refuse(unix.ENOPROTOOPT)
	filters := &test{
		arg: 2, mask: allBits,
		in: only(unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF,
			unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF),
		yes: no, no: allow,
	}
	upper := &test{arg: 2, mask: allBits, in: only(unix.TCP_ULP), yes: no, no: allow}
	return &test{
		arg: 1, mask: allBits, in: only(unix.SOL_SOCKET), yes: filters,
		no: &test{arg: 1, mask: allBits, in: only(unix.IPPROTO_TCP), yes: upper, no: allow},
	}
}
