package boot

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
)

// givenCaps are what an engine is asked to give the agent: its own, and the right
// to empty the bounding set, which goes with the others.
const givenCaps = agentCaps | 1<<unix.CAP_SETPCAP

// auditRights looks at what somebody else has left this process of rights.
func auditRights(spec *bootspec.Spec) error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		set, ok := statusField(string(text), name)
		caps, err := strconv.ParseUint(set, 16, 64)
		if !ok || err != nil {
			return fmt.Errorf("%s is %q in /proc/self/status", name, set)
		}
		if caps&^givenCaps != 0 {
			return fmt.Errorf("%s holds capabilities that nobody asked for: %#x", name, caps&^givenCaps)
		}
	}
	if spec.Filtered && !filtered() {
		return errors.New("the system call filter is not the one that was asked for")
	}
	return nil
}

func statusField(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// filtered tries two calls that do nothing, which engines' own filters allow
// and tranca's refuses.
func filtered() bool {
	none := []unix.Iovec{}
	_, err := unix.ProcessVMReadv(os.Getpid(), none, nil, 0)
	if err != unix.EPERM {
		return false
	}
	_, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	return err == unix.EPERM
}
