package world

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/policy"
)

// Options say what a world is made of.
type Options struct {
	// Stand says that this is the disposable place: listeners then stand where
	// the host's services would, too.
	Stand bool
	// Uses is all text of the probe. What it doesn't name isn't made.
	Uses string
	// Mounts are the kinds of mount that the probe has: ro, rw, cow.
	Mounts []string
	// Program is the path of the static program, of which the victim is one.
	Program string
}

// World is the host's side of one trial. Close it.
type World struct {
	// Mark is a word that the program knows.
	Mark string

	o       Options
	secrets map[string]string // by the name of what holds it
	vars    map[string]string
	folders []string
	mounts  map[string]string // folders of the host, by kind
	watched []watched
	ears    []*ear
	victim  *victim
	segment *segment
	undo    []func() error
}

// word returns a word that nobody else has: 16 characters.
func word(prefix string) string { return prefix + strings.ToLower(rand.Text())[:14] }

// Open makes a world. What can't be made here, such as a listener by IPv6, is
// left out of [World.Vars].
func Open(o Options) (*World, error) {
	w := &World{
		Mark: word("tm"), o: o,
		secrets: map[string]string{}, vars: map[string]string{}, mounts: map[string]string{},
	}
	w.vars["mark"] = w.Mark
	if s := os.Getenv(EnvironmentSecret); s != "" {
		w.secrets["the operator's environment"] = s
	}
	if name, err := os.Hostname(); err == nil {
		w.vars["hostname"] = name
	}
	w.vars["uid"], w.vars["gid"] = strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	for _, make := range []func() error{w.plantHome, w.plantFolders, w.plantMounts, w.leaveOpen, w.listen, w.startVictim, w.shareMemory} {
		if err := make(); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Close takes all of it away.
func (w *World) Close() error {
	var errs []error
	for i := len(w.undo) - 1; i >= 0; i-- {
		errs = append(errs, w.undo[i]())
	}
	w.undo = nil
	return errors.Join(errs...)
}

func (w *World) uses(what string) bool { return strings.Contains(w.o.Uses, what) }

// secret makes a secret that one thing holds.
func (w *World) secret(name string) string {
	s := word("ts")
	w.secrets[name] = s
	return s
}

// folder makes a folder of this world's own below another.
func (w *World) folder(below string) (string, error) {
	dir, err := os.MkdirTemp(below, ".tranca-hostile-")
	if err != nil {
		return "", err
	}
	w.undo = append(w.undo, func() error { return removeAll(dir) })
	return dir, os.Chmod(dir, 0o755)
}

// Own makes a path of the host one that is removed with the world, whoever makes
// it.
func (w *World) Own(path string) { w.Later(func() error { return removeAll(path) }) }

// Later has something done when the world is closed, after every look.
func (w *World) Later(do func() error) { w.undo = append(w.undo, do) }

// removeAll removes a folder in which a program may have taken rights away.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		// What stands there may be swapped for a link meanwhile.
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Fchmod(fd, 0o700)
			_ = unix.Close(fd)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// canary writes a file that holds a secret, and watches it.
func (w *World) canary(name, path string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(w.secret(name)+"\n"), mode); err != nil {
		return err
	}
	w.watch(name, path)
	return os.Chmod(path, mode)
}

// swapped is the name of a file in every folder of the world that holds a canary,
// as the folder that a program swaps for a link has one of that name.
const swapped = "f"

// homeFiles are what a program would look for in a home folder.
var homeFiles = map[string]struct {
	path string
	mode os.FileMode
}{
	"canary.home": {"notes.txt", 0o644}, "canary.ssh": {".ssh/id_ed25519", 0o600},
	"canary.aws": {".aws/credentials", 0o600}, "canary.kube": {".kube/config", 0o600},
	"canary.docker": {".docker/config.json", 0o600}, "canary.netrc": {".netrc", 0o600},
	"canary.history": {".bash_history", 0o600}, "canary.unwritable": {"unwritable", 0o644},
	"canary.f": {swapped, 0o644},
}

// plantHome makes a folder below the operator's home that has what a home has.
// Nothing of the real one is touched.
func (w *World) plantHome() error {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil //nolint:nilerr // a user without a home has none to lose
	}
	dir, err := w.folder(home)
	if err != nil {
		return nil //nolint:nilerr // the same where it can't be written
	}
	w.vars["dir.home"] = dir
	for name, f := range homeFiles {
		path := filepath.Join(dir, f.path)
		if err := w.canary(name, path, f.mode); err != nil {
			return err
		}
		w.vars[name] = path
	}
	return nil
}

