package advisory

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxList bounds the list of a package's files.
const maxList = 8 << 20

// InstalledLog returns the changelog of the Debian package that a component's
// program came from, or the zero value where none says that it has this file:
// a program from elsewhere is what its version says. root is "/", but in tests.
// It reads a few small files and runs nothing.
func InstalledLog(root, component, program string) Changelog {
	for _, name := range packages[component] {
		if !owns(root, name, program) {
			continue
		}
		if log, err := readInstalled(root, name); err == nil {
			return log
		}
	}
	return Changelog{}
}

// owns reports whether a package's list of files has the program, by the path
// at which it was found or the one that its links lead to. Debian's merged /usr
// shows one file at two places.
func owns(root, name, program string) bool {
	paths := map[string]bool{program: true}
	if real, err := filepath.EvalSymlinks(filepath.Join(root, program)); err == nil { //nolint:forbidigo // names are compared, nothing is opened by it
		if rel, err := filepath.Rel(root, real); err == nil {
			paths["/"+rel] = true
		}
	}
	for p := range paths {
		if short, found := strings.CutPrefix(p, "/usr"); found {
			paths[short] = true
		}
	}
	f, err := openRegular(filepath.Join(root, "var/lib/dpkg/info", name+".list"))
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxList))
	for lines.Scan() {
		if paths[lines.Text()] {
			return true
		}
	}
	return false
}

func readInstalled(root, name string) (Changelog, error) {
	f, err := openRegular(filepath.Join(root, "usr/share/doc", name, "changelog.Debian.gz"))
	if err != nil {
		return Changelog{}, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return Changelog{}, err
	}
	return ReadChangelog(name, z)
}

// openRegular opens a file that is one, so that nothing blocks.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrInvalid}
	}
	return os.Open(path)
}
