package policyfile

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/ownfile"
	"tranca/internal/policy"
)

// maxSize is the size of the largest file that is read.
const maxSize = 1 << 20

// Read reads the policy file at an absolute path. It is a regular file of at
// most 1 MiB, no link, and nobody but root and the caller can change it or a
// folder above it; nor does it lie in a writable mount of its own policy.
// Errors are as those of [Find].
func Read(path string) (tranca.Policy, error) {
	file, err := ownfile.Read("policy", path, maxSize)
	if err != nil {
		return tranca.Policy{}, err
	}
	p, err := policy.Parse(file.Path, file.Data)
	if err != nil {
		return tranca.Policy{}, err
	}
	if err := refuseReachable(p, file); err != nil {
		return tranca.Policy{}, err
	}
	return p, nil
}

// refuseReachable refuses a policy that its own code could rewrite: its file
// lies in a writable mount, by whatever name, or has a second name that may.
func refuseReachable(p tranca.Policy, file *ownfile.File) error {
	names := []string{file.Path, file.Real}
	writable := false
	for _, m := range p.Mounts {
		if !m.Writable {
			continue
		}
		writable = true
		if holds(m.Source, names, file.Folders, file.Inode) {
			return fmt.Errorf("%w: policy %s lies in %s, which it mounts writable, so the code could widen it: move the policy elsewhere",
				tranca.ErrRefused, names[0], m.Source)
		}
	}
	if writable && file.Links > 1 {
		return fmt.Errorf("%w: policy %s has %d names (hard links), and one of them may lie in a writable mount: copy it to a file of its own",
			tranca.ErrRefused, names[0], file.Links)
	}
	return nil
}

// holds reports whether the policy file is at or below a mount's source, by
// its path, or by its inode where the source is another name for the same
// place. A source that can't be looked at is left to the backend to refuse.
func holds(source string, names []string, folders map[ownfile.Inode]bool, file ownfile.Inode) bool {
	for _, name := range names {
		if name == source || strings.HasPrefix(name, strings.TrimSuffix(source, "/")+"/") {
			return true
		}
	}
	var st unix.Stat_t
	if unix.Stat(source, &st) != nil {
		return false
	}
	at := ownfile.Inode{Dev: st.Dev, Ino: st.Ino}
	return folders[at] || at == file
}
