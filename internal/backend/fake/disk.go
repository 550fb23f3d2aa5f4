package fake

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca"
)

// The bounds of Linux on names and paths.
const (
	maxName = 255
	maxPath = 4095
)

// disk is a file tree in memory with a bound on bytes and inodes.
type disk struct {
	workdir string
	limits  tranca.Limits
	refused func(tranca.LimitHit)

	mu     sync.Mutex
	nodes  map[string]*node // by clean absolute path
	bytes  int64
	inodes int64
}

type node struct {
	kind   tranca.FileType
	data   []byte
	target string
	mode   fs.FileMode
	time   time.Time
}

func newDisk(p tranca.Policy, refused func(tranca.LimitHit)) *disk {
	d := &disk{workdir: p.Workdir, limits: p.Limits, refused: refused, nodes: map[string]*node{}}
	for _, dir := range []string{"/", "/tmp", "/dev", "/dev/shm", "/etc", p.Workdir} {
		for at := dir; d.nodes[at] == nil; at = path.Dir(at) {
			d.nodes[at] = &node{kind: tranca.FileDirectory, mode: 0o755, time: time.Now()}
		}
	}
	return d
}

// resolve follows the links in every part of a path but, unless follow is
// set, the last. It returns a clean path, which need not exist.
func (d *disk) resolve(name string, follow bool) (string, error) {
	if name == "" || len(name) > maxPath || strings.IndexByte(name, 0) >= 0 {
		return "", fmt.Errorf("%w: a path of %d bytes, or with a NUL", tranca.ErrInvalid, len(name))
	}
	if !path.IsAbs(name) {
		name = d.workdir + "/" + name
	}
	rest := strings.Split(name, "/")
	at := "/"
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		if len(part) > maxName {
			return "", fmt.Errorf("%w: a name of %d bytes", tranca.ErrInvalid, len(part))
		}
		next := path.Join(at, part)
		n := d.nodes[next]
		if n == nil || n.kind != tranca.FileSymlink || (len(rest) == 0 && !follow) {
			if n != nil && n.kind != tranca.FileDirectory && len(rest) > 0 {
				return "", fmt.Errorf("%w: %s is no folder", tranca.ErrInvalid, next)
			}
			at = next
			continue
		}
		if hops++; hops > 40 {
			return "", fmt.Errorf("%w: %s: too many links", tranca.ErrInvalid, name)
		}
		if path.IsAbs(n.target) {
			at = "/"
		}
		rest = append(strings.Split(n.target, "/"), rest...)
	}
	return at, nil
}

func (d *disk) isDir(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.resolve(name, true)
	return err == nil && d.nodes[at] != nil && d.nodes[at].kind == tranca.FileDirectory
}

// add makes a node where none is.
func (d *disk) add(at string, n *node) error {
	parent := d.nodes[path.Dir(at)]
	switch {
	case parent == nil:
		return fmt.Errorf("%w: %s", tranca.ErrNotFound, path.Dir(at))
	case parent.kind != tranca.FileDirectory:
		return fmt.Errorf("%w: %s is no folder", tranca.ErrInvalid, path.Dir(at))
	case d.nodes[at] != nil:
		return fmt.Errorf("%w: %s", tranca.ErrExists, at)
	case d.inodes >= d.limits.Disk.Inodes:
		d.refused(tranca.HitInodes)
		return fmt.Errorf("%w: %s: no inode is left", tranca.ErrNoSpace, at)
	}
	n.time = time.Now()
	d.nodes[at] = n
	d.inodes++
	return nil
}

// open returns a regular file, made or emptied where create is set.
func (d *disk) open(name string, create bool, mode fs.FileMode) (*node, error) {
	at, err := d.resolve(name, true)
	if err != nil {
		return nil, err
	}
	n := d.nodes[at]
	switch {
	case n == nil && !create:
		return nil, fmt.Errorf("%w: %s", tranca.ErrNotFound, at)
	case n == nil:
		n = &node{kind: tranca.FileRegular, mode: mode.Perm()}
		return n, d.add(at, n)
	case n.kind != tranca.FileRegular:
		return nil, fmt.Errorf("%w: %s is a %s and no regular file", tranca.ErrInvalid, at, n.kind)
	case create:
		d.bytes -= int64(len(n.data))
		n.data, n.time = nil, time.Now()
	}
	return n, nil
}

// grow appends to a file what fits. tooLarge says that the bound on one file
// stopped it.
func (d *disk) grow(n *node, b []byte) (written int, tooLarge bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := d.limits.Disk.Size - d.bytes
	most := d.limits.FileSize - int64(len(n.data))
	fit := min(int64(len(b)), room, most)
	n.data = append(n.data, b[:fit]...)
	d.bytes += fit
	switch {
	case fit == int64(len(b)):
		return len(b), false, nil
	case most <= room:
		d.refused(tranca.HitFileSize)
		return int(fit), true, nil
	}
	d.refused(tranca.HitDisk)
	return int(fit), false, fmt.Errorf("%w: the sandbox's disk", tranca.ErrNoSpace)
}

// below returns the paths at and below a path, parents first, in order.
func (d *disk) below(at string) []string {
	var all []string
	for name := range d.nodes {
		if name == at || strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/") {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	return all
}

func (d *disk) remove(at string) {
	for _, name := range d.below(at) {
		d.bytes -= int64(len(d.nodes[name].data))
		d.inodes--
		delete(d.nodes, name)
	}
}
