package world

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"tranca/internal/policy"
)

// watched is a file of the host and what it was like.
type watched struct {
	name, path, before string
}

func (w *World) watch(name, path string) {
	w.watched = append(w.watched, watched{name, path, state(path)})
}

// watchTree watches a folder with everything below it.
func (w *World) watchTree(name, root string) {
	w.watched = append(w.watched, watched{name + "/", root, tree(root)})
}

// state is what must not change of a file: its kind, mode, owner, links and
// bytes. Its times are not part of it, as reading changes one.
func state(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "gone"
	}
	if info.IsDir() {
		return tree(path)
	}
	s := facts(info)
	if info.Mode().IsRegular() && info.Size() < 1<<20 {
		s += contents(path)
	}
	return s
}

// contents is the digest of a file, opened so that neither a link nor a FIFO that
// was put into its place leads elsewhere or holds it up.
func contents(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return " " + err.Error()
	}
	defer f.Close()
	h := sha256.New()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return " no file any more"
	}
	_, err = io.Copy(h, io.LimitReader(f, 1<<20))
	return fmt.Sprintf(" %x %v", h.Sum(nil), err)
}

func facts(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Mode().String()
	}
	return fmt.Sprintf("%v owner %d:%d links %d size %d", info.Mode(), st.Uid, st.Gid, st.Nlink, info.Size())
}

func tree(root string) string {
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			all = append(all, path+" "+state(path))
			return nil
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, path+" "+info.Mode().String())
		}
		return err
	})
	if err != nil {
		return "gone: " + err.Error()
	}
	return strings.Join(all, "\n")
}

// changes tells of each watched file that is not what it was, and of what is new in
// the host's system folders, which it removes.
func (w *World) changes() (found []Finding) {
	for _, f := range w.watched {
		if now := state(f.path); now != f.before {
			found = append(found, Finding{"changed", f.name + " of the host: was " + short(f.before) + ", is " + short(now)})
		}
	}
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/lib", "/var"} {
		if path := filepath.Join(dir, w.Mark); os.Remove(path) == nil {
			found = append(found, Finding{"changed", "the host's " + dir + " had a new file"})
		}
	}
	return found
}

func short(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// planted tells of what a program put into the writable mount for the host to
// execute, but for what the result said.
func (w *World) planted(told map[string]bool) (found []Finding) {
	root, ok := w.mounts["rw"]
	if !ok {
		return nil
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if err != nil || d.IsDir() || w.known(path) || told[mountTargets+"rw/"+rel] || !policy.HostExecutable(rel, policy.DefaultProtect()) {
			return nil
		}
		found = append(found, Finding{"planted", rel + " is in the writable mount, where the host would execute it, and no result says so"})
		return nil
	})
	return found
}

func (w *World) known(path string) bool {
	for _, f := range w.watched {
		if f.path == path {
			return true
		}
	}
	return false
}