// plantFolders does the same in the folders that everybody may write.
func (w *World) plantFolders() error {
	for name, below := range map[string]string{"tmp": "/tmp", "vartmp": "/var/tmp", "shm": "/dev/shm"} {
		dir, err := w.folder(below)
		if err != nil {
			continue
		}
		w.vars["dir."+name] = dir
		path := filepath.Join(dir, "canary")
		if err := w.canary("canary."+name, path, 0o644); err != nil {
			return err
		}
		w.vars["canary."+name] = path
		if err := w.canary("f of "+name, filepath.Join(dir, swapped), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// leaveOpen opens a file with a secret that every child inherits, as a program
// does that forgets to close one.
func (w *World) leaveOpen() error {
	dir := w.vars["dir.tmp"]
	if dir == "" || !w.uses("{fd}") {
		return nil
	}
	path := filepath.Join(dir, "open")
	if err := w.canary("an open file", path, 0o600); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return errorf("a file that stays open", err)
	}
	w.vars["fd"] = strconv.Itoa(fd)
	w.undo = append(w.undo, func() error { return unix.Close(fd) })
	return nil
}

// plantMounts makes the folders that the policy mounts. They are open to all
// users, as a folder is that its owner shares.
func (w *World) plantMounts() error {
	if len(w.o.Mounts) == 0 {
		return nil
	}
	dir, err := w.folder("/var/tmp")
	if err != nil {
		return err
	}
	for _, kind := range w.o.Mounts {
		root := filepath.Join(dir, kind)
		w.mounts[kind] = root
		if err := w.fill(kind, root); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) fill(kind, root string) error {
	for _, sub := range []string{".git/hooks", "sub", "open"} {
		if err := os.MkdirAll(filepath.Join(root, sub), 0o755); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{
		"canary": kind, ".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".envrc": "export A=1\n",
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := w.canary("denied."+kind, filepath.Join(root, "sub/secret"), 0o644); err != nil {
		return err
	}
	if kind == "rw" {
		for _, path := range []string{".git/config", ".git/hooks/pre-commit", ".envrc"} {
			w.watch(kind+"/"+path, filepath.Join(root, path))
		}
		return errors.Join(os.Chmod(root, 0o777), os.Chmod(filepath.Join(root, "open"), 0o777))
	}
	if err := plantDevice(filepath.Join(root, "device")); err != nil {
		return err
	}
	w.watchTree(kind, root)
	return nil
}

// plantDevice makes a device node that everybody may open, as who has unpacked a
// backup as root has some; only root can. It is that of the loop driver's control,
// which no kernel of a sandbox's own has, and which does nothing when it is opened.
func plantDevice(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	const major, minor = 10, 237 // of the kernel's Documentation/admin-guide/devices.txt
	switch err := unix.Mknod(path, unix.S_IFCHR, int(unix.Mkdev(major, minor))); err {
	case nil:
	case unix.EPERM:
		return nil // a root without the right to
	default:
		return err
	}
	return os.Chmod(path, 0o666)
}

// MountTargets is where the mounts stand in a sandbox.
const mountTargets = "/mnt/"

// EnvironmentSecret names a variable of the operator's environment that holds a
// secret of the run, for programs that print theirs.
const EnvironmentSecret = "TRANCA_HOSTILE_CANARY"

// Mounts returns what the policy mounts. In each a path is denied.
func (w *World) Mounts() []tranca.Mount {
	var all []tranca.Mount
	for _, kind := range w.o.Mounts {
		m := tranca.Mount{Source: w.mounts[kind], Target: mountTargets + kind, Deny: []string{"sub/secret"}}
		m.Writable, m.Cow, m.DiskUnbounded = kind == "rw", kind == "cow", kind == "rw"
		if kind != "ro" {
			m.Protect = policy.DefaultProtect()
		}
		all = append(all, m)
	}
	return all
}

// View is how the program sees the world.
type View struct {
	// Space and Tmp are its own writable folder and its /tmp.
	Space, Tmp string
	// Bare says that mounts are seen where they stand on the host.
	Bare bool
	// Kernel is what the host's processes are called that are its own kernel and
	// run it, where they are of tranca's making; "" where the program's processes
	// are the host's.
	Kernel string
}

// Vars returns what placeholders become, by their names without braces.
func (w *World) Vars(v View) map[string]string {
	all := map[string]string{"space": v.Space, "tmp": v.Tmp}
	for name, value := range w.vars {
		all[name] = value
	}
	for kind, path := range w.mounts {
		if all[kind] = mountTargets + kind; v.Bare {
			all[kind] = path
		}
	}
	if path, ok := w.vars["unix.rw"]; ok && !v.Bare {
		all["unix.rw"] = mountTargets + "rw/" + filepath.Base(path)
	}
	return all
}

// errorf says what of the world failed.
func errorf(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
