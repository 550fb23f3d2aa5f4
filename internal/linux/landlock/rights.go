package landlock

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Newest is the newest ABI that this package knows.
const Newest = 10

// Rights are masks of what a ruleset can handle.
type Rights struct {
	Files   uint64 // LANDLOCK_ACCESS_FS_
	Network uint64 // LANDLOCK_ACCESS_NET_
	Scopes  uint64 // LANDLOCK_SCOPE_
}

// step is what one ABI added.
type step struct {
	abi   int
	adds  Rights
	words []string // what its absence leaves open
}

// steps lists all ABIs, oldest first.
func steps() []step {
	return []step{
		{1, Rights{Files: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}, []string{"all file rights"}},
		// Without REFER, files can't be moved between folders at all.
		{2, Rights{Files: unix.LANDLOCK_ACCESS_FS_REFER}, nil},
		{3, Rights{Files: unix.LANDLOCK_ACCESS_FS_TRUNCATE}, []string{"truncating files"}},
		{4, Rights{Network: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
			[]string{"TCP"}},
		{5, Rights{Files: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, []string{"ioctl on devices"}},
		{6, Rights{Scopes: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
			[]string{"abstract unix sockets", "signals"}},
		{7, Rights{}, nil}, // flags for audit logs
		{8, Rights{}, nil}, // restricting all threads at once
		{9, Rights{Files: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}, []string{"unix sockets by path"}},
		{10, Rights{Network: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
			[]string{"UDP"}},
	}
}

// RightsOf returns everything that an ABI can handle. An ABI below 1 handles
// nothing, one above [Newest] is taken as Newest.
func RightsOf(abi int) Rights {
	var r Rights
	for _, s := range steps() {
		if s.abi <= abi {
			r.Files |= s.adds.Files
			r.Network |= s.adds.Network
			r.Scopes |= s.adds.Scopes
		}
	}
	return r
}

// Lacks says in words what an ABI can't restrict and [Newest] can. It is empty
// for Newest and above.
func Lacks(abi int) []string {
	var out []string
	for _, s := range steps() {
		if s.abi > abi {
			out = append(out, s.words...)
		}
	}
	return out
}

// Statement says for people what a ruleset made from cfg under an ABI enforces
// and what it leaves to other mechanisms.
func Statement(cfg Config, abi int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Landlock ABI %d, all file rights and scopes of it", abi)
	if cfg.HandleNetwork {
		b.WriteString(", no network port")
	} else {
		b.WriteString("; network not handled (left to the network namespace)")
	}
	if lacks := Lacks(abi); len(lacks) > 0 {
		fmt.Fprintf(&b, "; this ABI can't restrict: %s", strings.Join(lacks, ", "))
	}
	return b.String()
}
