package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
)

// The minimal host tree: what programs of the host need to run, and nothing
// that tells of the host's users, services or state. /etc is made anew.
var (
	// systemFolders are bound read-only, or made as the same link where the
	// host has a link ("/bin" -> "usr/bin").
	systemFolders = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
	// systemFiles are bound read-only where the host has them: the linker's
	// cache and the links of /etc/alternatives, which /usr/bin leads through.
	systemFiles = []string{
		"etc/ld.so.cache", "etc/alternatives", "etc/localtime", "etc/mime.types",
		"etc/ssl/certs", "etc/ca-certificates.conf",
	}
	devices = []string{"null", "zero", "full", "random", "urandom", "tty"}
)

// maxSystemFile bounds a host file whose content is copied, not bound.
const maxSystemFile = 4 << 20

// treeAge is how long a look at the host's tree is believed.
const treeAge = 10 * time.Second

// HostTree is the image "host" as it was last seen.
type HostTree struct {
	mu   sync.Mutex
	at   time.Time
	spec bootspec.Spec
}

// AddTo adds the root tree to a boot message: that of the policy's image, which
// has been opened, or the host's.
func (l *HostTree) AddTo(boot *bootspec.Spec, spec *tranca.Spec) error {
	p, img := &spec.Policy, spec.Image
	if (p.Image == tranca.ImageHost) != (img == nil) {
		return fmt.Errorf("%w: image %q was not opened", tranca.ErrInvalid, p.Image)
	}
	if img == nil {
		return l.addHost(boot, p)
	}
	boot.Env, boot.Path = ImageEnvironment(p, img), ImagePath(img)
	return AddImage(boot, p, img)
}

// addHost adds the image "host".
func (l *HostTree) addHost(spec *bootspec.Spec, p *tranca.Policy) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) > treeAge {
		var look bootspec.Spec
		if err := hostTree(&look); err != nil {
			return err
		}
		l.spec, l.at = look, time.Now()
	}
	spec.Binds = append(spec.Binds, l.spec.Binds...)
	spec.Files = append(spec.Files, l.spec.Files...)
	spec.Links = append(spec.Links, l.spec.Links...)
	AddIdentity(spec, p)
	return nil
}

// hostTree looks what the host has of the minimal tree.
func hostTree(spec *bootspec.Spec) error {
	for _, name := range systemFolders {
		if err := addSystemFolder(spec, name); err != nil {
			return err
		}
	}
	for _, name := range systemFiles {
		if err := addSystemFile(spec, name); err != nil {
			return err
		}
	}
	return addDevices(spec)
}

// addDevices adds what every sandbox has in /dev.
func addDevices(spec *bootspec.Spec) error {
	for _, name := range devices {
		if _, err := os.Stat("/dev/" + name); err != nil {
			if name == "tty" {
				continue
			}
			return fmt.Errorf("%w: host device /dev/%s: %w", tranca.ErrUnavailable, name, err)
		}
		spec.Binds = append(spec.Binds, bootspec.Bind{
			Source: "/dev/" + name, Target: "dev/" + name, File: true, Device: true,
		})
	}
	spec.Links = append(spec.Links,
		bootspec.Link{Path: "dev/fd", Target: "/proc/self/fd"},
		bootspec.Link{Path: "dev/stdin", Target: "/proc/self/fd/0"},
		bootspec.Link{Path: "dev/stdout", Target: "/proc/self/fd/1"},
		bootspec.Link{Path: "dev/stderr", Target: "/proc/self/fd/2"},
	)
	return nil
}

func addSystemFolder(spec *bootspec.Spec, name string) error {
	fi, err := os.Lstat("/" + name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: host folder: %w", tranca.ErrUnavailable, err)
	}
	if fi.Mode()&os.ModeSymlink == 0 {
		spec.Binds = append(spec.Binds, bootspec.Bind{Source: "/" + name, Target: name})
		return nil
	}
	target, err := os.Readlink("/" + name)
	if err != nil {
		return fmt.Errorf("%w: host folder: %w", tranca.ErrUnavailable, err)
	}
	if !strings.HasPrefix(strings.TrimPrefix(target, "/"), "usr/") {
		return fmt.Errorf("%w: /%s leads to %s, outside /usr", tranca.ErrUnavailable, name, target)
	}
	spec.Links = append(spec.Links, bootspec.Link{Path: name, Target: target})
	return nil
}

// addSystemFile binds a file or folder below /etc. A link is resolved, and its
// file copied if it is small: the link's target need not be visible inside.
func addSystemFile(spec *bootspec.Spec, name string) error {
	real, err := filepath.EvalSymlinks("/" + name) //nolint:forbidigo // below /etc, where only root changes links
	if err != nil {
		return nil //nolint:nilerr // a host without it: programs that want it will say so
	}
	fi, err := os.Stat(real)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	switch {
	case real == "/"+name && (fi.IsDir() || fi.Mode().IsRegular()):
		spec.Binds = append(spec.Binds, bootspec.Bind{Source: real, Target: name, File: !fi.IsDir()})
	case fi.Mode().IsRegular() && fi.Size() <= 64<<10:
		content, err := readSmall(real)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		spec.Files = append(spec.Files, bootspec.File{Path: name, Content: content, Mode: 0o444})
	}
	return nil
}

func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSystemFile))
}

// AddIdentity writes the files by which programs look up users and hosts. They
// name nobody of the host.
func AddIdentity(spec *bootspec.Spec, p *tranca.Policy) {
	u := p.User
	passwd := "root:x:0:0:root:/root:/usr/sbin/nologin\n"
	group := "root:x:0:\n"
	if u.UID != 65534 {
		passwd += fmt.Sprintf("%s:x:%d:%d::/work:/bin/sh\n", u.Name, u.UID, u.GID)
		passwd += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	} else {
		passwd += fmt.Sprintf("%s:x:%d:%d::/work:/bin/sh\n", u.Name, u.UID, u.GID)
	}
	if u.GID != 65534 {
		group += fmt.Sprintf("%s:x:%d:\n", u.Name, u.GID)
	}
	group += "nogroup:x:65534:\n"
	files := map[string]string{
		"etc/passwd":        passwd,
		"etc/group":         group,
		"etc/hostname":      p.Hostname + "\n",
		"etc/hosts":         "127.0.0.1 localhost " + p.Hostname + "\n::1 localhost\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
		"etc/resolv.conf":   "",
	}
	for _, name := range []string{"etc/passwd", "etc/group", "etc/hostname", "etc/hosts", "etc/nsswitch.conf", "etc/resolv.conf"} {
		spec.Files = append(spec.Files, bootspec.File{Path: name, Content: []byte(files[name]), Mode: 0o444})
	}
}
