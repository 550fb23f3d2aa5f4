//go:build tranca_weaken

package process

import (
	"os"
	"slices"
	"testing"

	"tranca"
	"tranca/internal/hostiletest"
)

// TestWeakened: each switch of package weaken takes its guarantee away. The
// death of a supervisor is TestWeakenedLifetime's.
func TestWeakened(t *testing.T) {
	b := newBackend(t)
	losses := slices.Concat(hostiletest.Losses(), hostiletest.HostKernelLosses(), lostTree())
	hostiletest.Weakened(t, b, b.Report, func() tranca.Policy { return testPolicy(b) }, losses, tranca.ItemLifetime)
}

func lostTree() []hostiletest.Loss {
	return []hostiletest.Loss{
		hostiletest.CopyLoss(),
		{
			Item: tranca.ItemMountDisk,
			Scene: func(s *hostiletest.Stage) {
				s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/cow", Cow: true}}
				s.Policy.Limits.Disk.Size = 1 << 20
				s.Effect["fill"] = func() bool { fi, err := os.Stat(s.Dir + "/big"); return err == nil && fi.Size() == 4<<20 }
			},
			Program: `
def fill():
    with open('/cow/big', 'wb') as f:
        for _ in range(4): f.write(bytes(1 << 20))
attempt('fill', fill)
os.truncate('/cow/big', os.stat('/cow/big').st_size & (4 << 20))` + hostiletest.Alive,
		},
		{
			Item: tranca.ItemDevices,
			Scene: func(s *hostiletest.Stage) {
				s.Vars["node"] = hostiletest.HostNode(s)
				s.Policy.Mounts = []tranca.Mount{{Source: "/dev", Target: "/d"}}
			},
			Program: `
attempt('see a device of the host', lambda: expect('a device', stat.S_ISCHR(os.stat(V['node']).st_mode)))
attempt('open one in a mount', lambda: expect('zeros', read('/d/zero') == bytes(4096)))` + hostiletest.Alive,
		},
	}
}
