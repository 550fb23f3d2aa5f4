package engine

import (
	"context"

	"tranca"
	"tranca/internal/hostfiles"
	"tranca/internal/policy"
)

// snapshot looks at the writable mounts before a run; nil where there is none.
// It is taken before the sandbox runs anything, and compared when the tree is
// dead, so that nothing the code does can be under way meanwhile.
func snapshot(ctx context.Context, mounts []tranca.Mount) *mountState {
	var roots []hostfiles.Root
	for _, m := range mounts {
		if m.Writable {
			roots = append(roots, hostfiles.Root{
				Source: m.Source, Target: m.Target, Deny: m.Deny,
				HostExecutable: func(name string) bool { return hostExecutable(name, m.Protect) },
			})
		}
	}
	if len(roots) == 0 {
		return nil
	}
	return &mountState{hostfiles.Take(ctx, roots, hostfiles.Bounds{})}
}

// hostExecutable judges by the mount's own list and by the default one: a
// mount that protects less still tells what changed.
func hostExecutable(name string, protect []string) bool {
	return policy.HostExecutable(name, protect) || policy.HostExecutable(name, policy.DefaultProtect())
}

// mountState is what writable mounts held before a run.
type mountState struct{ before *hostfiles.Snapshot }

// into puts the changes since then into a result.
func (s *mountState) into(ctx context.Context, res *tranca.Result) {
	if s == nil {
		return
	}
	changes, notes := s.before.Changes(context.WithoutCancel(ctx))
	addChanges(res, changes)
	res.Notes = append(res.Notes, notes...)
}

// addChanges adds to a result's changes, within the bound of one look.
func addChanges(res *tranca.Result, more []tranca.Change) {
	all, note := hostfiles.Most(append(res.Changes, more...), hostfiles.Bounds{})
	res.Changes = all
	if note != "" {
		res.Notes = append(res.Notes, note)
	}
}
