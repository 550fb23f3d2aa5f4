package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// candidate is one folder in which the v2 groups could be made.
type candidate struct {
	base string
	// move says that this process lives there itself, and has to go into a
	// leaf before controllers can be enabled for the groups below.
	move bool
}

// findV2 finds a place in the v2 tree, where it can bring something that v1
// does not.
func (f *finder) findV2(t *Tree) error {
	i := slices.IndexFunc(f.mounts, func(m mount) bool { return m.v2 })
	if i < 0 {
		return nil
	}
	need := f.needV2()
	s := &t.support
	if len(need) == 0 && s.CPUTime.Held && s.PIDs.Held && !f.V2 {
		return nil
	}
	m := f.mounts[i]
	best, err := f.bestV2(m, need)
	if err != nil {
		return err
	}
	if best.h == nil && len(need) > 0 && f.euid != 0 {
		if best, err = f.viaSystemd(m, need, best); err != nil {
			return err
		}
	}
	for c, feature := range best.features {
		// What v1 can do it does, but for the CPU time: that costs v1 a group.
		if into := s.of(c); feature.Held || !into.Held {
			*into = feature
		}
	}
	if best.h != nil && best.h.has(ctlCPUAcct) {
		if err := t.dropV1(ctlCPUAcct); err != nil {
			return errors.Join(err, best.h.close())
		}
	}
	t.v2 = best.h
	return nil
}

// dropV1 gives up a v1 controller, and its folder if nothing else needs it.
func (t *Tree) dropV1(controller string) error {
	for i, h := range t.v1 {
		h.controllers = slices.DeleteFunc(h.controllers, func(c string) bool { return c == controller })
		if len(h.controllers) == 0 {
			t.v1 = slices.Delete(t.v1, i, i+1)
			return h.close()
		}
	}
	return nil
}

// needV2 lists the controllers that v2 must bring: those that no v1 mount
// carries. On a hybrid host that is none of them.
func (f *finder) needV2() []string {
	var need []string
	for _, c := range []string{ctlMemory, ctlPIDs, ctlCPU} {
		if !slices.ContainsFunc(f.mounts, func(m mount) bool {
			return !m.v2 && slices.Contains(m.controllers, c)
		}) {
			need = append(need, c)
		}
	}
	return need
}

// outcome is what came of one candidate.
type outcome struct {
	h        *hierarchy // nil if no folder could be made
	features map[string]Feature
	held     int
}

// bestV2 tries the candidates until one has everything, and keeps the one
// that has the most.
func (f *finder) bestV2(m mount, need []string) (outcome, error) {
	own, seen := f.own(m)
	var best outcome
	for _, c := range f.candidates(m, own, seen, need) {
		got := f.tryV2(c, own, need)
		if got.held > best.held || best.features == nil {
			best, got = got, best
		}
		if got.h != nil {
			if err := got.h.close(); err != nil {
				return outcome{}, err
			}
		}
		if best.held == len(need)+2 {
			break
		}
	}
	if best.h != nil && best.held == 0 {
		if err := best.h.close(); err != nil {
			return outcome{}, err
		}
		best.h = nil
	}
	if best.features == nil {
		best.features = f.allMissing(need, Feature{
			Missing: "this process's group can't be seen through " + m.point,
			Mend:    "mount a cgroup2 file system of this cgroup namespace",
		})
	}
	return best, nil
}

