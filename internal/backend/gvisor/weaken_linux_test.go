//go:build tranca_weaken

package gvisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/hostiletest"
)

// TestWeakened: each switch of package weaken takes its guarantee away. The
// death of a supervisor is TestWeakenedLifetime's.
func TestWeakened(t *testing.T) {
	b := newBackend(t)
	losses := slices.Concat(hostiletest.Losses(), lostTree(), lostKernel())
	hostiletest.Weakened(t, b, b.Report, func() tranca.Policy { return testPolicy(b) }, losses, tranca.ItemLifetime)
}

func lostTree() []hostiletest.Loss {
	return []hostiletest.Loss{
		hostiletest.CopyLoss(),
		hostiletest.MountedDeviceLoss(),
		{
			Item: tranca.ItemIPC,
			Scene: func(s *hostiletest.Stage) {
				l := &hostiletest.Listener{}
				l.Serve(s, "unix", filepath.Join(s.Dir, "socket"))
				s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/m"}}
				s.Effect["a socket in a mount"] = l.Hit
			},
			Program: `
attempt('a socket in a mount', lambda: socket.socket(socket.AF_UNIX).connect('/m/socket'))
time.sleep(0.2)` + hostiletest.Alive,
		},
	}
}

func lostKernel() []hostiletest.Loss {
	return []hostiletest.Loss{
		{
			Item: tranca.ItemProcesses, Scene: (*hostiletest.Stage).Neighbour,
			Program: "\nreads('see', lambda: read('/proc/%d/cmdline' % V['pid']))" + hostiletest.Alive,
		},
		{
			Item:  tranca.ItemNetwork,
			Scene: func(s *hostiletest.Stage) { s.Effect["tcp"] = s.Serve().Hit },
			Program: `
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', V['port']), 5))
time.sleep(0.1)` + hostiletest.Alive,
		},
		{
			Item: tranca.ItemUser,
			Look: func(s *hostiletest.Stage) bool { return sentryStatus(s, "Uid") == strconv.Itoa(os.Geteuid()) },
		},
		{
			Item: tranca.ItemPrivileges,
			Program: `
status = dict(l.rstrip('\n').split(':\t', 1) for l in open('/proc/self/status') if ':\t' in l)
attempt('rights', lambda: expect('some', int(status['CapEff'], 16)))` + hostiletest.Alive,
		},
		{
			Item: tranca.ItemPrivileges,
			Look: func(s *hostiletest.Stage) bool { return sentryStatus(s, "CapEff") != "0000000000000000" },
		},
		{
			Item: tranca.ItemSyscalls,
			Look: func(s *hostiletest.Stage) bool { return sentryStatus(s, "Seccomp") == "0" },
		},
	}
}

// sentryStatus is the first word of a field of the Sentry's status, as the host
// sees it.
func sentryStatus(s *hostiletest.Stage, name string) string {
	s.Helper()
	for _, k := range descendants(s, os.Getpid()) {
		if roleOf(k) == "Sentry" {
			word, _, _ := strings.Cut(k.status[name], "\t")
			return word
		}
	}
	s.Fatal("there is no Sentry")
	return ""
}
