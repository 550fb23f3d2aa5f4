package agentconfig

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tranca"
)

const (
	// maxFile is the largest file that is edited.
	maxFile = 64 << 20
	// maxLinks is how many links in a row are followed.
	maxLinks = 8
	// backupSuffix is added to the name of the copy that is kept.
	backupSuffix = ".before-tranca"
)

// Change is what came of a plan.
type Change struct {
	// File is the one that was written, and Backup the copy of what was there
	// before; empty where nothing was.
	File, Backup string
	// Unchanged says that all stood there already and nothing was written.
	Unchanged bool
}

// Apply writes the plan's entry. The error wraps [tranca.ErrInvalid] where the
// file can't be edited with certainty, or [tranca.ErrRefused] where somebody
// else could have chosen which file it is; then nothing was written.
func (p Plan) Apply() (Change, error) {
	root, path, err := p.open()
	if err != nil {
		return Change{}, err
	}
	defer root.Close()
	c := Change{File: filepath.Join(p.Base, path)}
	before, mode, err := read(root, path)
	if err != nil {
		return c, fmt.Errorf("%s: %w", c.File, err)
	}
	after, err := p.edit(string(before))
	switch {
	case err != nil:
		return c, fmt.Errorf("%s: %w", c.File, err)
	case after == string(before):
		c.Unchanged = true
		return c, nil
	}
	if before != nil {
		if err := replace(root, path+backupSuffix, before, mode); err != nil {
			return c, fmt.Errorf("%s: %w", c.File+backupSuffix, err)
		}
		c.Backup = c.File + backupSuffix
	}
	// Clients write these files too, and theirs must not be lost.
	if now, _, err := read(root, path); err != nil || string(now) != string(before) {
		return c, errors.Join(fmt.Errorf("%w: %s was changed by another program meanwhile: try again", tranca.ErrBusy, c.File), err)
	}
	if err := replace(root, path, []byte(after), mode); err != nil {
		return c, fmt.Errorf("%s: %w", c.File, err)
	}
	return c, nil
}

// open opens the base folder and makes the folders below it. Nothing that is
// done through the root leaves the base, whatever somebody changes meanwhile.
func (p Plan) open() (*os.Root, string, error) {
	if err := os.Mkdir(p.Base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, "", failed(err)
	}
	root, err := os.OpenRoot(p.Base)
	if err != nil {
		return nil, "", failed(err)
	}
	info, err := root.Stat(".")
	switch {
	case err != nil:
		return nil, "", errors.Join(failed(err), root.Close())
	case !ours(info):
		return nil, "", errors.Join(fmt.Errorf("%w: %s belongs to another user: do it as that user", tranca.ErrRefused, p.Base), root.Close())
	}
	path, err := resolve(root, p.Path)
	if err == nil {
		if dir := filepath.Dir(path); dir != "." {
			err = failed(root.MkdirAll(dir, 0o700))
		}
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w", p.File(), err), root.Close())
	}
	return root, path, nil
}

// resolve follows the links on the way to a file below the root. Each part of
// the way must belong to the caller or the system, so that nobody else has
// chosen where it leads; and it must not lead out.
func resolve(root *os.Root, path string) (string, error) {
	parts := strings.Split(filepath.Clean(path), string(filepath.Separator))
	at := "."
	for links := 0; len(parts) > 0; {
		next := filepath.Join(at, parts[0])
		info, err := root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(next, filepath.Join(parts[1:]...)), nil
		}
		if err != nil {
			return "", failed(err)
		}
		if !ours(info) {
			return "", fmt.Errorf("%w: %s belongs to another user", tranca.ErrRefused, next)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at, parts = next, parts[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%w: %s is a link that leads to links without end", tranca.ErrRefused, next)
		}
		target, err := root.Readlink(next)
		if err != nil {
			return "", failed(err)
		}
		local, err := below(root, at, target)
		if err != nil {
			return "", err
		}
		parts = append(strings.Split(local, string(filepath.Separator)), parts[1:]...)
		at = "."
	}
	return at, nil
}

// below returns the target of a link in the folder at, from the root.
func below(root *os.Root, at, target string) (string, error) {
	local := filepath.Join(at, target)
	if filepath.IsAbs(target) {
		rel, err := filepath.Rel(root.Name(), target)
		if err != nil {
			return "", fmt.Errorf("%w: it is a link to %s", tranca.ErrRefused, target)
		}
		local = rel
	}
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%w: it is a link that leads out of %s, to %s", tranca.ErrRefused, root.Name(), target)
	}
	return local, nil
}

// read reads a file; nil is one that is not there. Mode is that of a new file
// then.
func read(root *os.Root, path string) (data []byte, mode fs.FileMode, err error) {
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, failed(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: it is no regular file", tranca.ErrRefused)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, 0, failed(err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, 0, failed(err)
	}
	if !os.SameFile(info, opened) || !ours(opened) {
		return nil, 0, fmt.Errorf("%w: it belongs to another user, or was replaced meanwhile", tranca.ErrRefused)
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, 0, failed(err)
	case len(data) > maxFile:
		return nil, 0, fmt.Errorf("%w: it is larger than %d MiB", tranca.ErrInvalid, maxFile>>20)
	}
	return append([]byte{}, data...), info.Mode().Perm(), nil
}

// replace puts a file in the place of another in one step.
func replace(root *os.Root, path string, data []byte, mode fs.FileMode) error {
	part := path + "." + strings.ToLower(rand.Text())
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return failed(err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = root.Rename(part, path)
	}
	if err != nil {
		return failed(errors.Join(err, root.Remove(part)))
	}
	return nil
}

// failed gives an error of the system its class.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", tranca.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
}