// candidates lists the folders to try, the best first:
//
//   - what the operator named;
//   - the nearest folder at or above our own that systemd has delegated;
//   - our own, where it is the root of all (then it may hold processes and
//     limited children), or where no controller is needed;
//   - the nearest folder above our own in which this user may write. For root
//     that makes our groups siblings of our own one, so they stay within the
//     limits of the slice or container, and no process of others is moved;
//   - our own, if that is not systemd's: this process moves into a leaf.
func (f *finder) candidates(m mount, own string, seen bool, need []string) []candidate {
	var all []candidate
	add := func(base string, move bool) {
		c := candidate{base, move}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	move := len(need) > 0
	for _, p := range f.named(m) {
		add(p, move && p == own)
	}
	if !seen {
		return all
	}
	if !move {
		add(own, false)
		return all
	}
	chain := above(own, m.point)
	for _, dir := range append([]string{own}, chain...) {
		if delegated(dir) {
			add(dir, dir == own)
			break
		}
	}
	if isRoot(own) {
		add(own, false)
	}
	for _, dir := range chain {
		if f.euid == 0 || unix.Access(dir, unix.W_OK) == nil {
			add(dir, false)
		}
	}
	if !isRoot(own) && (f.euid != 0 || own == m.point) {
		add(own, true)
	}
	return all
}

// above lists the folders over dir, the nearest first, up to top.
func above(dir, top string) []string {
	var chain []string
	for dir != top && dir != "/" {
		dir = path.Dir(dir)
		chain = append(chain, dir)
	}
	return chain
}

// delegated reports whether systemd marked the folder as handed over to its
// service or scope.
func delegated(dir string) bool {
	var b [2]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, b[:]); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// isRoot reports whether dir is the root of the whole hierarchy, not only of
// a cgroup namespace: the one group that has no type.
func isRoot(dir string) bool {
	return unix.Access(path.Join(dir, "cgroup.type"), unix.F_OK) != nil
}

// tryV2 makes the supervisor's folder and tries everything in it.
func (f *finder) tryV2(c candidate, own string, need []string) outcome {
	h, err := f.prepareV2(c, own, need)
	if err != nil {
		return outcome{features: f.allMissing(need, f.explain(c.base, true, err))}
	}
	out := outcome{h: h, features: map[string]Feature{}}
	p := place{h.dir, "."}
	for _, ctl := range need {
		feature := f.try(p, ctl, true)
		if feature.Held {
			if err := p.write("cgroup.subtree_control", "+"+ctl); err != nil {
				feature = f.explain(p.String(), true, err)
			}
		}
		if feature.Held {
			h.controllers = append(h.controllers, ctl)
			out.held++
		}
		out.features[ctl] = feature
	}
	if feature := f.tryCPUTime(p, true); feature.Held {
		h.controllers = append(h.controllers, ctlCPUAcct)
		out.features[ctlCPUAcct] = feature
		out.held++
	}
	if tryKill(p) {
		h.controllers = append(h.controllers, ctlKill)
		out.held++
	}
	return out
}

// tryKill tries cgroup.kill in a folder of its own, which nobody is born into
// later. Some kernels (seen on 6.18) kill a child at its birth by
// CLONE_INTO_CGROUP when its new group was killed more often than that of its
// parent.
func tryKill(p place) bool {
	trial := p.sub("kill")
	if trial.mkdir(0o700) != nil {
		return false
	}
	err := trial.write("cgroup.kill", "1")
	return trial.rmdir() == nil && err == nil
}

// ctlKill stands among a hierarchy's controllers for cgroup.kill.
const ctlKill = "cgroup.kill"

// prepareV2 makes the supervisor's folder in a candidate and enables there
// what is needed. On error nothing is left.
func (f *finder) prepareV2(c candidate, own string, need []string) (*hierarchy, error) {
	if err := f.mayJoin(c.base, own); err != nil {
		return nil, err
	}
	base, err := openFolder(c.base)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	p := place{base, "."}
	leaf := ""
	if c.move {
		if leaf, err = f.moveSelf(p); err != nil {
			return nil, err
		}
	}
	enabled, err := f.enable(p, need)
	var h *hierarchy
	if err == nil {
		h, err = f.makeFolder(c.base, true)
	}
	if err != nil {
		for _, ctl := range enabled {
			_ = p.write("cgroup.subtree_control", "-"+ctl)
		}
		if leaf != "" {
			moveBack(p, leaf)
		}
		return nil, err
	}
	h.enabled, h.leaf = enabled, leaf
	return h, nil
}

// mayJoin tries what the kernel asks for when a process is born into a group
// below base: the right to write the member list of the group above both
// base and our own.
func (f *finder) mayJoin(base, own string) error {
	common := base
	for common != "/" && !within(own, common) {
		common = path.Dir(common)
	}
	file := path.Join(common, "cgroup.procs")
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.W_OK, unix.AT_EACCESS); err != nil {
		err = &os.PathError{Op: "write", Path: file, Err: err}
		if common != base {
			err = fmt.Errorf("this process lives outside of group %s: %w", base, err)
		}
		return err
	}
	return nil
}

