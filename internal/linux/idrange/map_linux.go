package idrange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"tranca"
)

// Line maps ids of a user namespace to ids of the host.
type Line struct {
	Inside  uint32
	Outside uint32
	Count   uint32
}

// helpers are the programs by which a user other than root maps his
// subordinate ids.
type helpers struct{ uid, gid string }

const mendHelpers = "apt-get install uidmap"

func findHelpers() (*helpers, error) {
	uid, err1 := exec.LookPath("newuidmap")
	gid, err2 := exec.LookPath("newgidmap")
	if err := errors.Join(err1, err2); err != nil {
		return nil, &Missing{
			What: "newuidmap or newgidmap is not installed: " + strings.ReplaceAll(err.Error(), "\n", "; "),
			Mend: mendHelpers,
		}
	}
	return &helpers{uid, gid}, nil
}

// Map sets the id maps of a process that has just been made in a user
// namespace of its own. Each map can be set once. The ids outside must be of
// blocks that the caller holds, or the caller's own.
func (p *Pool) Map(ctx context.Context, pid int, uids, gids []Line) error {
	if pid <= 0 || len(uids) == 0 || len(gids) == 0 {
		return fmt.Errorf("map ids of process %d: no process or no ids: %w", pid, tranca.ErrInvalid)
	}
	if p.helpers == nil {
		return errors.Join(writeMap(pid, "uid_map", uids), writeMap(pid, "gid_map", gids))
	}
	// Side by side: each takes some milliseconds.
	failed := make(chan error, 1)
	go func() { failed <- runHelper(ctx, p.helpers.gid, pid, gids) }()
	err := runHelper(ctx, p.helpers.uid, pid, uids)
	return errors.Join(err, <-failed)
}

func writeMap(pid int, file string, lines []Line) error {
	var b bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&b, "%d %d %d\n", l.Inside, l.Outside, l.Count)
	}
	if err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/"+file, b.Bytes(), 0); err != nil {
		return fmt.Errorf("map ids: %w", err)
	}
	return nil
}

func runHelper(ctx context.Context, program string, pid int, lines []Line) error {
	args := []string{strconv.Itoa(pid)}
	for _, l := range lines {
		for _, n := range []uint32{l.Inside, l.Outside, l.Count} {
			args = append(args, strconv.FormatUint(uint64(n), 10))
		}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{} // it is privileged; it needs nothing of ours
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// tryTimeout bounds the trial of the helpers.
const tryTimeout = 5 * time.Second

// try maps one block into a process that is made for it.
func (p *Pool) try() error {
	b, err := p.Acquire()
	if err != nil {
		return err
	}
	defer b.Release()
	pid, end, err := newUserNamespace()
	if err != nil {
		return &Missing{
			What: "this user may not make a user namespace: " + err.Error(),
			Mend: "tranca setup --print",
		}
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	if err := p.Map(ctx, pid, []Line{{0, b.UID, b.Count}}, []Line{{0, b.GID, b.Count}}); err != nil {
		return &Missing{
			What: "newuidmap or newgidmap does not work: " + err.Error(),
			Mend: "apt-get install --reinstall uidmap",
		}
	}
	return nil
}
