package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchMask is what is asked of the kernel for each folder. IN_MASK_ADD keeps a
// second look at the same folder from changing what the first asked for.
const watchMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_ATTRIB |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK | unix.IN_MASK_ADD

// notice is one event of the kernel.
type notice struct {
	wd     int32
	mask   uint32
	cookie uint32
	name   string
}

func (n *notice) is(mask uint32) bool { return n.mask&mask != 0 }

// inotify is the kernel's end of a watch. Only the goroutine that reads uses
// the descriptor; stop may be called from another.
type inotify struct {
	fd      int
	f       *os.File // the same, so that Go's poller waits and no thread does
	buf     []byte
	pending []notice
	stopped chan struct{}
}

// errStopped is returned when nobody waits for the watch any more.
var errStopped = errors.New("the watch was given up")

func newInotify() (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &inotify{
		fd: fd, f: os.NewFile(uintptr(fd), "inotify"),
		buf: make([]byte, 16<<10), stopped: make(chan struct{}),
	}, nil
}

// stop ends a fill that waits, and all later ones. It is called once.
func (in *inotify) stop() {
	close(in.stopped)
	_ = in.f.SetReadDeadline(passed)
}

// fill takes what the kernel has, or waits for it until a deadline. It reports
// false where nothing came.
func (in *inotify) fill(deadline time.Time) (bool, error) {
	if err := in.f.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	select {
	case <-in.stopped: // before or after the deadline was set: stop sets it last
		return false, errStopped
	default:
	}
	n, err := in.f.Read(in.buf)
	select {
	case <-in.stopped:
		return false, errStopped
	default:
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, in.parse(in.buf[:n])
}

func (in *inotify) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < unix.SizeofInotifyEvent {
			return syscall.EIO
		}
		n := notice{
			wd:     int32(binary.NativeEndian.Uint32(b)),
			mask:   binary.NativeEndian.Uint32(b[4:]),
			cookie: binary.NativeEndian.Uint32(b[8:]),
		}
		length := binary.NativeEndian.Uint32(b[12:])
		b = b[unix.SizeofInotifyEvent:]
		if uint64(length) > uint64(len(b)) {
			return syscall.EIO
		}
		name, _, _ := bytes.Cut(b[:length], []byte{0})
		n.name = string(name)
		b = b[length:]
		in.pending = append(in.pending, n)
	}
	return nil
}

// next takes the next notice.
func (in *inotify) next() (notice, bool) {
	if len(in.pending) == 0 {
		in.pending = nil
		return notice{}, false
	}
	n := in.pending[0]
	in.pending = in.pending[1:]
	return n, true
}

// A rename's second half comes within microseconds of its first.
const (
	halfWait   = 5 * time.Millisecond
	maxPending = 4096
)

// otherHalf takes the second half of a rename out of what is to come.
func (in *inotify) otherHalf(cookie uint32) (notice, bool, error) {
	for seen := 0; ; {
		for ; seen < len(in.pending); seen++ {
			if n := in.pending[seen]; n.cookie == cookie && n.is(unix.IN_MOVED_TO) {
				in.pending[seen] = notice{wd: -1}
				return n, true, nil
			}
		}
		if len(in.pending) > maxPending {
			return notice{}, false, nil
		}
		more, err := in.fill(time.Now().Add(halfWait))
		if !more || err != nil {
			return notice{}, false, err
		}
	}
}

// add watches the folder that a descriptor leads to, and says by which number
// the kernel knows it: always the same for the same folder. To be called on the
// thread of the watches.
func (in *inotify) add(folder int) (int32, error) {
	if err := unix.Fchdir(folder); err != nil {
		return 0, err
	}
	wd, err := unix.InotifyAddWatch(in.fd, ".", watchMask)
	// A folder that somebody is in doesn't go when it is removed.
	_ = unix.Chdir("/")
	return int32(wd), err
}

func (in *inotify) remove(wd int32) { _, _ = unix.InotifyRmWatch(in.fd, uint32(wd)) }

// entries calls f for each entry of an open folder but itself and its parent.
func entries(folder int, f func(name string, isFolder bool) error) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(folder, buf)
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return err
		}
		for b := buf[:n]; len(b) >= direntName; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < direntName || size > len(b) {
				return syscall.EIO
			}
			raw, _, _ := bytes.Cut(b[direntName:size], []byte{0})
			kind := b[18]
			b = b[size:]
			name := string(raw)
			if name == "." || name == ".." {
				continue
			}
			if err := f(name, leadsDown(folder, name, kind)); err != nil {
				return err
			}
		}
	}
}

// direntName is where the name starts in what getdents64 writes: inode, offset,
// 16 bits of length and the kind are before it.
const direntName = 19

// leadsDown asks the file system where it did not say what an entry is.
func leadsDown(folder int, name string, kind byte) bool {
	if kind != unix.DT_UNKNOWN {
		return kind == unix.DT_DIR
	}
	var st unix.Stat_t
	err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