// enable switches controllers on for the groups below p. Those that the group
// does not have itself are left out; the trial says so afterwards.
func (f *finder) enable(p place, need []string) (enabled []string, err error) {
	have, err := p.read("cgroup.controllers")
	if err != nil {
		return nil, err
	}
	on, err := p.read("cgroup.subtree_control")
	if err != nil {
		return nil, err
	}
	for _, ctl := range need {
		if !slices.Contains(strings.Fields(have), ctl) || slices.Contains(strings.Fields(on), ctl) {
			continue
		}
		if err := p.write("cgroup.subtree_control", "+"+ctl); err != nil {
			return enabled, err
		}
		enabled = append(enabled, ctl)
	}
	return enabled, nil
}

// moveSelf moves this process into a leaf below its own group, provided that
// nobody else lives there: others are not ours to move.
func (f *finder) moveSelf(p place) (leaf string, err error) {
	pids, unseen, err := p.pids()
	if err != nil {
		return "", err
	}
	if unseen || !slices.Equal(pids, []int{os.Getpid()}) {
		return "", fmt.Errorf("%s: %w", p, unix.EBUSY)
	}
	name := leafName(f.ID)
	leaf = path.Join(p.String(), name)
	if err := f.Note(leaf); err != nil {
		return "", err
	}
	if err := p.sub(name).mkdir(0o755); err != nil {
		return "", err
	}
	if err := p.sub(name).write("cgroup.procs", pidOfSelf()); err != nil {
		return "", errors.Join(err, p.sub(name).rmdir())
	}
	return leaf, nil
}

func (f *finder) allMissing(need []string, why Feature) map[string]Feature {
	all := map[string]Feature{ctlCPUAcct: why}
	for _, ctl := range need {
		all[ctl] = why
	}
	return all
}

// conclude fills in what follows from all trials together.
func (f *finder) conclude(t *Tree) {
	s := &t.support
	switch {
	case len(t.v1) > 0 && t.v2 != nil:
		s.Version = "hybrid"
	case len(t.v1) > 0:
		s.Version = "v1"
	case t.v2 != nil:
		s.Version = "v2"
	default:
		s.Version = "none"
	}
	for _, c := range []string{ctlMemory, ctlPIDs, ctlCPU, ctlCPUAcct} {
		if feature := s.of(c); !feature.Held && feature.Missing == "" {
			*feature = f.unmounted(c)
		}
	}
	switch {
	case t.v2 != nil && t.v2.has(ctlKill):
		s.Kill = held(true, ctlKill)
	case s.PIDs.Held && t.at(ctlPIDs).v2:
		s.Kill = held(true, "pids.max=0 and SIGKILL until empty")
	case s.PIDs.Held:
		s.Kill = held(false, "pids.max=0 and SIGKILL until empty")
	default:
		s.Kill = Feature{
			Missing: "neither cgroup.kill nor a bound on processes: a program that forks faster than it is killed would stay",
			Mend:    s.PIDs.Mend,
		}
	}
}

// unmounted explains a controller that no mount carries.
func (f *finder) unmounted(ctl string) Feature {
	feature := Feature{Missing: "no cgroup file system with controller " + ctl + " is mounted"}
	switch {
	case f.wsl:
		feature.Mend = mendWSL
	case len(f.mounts) == 0:
		feature.Mend = "mount -t cgroup2 none /sys/fs/cgroup"
	}
	return feature
}
