package container

import (
	"fmt"

	"tranca"
	"tranca/internal/guest/bootspec"
)

// share is a part of the writable space where each folder has a file system of
// its own: sixteenths of the policy's bound, which they sum up to.
type share struct {
	folder     string
	sixteenths int64
}

var shares = []share{{"/work", 10}, {"/tmp", 5}, {"/dev/shm", 1}}

const (
	// leastShare is a page, of which a tmpfs holds no less.
	leastShare = 4096
	// leastInodes are the root of the tmpfs and one file.
	leastInodes = 2
)

// engineSpace has the engine make the writable space: a tmpfs for each folder.
func (pl *plan) engineSpace(e *engine) {
	d := pl.policy.Limits.Disk
	for _, s := range shares {
		size := max(d.Size*s.sixteenths/16, leastShare)
		inodes := max(d.Inodes*s.sixteenths/16, leastInodes)
		options := fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,mode=1777", size) + e.emptyTmpfs()
		w := bootspec.Writable{Path: s.folder, Size: uint64(size)}
		if !e.podman() { // which takes no others
			options += fmt.Sprintf(",nr_inodes=%d,uid=%d,gid=%d", inodes, pl.user.uid, pl.user.gid)
			w.Inodes = uint64(inodes)
		}
		pl.config.HostConfig.Tmpfs[s.folder] = options
		pl.boot.Writable = append(pl.boot.Writable, w)
	}
}

// emptyTmpfs is the option that keeps Podman from copying into a tmpfs what it
// shall hide.
func (e *engine) emptyTmpfs() string {
	if e.podman() {
		return ",notmpcopyup"
	}
	return ""
}

// coverRoot puts something read-only where Podman makes a tmpfs without a bound
// if the root is read-only.
func (pl *plan) coverRoot(e *engine) {
	if !e.podman() {
		return
	}
	for _, folder := range []string{"/run", "/var/tmp"} {
		pl.config.HostConfig.Tmpfs[folder] = "ro,nosuid,nodev,noexec,size=4096,mode=0555" + e.emptyTmpfs()
	}
}

// diskOf refuses a space in a file where the engine makes the space.
func diskOf(p *tranca.Policy) error {
	if p.Limits.Disk.Backing != tranca.BackingFile {
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
		Item: tranca.ItemDisk, Asked: "a writable space in a file on disk",
		Missing: "a container's writable space is a tmpfs", Mend: "limits: {disk: {backing: memory}}",
	}}}
}
