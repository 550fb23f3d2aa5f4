package container

import (
	"math/rand/v2"
	"os"
	"strconv"

	"tranca"
)

const (
	// mappedFirst and mappedCount are the users that code gets where the engine
	// maps the 65,536 users of a container to some of the host.
	mappedFirst, mappedCount = 10_000, 50_000
	// rangeFirst and rangeCount are those that are set aside for sandboxes on a
	// host, in blocks of eight; see package idrange, which keeps them apart for
	// root. Without root it is left to chance.
	rangeFirst, rangeCount = 2_100_000_000, 524_288
	blockSize              = 8
)

// chooseUser says who runs the code, and makes the stage where this process
// can.
func (b *Backend) chooseUser(e *engine, spec *tranca.Spec) (codeUser, *stage, error) {
	p := &spec.Policy
	if b.stages(e) {
		st, err := b.host.newStage(b.owner, spec.ID)
		if err != nil {
			return codeUser{}, nil, err
		}
		u := codeUser{insulated: true}
		u.uid, u.gid = st.user()
		return u, st, nil
	}
	if len(p.Mounts) > 0 {
		u, err := b.mountUser(e, p)
		return u, nil, err
	}
	if !b.holds(e, tranca.ItemUser) {
		return codeUser{uid: p.User.UID, gid: p.User.GID}, nil, nil
	}
	id := uint32(mappedFirst + rand.IntN(mappedCount))
	if !e.mapsUsers() {
		id = uint32(rangeFirst + blockSize*rand.IntN(rangeCount/blockSize) + 1)
	}
	return codeUser{uid: id, gid: id, insulated: true}, nil, nil
}

// stages reports whether this process makes space and mounts for the engine: it
// is root beside one that gives containers the users of the host.
func (b *Backend) stages(e *engine) bool { return b.host.stages() && !e.mapsUsers() }

// mountUser says who runs the code where the engine makes the mounts: whoever
// they belong to, since no owner can be mapped.
func (b *Backend) mountUser(e *engine, p *tranca.Policy) (codeUser, error) {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	switch {
	case e.rootless() && e.podman():
		return codeUser{uid: uid, gid: gid, insulated: true, callers: true, keepID: true}, nil
	case !e.mapsUsers() && uid != 0:
		return codeUser{uid: uid, gid: gid, insulated: true, callers: true}, nil
	}
	for i := range p.Mounts {
		if p.Mounts[i].Writable {
			return codeUser{}, &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
				Item: tranca.ItemMounts, Asked: "a writable mount of " + p.Mounts[i].Source,
				Missing: "this engine maps users, and the owner of the folder is nobody in its containers",
				Mend:    "mount read-only, or use rootless Podman or the backend process",
			}}}
		}
	}
	id := uint32(mappedFirst + rand.IntN(mappedCount))
	return codeUser{uid: id, gid: id, insulated: true}, nil
}

// who says who runs the code, for a statement.
func (u codeUser) who() string {
	outside := strconv.Itoa(int(u.uid))
	switch {
	case u.callers:
		return "the code runs as the caller's own user, in a user namespace of its own: so it may use what the operator mounted"
	case u.insulated:
		return "user namespace in which the policy's user is alone; in the container it is user id " + outside + ", which nobody else has"
	}
	return "the code is user id " + outside + " in the container"
}
