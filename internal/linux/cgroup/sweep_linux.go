package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/supervisor"
)

// NoteKind is the kind of note by which a supervisor says where its folders
// are; see [Note].
const NoteKind = "cgroup"

// sweepTime bounds the wait for the processes of one dead supervisor.
const sweepTime = 10 * time.Second

// Note returns what to give as Options.Note for a supervisor.
func Note(s *supervisor.Supervisor) func(path string) error {
	return func(path string) error { return s.Note(NoteKind, path) }
}

// Sweep kills what is left in the groups of dead supervisors of the same
// runtime folder, and removes the groups. Groups of the living and of others
// are left alone.
func Sweep(s *supervisor.Supervisor) error { return s.Sweep(Clean) }

// Clean does it for one dead supervisor, for a caller that has more to clean
// than groups. It belongs into [supervisor.Supervisor.Sweep], which sees to it
// that the supervisor is dead and that nobody else sweeps the same one.
func Clean(dead supervisor.Remains) error {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	var failed []error
	for _, n := range dead.Notes {
		if n.Kind == NoteKind {
			failed = append(failed, sweepFolder(ctx, dead.ID, n.Value))
		}
	}
	return errors.Join(failed...)
}

// sweepFolder removes one folder that the dead supervisor has noted.
func sweepFolder(ctx context.Context, id, name string) error {
	base := path.Base(name)
	if !path.IsAbs(name) || (base != folderName(id) && base != leafName(id)) {
		return fmt.Errorf("cgroup: note %q is no folder of supervisor %s: %w", name, id, tranca.ErrInvalid)
	}
	dir, err := openFolder(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	v2, err := isCgroup(dir)
	if err != nil {
		return err
	}
	if base == leafName(id) {
		// Others can live there: programs that the supervisor had started.
		// They are not ours to kill, and then the group stays.
		if err := unix.Rmdir(name); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("cgroup: %w", &os.PathError{Op: "rmdir", Path: name, Err: err})
		}
		return nil
	}
	if v2 {
		// The loop below does what this can't on kernels before 5.14.
		_ = place{dir, "."}.write("cgroup.kill", "1")
	}
	if err := empty(ctx, place{dir, "."}, v2); err != nil {
		return err
	}
	return retryRmdir(place{dir, "."}, name, time.Second)
}

// isCgroup tells v2 from v1, and refuses any other file system.
func isCgroup(dir *os.File) (v2 bool, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return false, fmt.Errorf("cgroup: %w", &os.PathError{Op: "statfs", Path: dir.Name(), Err: err})
	}
	switch st.Type {
	case unix.CGROUP_SUPER_MAGIC:
		return false, nil
	case unix.CGROUP2_SUPER_MAGIC:
		return true, nil
	default:
		return false, fmt.Errorf("cgroup: %s is in no cgroup file system: %w", dir.Name(), tranca.ErrInvalid)
	}
}

// empty kills what lives below p and removes the groups there.
func empty(ctx context.Context, p place, v2 bool) error {
	names, err := subgroups(p)
	if err != nil {
		return err
	}
	for _, name := range names {
		sub := p.sub(name)
		if err := quiet(sub, v2); err != nil {
			return err
		}
		if err := empty(ctx, sub, v2); err != nil {
			return err
		}
		if err := killAll(ctx, []place{sub}, nil, nil); err != nil {
			return err
		}
		var w waiter
		for {
			err := sub.rmdir()
			if err == nil {
				break
			}
			if ctxErr := w.wait(ctx); ctxErr != nil {
				return errors.Join(ctxErr, err)
			}
		}
	}
	return nil
}

// subgroups lists the groups right below p.
func subgroups(p place) ([]string, error) {
	dir, err := p.open(".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, p.fail("list", "", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
