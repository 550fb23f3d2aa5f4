package tranca

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FileType is what a path is.
type FileType string

// The file types. Whatever else there is (devices, sockets, FIFOs) is
// FileOther and can't be read or written through [Files].
const (
	FileRegular   FileType = "file"
	FileDirectory FileType = "directory"
	FileSymlink   FileType = "symlink"
	FileOther     FileType = "other"
)

// FileInfo describes a path inside a sandbox. All of it comes from the guest
// and is not to be trusted further than bounds go.
type FileInfo struct {
	Name string
	Path string
	Type FileType
	Size int64
	// Mode holds the permission bits.
	Mode     fs.FileMode
	UID, GID uint32
	Modified time.Time
	// LinkTarget is set for symbolic links.
	LinkTarget string
}

// Files serves the files of a sandbox, in constant memory whatever their
// size. Paths are absolute or relative to the policy's Workdir; they are
// resolved inside the sandbox with the rights of its user, so a link that the
// code made leads at most to where the code itself may go. Errors wrap
// [ErrNotFound], [ErrExists], [ErrInvalid], [ErrRefused] (no permission),
// [ErrNoSpace] or [ErrGone].
type Files interface {
	// Read opens a regular file from an offset. Anything else is ErrInvalid;
	// it never blocks on a FIFO. The caller closes the reader.
	Read(ctx context.Context, path string, offset int64) (io.ReadCloser, error)
	// Write makes or replaces a regular file with what r gives and returns
	// the bytes written. On error the file may hold a part of it.
	Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (int64, error)
	// Stat does not follow a final symbolic link.
	Stat(ctx context.Context, path string) (FileInfo, error)
	// List walks a folder in lexical order, parents first, to a depth of at
	// least 1, never following links. At most 100,000 entries; beyond that it
	// fails with ErrInvalid.
	List(ctx context.Context, path string, depth int) ([]FileInfo, error)
	// MakeDir makes a folder and its parents. ErrExists if it is there.
	MakeDir(ctx context.Context, path string) (FileInfo, error)
	// Move renames, making the destination's parents.
	Move(ctx context.Context, from, to string) (FileInfo, error)
	// Remove deletes a path with all below it. A missing one is no error.
	Remove(ctx context.Context, path string) error
}
