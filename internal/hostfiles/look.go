package hostfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// resolve refuses links in every part of a path, and what leaves the folder
// that it starts from.
const resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// look is one look at a root. Names are relative to it; a root that is a file
// has the name ".".
type look struct {
	seen map[string]state
	// cut says why not everything was seen; empty if it was.
	cut string
}

// walker walks one root.
type walker struct {
	ctx  context.Context
	root int // descriptor of the source
	deny []string
	most int
	look look
}

// lookAt looks at a root and at most at so many entries.
func lookAt(ctx context.Context, r Root, most int) look {
	w := &walker{ctx: ctx, deny: r.Deny, most: most, look: look{seen: map[string]state{}}}
	fd, err := unix.Openat2(unix.AT_FDCWD, r.Source, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve,
	})
	if err != nil {
		w.cutBy(".", err)
		return w.look
	}
	defer unix.Close(fd)
	w.root = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		w.cutBy(".", err)
		return w.look
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		w.look.seen["."] = stateOf(&st)
		return w.look
	}
	w.walk()
	return w.look
}

// walk looks into folders one after another. Each is opened anew from the
// root, so that depth costs no descriptors.
func (w *walker) walk() {
	pending := []string{"."}
	for len(pending) > 0 && w.more() {
		folder := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		below, err := w.folder(folder)
		if err != nil {
			w.cutBy(folder, err)
		}
		pending = append(pending, below...)
	}
}

// more reports whether the look may go on.
func (w *walker) more() bool {
	switch {
	case len(w.look.seen) >= w.most:
		w.cutShort(fmt.Sprintf("there are more than %d entries", w.most))
		return false
	case w.ctx.Err() != nil:
		w.cutShort("it took too long")
		return false
	}
	return true
}

func (w *walker) cutShort(why string) {
	if w.look.cut == "" {
		w.look.cut = why
	}
}

// cutBy notes what could not be seen. What has vanished meanwhile, or has
// become a link, is not there: that is a finding and no gap.
func (w *walker) cutBy(name string, err error) {
	if name != "." && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)) {
		return
	}
	w.cutShort(fmt.Sprintf("%q can't be looked at: %v", name, err))
}

// folder looks at the entries of one folder and returns the folders in it.
func (w *walker) folder(name string) (below []string, err error) {
	fd, err := unix.Openat2(w.root, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: resolve | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		// In portions, so that a folder of millions costs no memory.
		names, err := dir.Readdirnames(1024)
		for _, base := range names {
			if !w.more() {
				return nil, nil
			}
			sub := path.Join(name, base)
			if slices.Contains(w.deny, sub) {
				continue
			}
			if w.entry(fd, base, sub) {
				below = append(below, sub)
			}
		}
		switch {
		case errors.Is(err, io.EOF) || err == nil && len(names) == 0:
			return below, nil
		case err != nil:
			return below, err
		}
	}
}

// entry looks at one entry and reports whether it is a folder to look into.
func (w *walker) entry(folder int, base, name string) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(folder, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		w.cutBy(name, err)
		return false
	}
	s := stateOf(&st)
	w.look.seen[name] = s
	if !s.directory() {
		return false
	}
	if strings.Count(name, "/") >= maxDepth {
		w.cutShort(fmt.Sprintf("folders are nested more than %d deep", maxDepth))
		return false
	}
	return true
}

func stateOf(st *unix.Stat_t) state {
	return state{
		kind: st.Mode & unix.S_IFMT, mode: st.Mode, uid: st.Uid, gid: st.Gid,
		size: st.Size, ino: st.Ino, dev: st.Dev, mtime: st.Mtim, ctime: st.Ctim,
	}
}
