package image

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// A lock is one byte of the store's lock file, by the kernel's locks of open
// file descriptions: it ends with its process, and no file is left of it. Byte 0
// stands for the whole store, the others for digests. Two digests that share a
// byte only wait for each other.
type lock struct{ f *os.File }

type lockKind int16

const (
	shared    lockKind = unix.F_RDLCK
	exclusive lockKind = unix.F_WRLCK
)

const wholeStore = int64(0)

// The places of locks of a digest: its blob, and its unpacked tree.
const (
	forBlob = 1 << 60
	forTree = 1 << 61
)

func placeOf(digest string, what int64) int64 {
	b, err := hex.DecodeString(hexOf(digest)[:16])
	if err != nil {
		return what
	}
	return what | int64(binary.BigEndian.Uint64(b)>>5)
}

// lock waits for a lock until ctx ends.
func (s *Store) lock(ctx context.Context, place int64, kind lockKind) (*lock, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		l, err := s.tryLock(place, kind)
		if !errors.Is(err, tranca.ErrBusy) {
			return l, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// tryLock takes a lock, or fails with [tranca.ErrBusy]. A store that can only be
// read can be locked as shared.
func (s *Store) tryLock(place int64, kind lockKind) (*lock, error) {
	f, err := s.openLock(kind)
	if err != nil {
		return nil, err
	}
	l := &lock{f}
	if err := l.set(place, kind); err != nil {
		f.Close()
		if err == unix.EAGAIN || err == unix.EACCES {
			return nil, fmt.Errorf("%w: image cache %s: somebody else is at it", tranca.ErrBusy, s.dir)
		}
		return nil, s.failed("lock", lockFile, err)
	}
	return l, nil
}

func (s *Store) openLock(kind lockKind) (*os.File, error) {
	path := s.path(lockFile)
	flags := os.O_RDONLY
	if kind == exclusive {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	}
	if err != nil {
		return nil, s.failed("open", path, err)
	}
	return f, nil
}

func (l *lock) set(place int64, kind lockKind) error {
	return unix.FcntlFlock(l.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{
		Type: int16(kind), Whence: unix.SEEK_SET, Start: place, Len: 1,
	})
}

// release gives the lock up. Idempotent.
func (l *lock) release() { l.f.Close() }
