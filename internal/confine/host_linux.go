package confine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/idrange"
	"tranca/internal/linux/supervisor"
)

// Options say what the operator decides about the host.
type Options struct {
	// CgroupPaths are delegated cgroup folders to use; see package cgroup.
	CgroupPaths []string
	// RuntimeFolder is where supervisors keep their locks; empty means the
	// usual one.
	RuntimeFolder string
}

// Host is what was found out about the host, and what is shared by all
// sandboxes of a backend.
type Host struct {
	// Backend is the name that refusals carry.
	Backend string
	// Root says that this process is the host's root.
	Root bool
	// Groups is where control groups are made, nil where they can do nothing.
	Groups  *cgroup.Tree
	Support cgroup.Support
	// IDs gives each sandbox users of its own. It is nil where only the
	// caller's own user is to be had; IDsMissing and IDsMend then say why.
	IDs                 *idrange.Pool
	IDsMissing, IDsMend string
	// SweepFault is what went wrong when leftovers of the dead were removed.
	SweepFault string

	self *supervisor.Supervisor
	tree *cgroup.Tree
}

// OpenHost looks at the host and sweeps what dead supervisors left.
func OpenHost(backend string, o Options) (*Host, error) {
	RaiseDescriptors()
	self, err := supervisor.Open(o.RuntimeFolder)
	if err != nil {
		return nil, err
	}
	h := &Host{Backend: backend, Root: os.Geteuid() == 0, self: self}
	if err := cgroup.Sweep(self); err != nil {
		// Somebody else's leftovers are no reason not to run.
		h.SweepFault = err.Error()
	}
	h.tree, err = cgroup.Find(cgroup.Options{
		ID: self.ID(), Paths: o.CgroupPaths,
		Note: func(path string) error { return self.Note("cgroup", path) },
	})
	if err != nil {
		return nil, errors.Join(err, self.Close())
	}
	h.Support = h.tree.Support()
	if h.Support.Version != "none" && h.Support.Kill.Held {
		h.Groups = h.tree
	}
	h.openIDs(o)
	return h, nil
}

func (h *Host) openIDs(o Options) {
	pool, err := idrange.Open(idrange.Options{Folder: o.RuntimeFolder})
	var lack *idrange.Missing
	switch {
	case err == nil:
		h.IDs = pool
		if err := pool.Sweep(); err != nil && h.SweepFault == "" {
			h.SweepFault = err.Error()
		}
	case errors.As(err, &lack):
		h.IDsMissing, h.IDsMend = lack.What, lack.Mend
	default:
		h.IDsMissing = err.Error()
	}
}

// Close frees what was opened. No sandbox may be left.
func (h *Host) Close() error {
	var errs []error
	if h.IDs != nil {
		errs = append(errs, h.IDs.Close())
	}
	return errors.Join(append(errs, h.tree.Close(), h.self.Close())...)
}

// RaiseDescriptors lets this process have as many descriptors as it may: each
// sandbox takes some fifteen.
func RaiseDescriptors() {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil && r.Cur < r.Max {
		r.Cur = r.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &r) // what it has stays
	}
}

// newName is a name that no other sandbox of this supervisor has.
func newName() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Enter puts what the script starts into a leaf of the sandbox's groups.
func Enter(s *forkexec.Script, leaf cgroup.Entry) {
	if leaf.Dir != nil {
		s.IntoCgroup(int(leaf.Dir.Fd()))
	}
	for _, t := range leaf.Tasks {
		s.Join(int(t.Fd()))
	}
}

// tellGroup tells the agent how code gets into its own leaf.
func (pl *Plan) tellGroup(code cgroup.Entry, fds *[]int) {
	for _, t := range code.Tasks {
		pl.Boot.TaskFDs = append(pl.Boot.TaskFDs, len(*fds))
		*fds = append(*fds, int(t.Fd()))
	}
	pl.Boot.ReopenTasks = code.Reopen
	if code.Dir == nil {
		return
	}
	if !code.Detached {
		pl.Boot.CodeCgroup = code.Dir.Name()
		return
	}
	pl.Boot.CodeCgroupFD = len(*fds)
	*fds = append(*fds, int(code.Dir.Fd()))
}

// codeIDs are the code's user and group on the host.
func (pl *Plan) codeIDs(a *Allotment) (uid, gid uint32) {
	if pl.Callers {
		return uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return a.CodeIDs()
}

// CodeIDs are those that are the sandbox's own.
func (a *Allotment) CodeIDs() (uid, gid uint32) {
	return a.Block.UID + 1, a.Block.GID + 1
}

// MapUsers maps the agent's and the code's users into the child.
func (h *Host) MapUsers(ctx context.Context, pid int, a *Allotment, pl *Plan) error {
	inside := pl.Policy.User
	if pl.Single {
		own := []IDMap{{inside.UID, uint32(os.Geteuid())}}
		return WriteMaps(pid, own, []IDMap{{inside.GID, uint32(os.Getegid())}}, false)
	}
	uid, gid := a.CodeIDs()
	uids := []IDMap{{0, a.Block.UID}, {inside.UID, uid}}
	gids := []IDMap{{0, a.Block.GID}, {inside.GID, gid}}
	if h.SharesUser(pl.Policy) || pl.Callers {
		uids[1].Outside, gids[1].Outside = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	if err := h.IDs.Map(ctx, pid, lines(uids), lines(gids)); err != nil {
		return fmt.Errorf("map users: %w", err)
	}
	return nil
}

func lines(maps []IDMap) []idrange.Line {
	out := make([]idrange.Line, len(maps))
	for i, m := range maps {
		out[i] = idrange.Line{Inside: m.Inside, Outside: m.Outside, Count: 1}
	}
	return out
}
