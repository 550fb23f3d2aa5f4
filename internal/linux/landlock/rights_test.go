package landlock

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// masks are the rights of each ABI, written down as numbers.
var masks = map[int]Rights{
	-1: {},
	0:  {},
	1:  {Files: 0x1fff},
	2:  {Files: 0x3fff},
	3:  {Files: 0x7fff},
	4:  {Files: 0x7fff, Network: 0x3},
	5:  {Files: 0xffff, Network: 0x3},
	6:  {Files: 0xffff, Network: 0x3, Scopes: 0x3},
	7:  {Files: 0xffff, Network: 0x3, Scopes: 0x3},
	8:  {Files: 0xffff, Network: 0x3, Scopes: 0x3},
	9:  {Files: 0x1ffff, Network: 0x3, Scopes: 0x3},
	10: {Files: 0x1ffff, Network: 0xf, Scopes: 0x3},
	11: {Files: 0x1ffff, Network: 0xf, Scopes: 0x3},
}

func TestRightsOf(t *testing.T) {
	for abi, want := range masks {
		if diff := cmp.Diff(want, RightsOf(abi)); diff != "" {
			t.Errorf("ABI %d (-want +got):\n%s", abi, diff)
		}
	}
	if masks[Newest] != masks[Newest+1] || masks[Newest] == masks[Newest-1] {
		t.Error("Newest is not the last ABI that adds something")
	}
}

func TestLacks(t *testing.T) {
	for abi, want := range map[int]string{
		1:  "truncating files, TCP, ioctl on devices, abstract unix sockets, signals, unix sockets by path, UDP",
		3:  "TCP, ioctl on devices, abstract unix sockets, signals, unix sockets by path, UDP",
		5:  "abstract unix sockets, signals, unix sockets by path, UDP",
		7:  "unix sockets by path, UDP",
		9:  "UDP",
		10: "",
		12: "",
	} {
		if got := strings.Join(Lacks(abi), ", "); got != want {
			t.Errorf("ABI %d lacks %q, want %q", abi, got, want)
		}
	}
}

func TestStatement(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		abi  int
		want string
	}{
		{Config{}, 7, "Landlock ABI 7, all file rights and scopes of it; network not handled (left to the network namespace); this ABI can't restrict: unix sockets by path, UDP"},
		{Config{HandleNetwork: true}, 10, "Landlock ABI 10, all file rights and scopes of it, no network port"},
	} {
		if got := Statement(tc.cfg, tc.abi); got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
	}
}

func TestConfigRights(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  Config
		abi  int
		want Rights
		err  error
		says string
	}{
		{"least", Config{}, 1, Rights{Files: 0x1fff}, nil, ""},
		{"network left alone", Config{}, 10, Rights{Files: 0x1ffff, Scopes: 3}, nil, ""},
		{"network", Config{HandleNetwork: true}, 4, Rights{Files: 0x7fff, Network: 3}, nil, ""},
		{"network too early", Config{HandleNetwork: true}, 3, Rights{}, ErrUnavailable, "needs Landlock ABI 4, this kernel has 3"},
		{"as asked", Config{MinABI: 6}, 6, Rights{Files: 0xffff, Scopes: 3}, nil, ""},
		{"too old", Config{MinABI: 6}, 5, Rights{}, ErrUnavailable, "needs Landlock ABI 6, this kernel has 5"},
		{"none", Config{}, 0, Rights{}, ErrUnavailable, "needs Landlock ABI 1, this kernel has 0"},
		{"from the future", Config{MinABI: 11}, 12, Rights{}, ErrUnsupported, "knows up to 10"},
		{"a newer kernel", Config{MinABI: 10}, 12, Rights{Files: 0x1ffff, Scopes: 3}, nil, ""},
	} {
		got, err := tc.cfg.rights(tc.abi)
		if !errors.Is(err, tc.err) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: error %v, want %v that says %q", tc.name, err, tc.err, tc.says)
		}
		if got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, tc := range []struct {
		name         string
		access       Access
		folder, file uint64
	}{
		{"Read", Read, 0xc, 0x4},
		{"Execute", Execute, 0x1, 0x1},
		{"ReadExec", ReadExec, 0xd, 0x5},
		{"Write", Write, 0x77b2, 0x4002},
		{"ReadWrite", ReadWrite, 0x77bf, 0x4007},
		{"Device", Device, 0x6, 0x6},
		{"Terminal", Terminal, 0x8006, 0x8006},
		{"Connect", Connect, 0x10000, 0x10000},
	} {
		if got := tc.access.allowed(masks[Newest].Files, true); got != tc.folder {
			t.Errorf("%s on a folder: %#x, want %#x", tc.name, got, tc.folder)
		}
		if got := tc.access.allowed(masks[Newest].Files, false); got != tc.file {
			t.Errorf("%s on a file: %#x, want %#x", tc.name, got, tc.file)
		}
		for abi := range masks {
			if got := tc.access.allowed(masks[abi].Files, true); got&^masks[abi].Files != 0 {
				t.Errorf("%s under ABI %d: %#x has rights that are not handled", tc.name, abi, got)
			}
		}
	}
	const devices uint64 = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	if got := allAccess.allowed(^uint64(0), true); got != masks[Newest].Files&^devices {
		t.Errorf("everything is %#x, want all but making devices", got)
	}
}
