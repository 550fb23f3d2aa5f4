package landlock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/require"
)

// requireABI asks for a kernel with Landlock and returns its ABI.
func requireABI(t *testing.T) int {
	t.Helper()
	abi, err := ABI()
	require.Check(t, "landlock", err == nil, "no Landlock")
	return abi
}

// TestTableIsTheKernels offers every single right to the running kernel: it
// takes those of its ABI and no other.
func TestTableIsTheKernels(t *testing.T) {
	abi := requireABI(t)
	known := RightsOf(abi)
	for name, tc := range map[string]struct {
		has  uint64
		only func(bit uint64) Rights
	}{
		"files":   {known.Files, func(bit uint64) Rights { return Rights{Files: bit} }},
		"network": {known.Network, func(bit uint64) Rights { return Rights{Network: bit} }},
		"scopes":  {known.Scopes, func(bit uint64) Rights { return Rights{Scopes: bit} }},
	} {
		for i := range 64 {
			bit := uint64(1) << i
			fd, err := create(tc.only(bit))
			if err == nil {
				unix.Close(fd)
			}
			took := err == nil
			if took != (tc.has&bit != 0) && (abi <= Newest || !took) {
				t.Errorf("%s right %#x: the kernel of ABI %d answers %v, the table says %v",
					name, bit, abi, err, tc.has&bit != 0)
			}
		}
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	requireABI(t)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rule Rule
		err  error
		says string
	}{
		{Rule{Path: file, Access: ReadWrite}, nil, ""},
		{Rule{Path: dir, Access: allAccess}, nil, ""},
		{Rule{Path: file, Access: Connect}, nil, ""},
		{Rule{Path: dir}, ErrInvalid, "access 0x0"},
		{Rule{Path: dir, Access: allAccess + 1}, ErrInvalid, "access 0x80"},
		{Rule{Path: "", Access: Read}, ErrInvalid, "not absolute"},
		{Rule{Path: "etc", Access: Read}, ErrInvalid, "not absolute"},
		{Rule{Path: dir + "\x00", Access: Read}, ErrInvalid, "invalid argument"},
		{Rule{Path: link, Access: Read}, ErrInvalid, "symbolic link"},
		{Rule{Path: link + "/file", Access: Read}, ErrInvalid, "symbolic link"},
		{Rule{Path: dir + "/none", Access: Read}, ErrNotFound, "none"},
		{Rule{Path: file + "/none", Access: Read}, ErrNotFound, "none"},
	} {
		set, err := NewRuleset(Config{Rules: []Rule{tc.rule}})
		if err == nil {
			set.Close()
		}
		if !errors.Is(err, tc.err) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%+v: error %v, want %v that says %q", tc.rule, err, tc.err, tc.says)
		}
	}
}

// TestRulesetLeavesNothingOpen: a ruleset that fails halfway is closed, and so
// are the paths of its rules.
func TestRulesetLeavesNothingOpen(t *testing.T) {
	requireABI(t)
	dir := t.TempDir()
	before := openFiles(t)
	for range 10 {
		_, err := NewRuleset(Config{Rules: []Rule{{Path: dir, Access: Read}, {Path: dir + "/none", Access: Read}}})
		if err == nil {
			t.Fatal("a rule for a missing path was taken")
		}
		set, err := NewRuleset(Config{Rules: []Rule{{Path: dir, Access: Read}}})
		if err != nil {
			t.Fatal(err)
		}
		if flags, err := unix.FcntlInt(set.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Fatalf("the ruleset is not closed on exec: flags %#x, %v", flags, err)
		}
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestRestrictTakesOnlyRulesets(t *testing.T) {
	requireABI(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, fd := range []int{-1, int(null.Fd())} {
		if err := Restrict(fd); !errors.Is(err, ErrUnavailable) {
			t.Errorf("descriptor %d: %v, want an error that is ErrUnavailable", fd, err)
		}
	}
}
