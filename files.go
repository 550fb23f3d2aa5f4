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

// FileResumer is an optional ability of [Files], found with [As]: to go on with
// a write that broke off.
type FileResumer interface {
	// WriteFrom writes what r gives to a regular file from offset on, and ends
	// the file there. The file is there already and at least offset bytes
	// long, else ErrInvalid; an offset of 0 makes it. It returns the bytes
	// written by this call. On error the file holds what was written so far;
	// its size says where to go on.
	WriteFrom(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error)
}

// FileLinker is an optional ability of [Files], found with [As].
type FileLinker interface {
	// Symlink makes a symbolic link at path, whose parents are there. What
	// target is, is never looked at. ErrExists if path is there.
	Symlink(ctx context.Context, target, path string) error
}

// FileWatcher is an optional ability of [Files], found with [As].
type FileWatcher interface {
	// Watch watches a folder and, where recursive is set, all below it, and
	// returns when changes from then on are told. ctx bounds the start only.
	// Errors wrap [ErrNotFound], [ErrInvalid] (no folder), [ErrRefused] or
	// [ErrBusy] (too many watches, or a tree with too many folders).
	Watch(ctx context.Context, path string, recursive bool) (Watch, error)
}

// Watch is a folder that is watched. Close it. Safe for concurrent use.
type Watch interface {
	// Next returns the next change. After [FileOverflow] changes were missed:
	// look at the folder again. The error wraps [ErrGone] (the folder or the
	// sandbox is no more), [ErrClosed] after Close, or is that of ctx.
	Next(ctx context.Context) (FileEvent, error)
	Close() error
}

// FileEventKind is what happened to a path.
type FileEventKind string

// The kinds of file event. A rename within what is watched is FileRenamed with
// the old path followed by FileCreated with the new one.
const (
	FileCreated  FileEventKind = "created"
	FileWritten  FileEventKind = "written"
	FileRemoved  FileEventKind = "removed"
	FileRenamed  FileEventKind = "renamed"
	FileChmod    FileEventKind = "chmod"
	FileOverflow FileEventKind = "overflow"
)

// FileEvent is one change in a folder that is watched.
type FileEvent struct {
	Kind FileEventKind `json:"kind"`
	// Path is relative to the folder that is watched; empty for FileOverflow.
	Path string `json:"path"`
}
