package process

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/hostiletest"
)

// The statement on the user says what is so: whether the code's user on the
// host is the caller's own is looked up from outside.
func TestStatementOnTheUser(t *testing.T) {
	b := newBackend(t)
	b.needs(t, "ids")
	for _, mounted := range []bool{false, true} {
		s := (&row{}).newScene(t, b, false)
		if mounted {
			s.policy.Mounts = []tranca.Mount{{Source: s.dir, Target: "/m"}}
		}
		sb := s.open(nil)
		_, err := sb.Start(t.Context(), tranca.Command{Args: s.argv(`time.sleep(60)`)})
		if err != nil {
			t.Fatal(err)
		}
		hostiletest.Eventually(t, "it runs", func() bool { return len(s.marked()) > 0 })
		own := userOf(t, s.marked()[0]) == os.Geteuid()
		var stated tranca.Status
		for _, e := range sb.Enforcement() {
			if e.Item == tranca.ItemUser {
				stated = e.Status
			}
		}
		if (stated == tranca.StatusEnforced) == own {
			t.Errorf("mounted %v: stated as %s, and the caller's own user: %v", mounted, stated, own)
		}
		if own != (mounted && os.Geteuid() != 0) {
			t.Errorf("mounted %v: the caller's own user: %v", mounted, own)
		}
		closeBox(t, sb)
	}
}

// userOf returns the user of a process as the host sees it.
func userOf(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Uid:" {
			uid, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return uid
		}
	}
	t.Fatalf("process %d has no user", pid)
	return -1
}
