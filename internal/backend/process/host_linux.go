package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/idrange"
	"tranca/internal/linux/supervisor"
)

// hostState is what was found out about the host, and what is shared by all
// sandboxes of a backend.
type hostState struct {
	root    bool
	self    *supervisor.Supervisor
	tree    *cgroup.Tree
	groups  *cgroup.Tree // tree where it can do anything at all, else nil
	support cgroup.Support
	report  tranca.Report

	ids                 *idrange.Pool // nil where only the caller's own user is to be had
	idsMissing, idsMend string
}

// openHost looks at the host and sweeps what dead supervisors left.
func openHost(o Options) (*hostState, error) {
	raiseDescriptors()
	self, err := supervisor.Open(o.RuntimeFolder)
	if err != nil {
		return nil, err
	}
	h := &hostState{root: os.Geteuid() == 0, self: self}
	if err := cgroup.Sweep(self); err != nil {
		// Somebody else's leftovers are no reason not to run.
		h.report.Facts = map[string]string{"sweep": err.Error()}
	}
	h.tree, err = cgroup.Find(cgroup.Options{
		ID: self.ID(), Paths: o.CgroupPaths,
		Note: func(path string) error { return self.Note("cgroup", path) },
	})
	if err != nil {
		return nil, errors.Join(err, self.Close())
	}
	h.support = h.tree.Support()
	if h.support.Version != "none" && h.support.Kill.Held {
		h.groups = h.tree
	}
	h.openIDs(o)
	sweep := h.report.Facts
	h.report = tranca.Report{Backend: Name, Level: tranca.LevelProcess, Guarantees: h.guarantees(), Facts: h.facts()}
	for k, v := range sweep {
		h.report.Facts[k] = v
	}
	return h, nil
}

func (h *hostState) openIDs(o Options) {
	pool, err := idrange.Open(idrange.Options{Folder: o.RuntimeFolder})
	var lack *idrange.Missing
	switch {
	case err == nil:
		h.ids = pool
		if err := pool.Sweep(); err != nil && h.report.Facts == nil {
			h.report.Facts = map[string]string{"sweep": err.Error()}
		}
	case errors.As(err, &lack):
		h.idsMissing, h.idsMend = lack.What, lack.Mend
	default:
		h.idsMissing = err.Error()
	}
}

func (h *hostState) holds(item tranca.Item) bool { return h.report.Holds(item) }

func (h *hostState) close() error {
	var errs []error
	if h.ids != nil {
		errs = append(errs, h.ids.Close())
	}
	return errors.Join(append(errs, h.tree.Close(), h.self.Close())...)
}

// raiseDescriptors lets this process have as many descriptors as it may: each
// sandbox takes some fifteen.
func raiseDescriptors() {
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

// enterGroups puts the agent into its leaf and tells it how code gets into
// the other.
func (b *Backend) enterGroups(s *forkexec.Script, m *box, pl *plan, fds *[]int) error {
	agent, code := m.group.Agent(), m.group.Code()
	if agent.Dir != nil {
		s.IntoCgroup(int(agent.Dir.Fd()))
	}
	for _, t := range agent.Tasks {
		s.Join(int(t.Fd()))
	}
	for _, t := range code.Tasks {
		pl.boot.TaskFDs = append(pl.boot.TaskFDs, len(*fds))
		*fds = append(*fds, int(t.Fd()))
	}
	pl.boot.ReopenTasks = code.Reopen
	if code.Dir == nil {
		return nil
	}
	if !code.Detached {
		pl.boot.CodeCgroup = code.Dir.Name()
		return nil
	}
	pl.boot.CodeCgroupFD = len(*fds)
	*fds = append(*fds, int(code.Dir.Fd()))
	return nil
}

// codeIDs are the code's user and group on the host.
func (b *Backend) codeIDs(m *box) (uid, gid uint32) {
	return m.block.UID + 1, m.block.GID + 1
}

// mapUsers maps the agent's and the code's users into the child.
func (b *Backend) mapUsers(ctx context.Context, pid int, m *box, pl *plan) error {
	inside := pl.policy.User
	if pl.single {
		own := []idMap{{inside.UID, uint32(os.Geteuid())}}
		return writeMaps(pid, own, []idMap{{inside.GID, uint32(os.Getegid())}}, false)
	}
	uid, gid := b.codeIDs(m)
	uids := []idMap{{0, m.block.UID}, {inside.UID, uid}}
	gids := []idMap{{0, m.block.GID}, {inside.GID, gid}}
	if b.sharesUser(pl.policy) {
		uids[1].outside, gids[1].outside = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	if err := b.host.ids.Map(ctx, pid, lines(uids), lines(gids)); err != nil {
		return fmt.Errorf("map users: %w", err)
	}
	return nil
}

func lines(maps []idMap) []idrange.Line {
	out := make([]idrange.Line, len(maps))
	for i, m := range maps {
		out[i] = idrange.Line{Inside: m.inside, Outside: m.outside, Count: 1}
	}
	return out
}
