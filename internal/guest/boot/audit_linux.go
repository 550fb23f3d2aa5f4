package boot

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
)

// audit compares the mounts that somebody else has made with what was asked
// for, before any code runs: by effect, not by what an engine says of them.
func audit(spec *bootspec.Spec) error {
	for _, s := range spec.Same {
		var st unix.Stat_t
		if err := unix.Lstat(s.Path, &st); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
		if st.Dev != s.Dev || st.Ino != s.Ino {
			return fmt.Errorf("%s is not what was asked for: another file or folder was mounted there", s.Path)
		}
	}
	for _, w := range spec.Writable {
		if err := auditSpace(w); err != nil {
			return err
		}
	}
	for _, p := range spec.Hidden {
		if err := auditHidden(p, spec.GuestProcesses > 0); err != nil {
			return fmt.Errorf("%s is not hidden: %w", p, err)
		}
	}
	return auditMounts(spec)
}

// auditHidden looks whether a path shows nothing, on the host's kernel or on a
// guest's. A folder is closed to this
// process too; but its file system tells how much there is.
func auditHidden(path string, guest bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if st.Size != 0 {
			return errors.New("the file is not empty")
		}
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	// gVisor says of each file system of the host that it is 9P.
	own := fs.Type == unix.TMPFS_MAGIC || guest && fs.Type == unix.V9FS_MAGIC
	if !own || fs.Bfree != fs.Blocks || fs.Blocks == 0 {
		return errors.New("the folder is not an empty file system of its own")
	}
	return nil
}

// auditSpace looks at the file system behind a writable place.
func auditSpace(w bootspec.Writable) error {
	if w.Size == 0 && w.Inodes == 0 {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(w.Path, &st); err != nil {
		return fmt.Errorf("%s: %w", w.Path, err)
	}
	size := st.Blocks * uint64(st.Bsize)
	if w.Size != 0 && (st.Blocks == 0 || size > w.Size+uint64(st.Bsize)) {
		return fmt.Errorf("%s holds %d bytes, not %d", w.Path, size, w.Size)
	}
	if w.Inodes != 0 && (st.Files == 0 || st.Files > w.Inodes) {
		return fmt.Errorf("%s holds %d inodes, not %d", w.Path, st.Files, w.Inodes)
	}
	return nil
}

// auditMounts refuses a mount that programs could write to and nobody asked
// for. Those of the kernel's own file systems that a container needs are
// bounded by other means.
func auditMounts(spec *bootspec.Spec) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m, ok := parseMount(lines.Text())
		if !ok {
			return fmt.Errorf("mountinfo is malformed: %q", lines.Text())
		}
		if err := auditMount(spec, m); err != nil {
			return err
		}
	}
	return lines.Err()
}

func auditMount(spec *bootspec.Spec, m mountLine) error {
	for _, w := range spec.Writable {
		if m.point == w.Path || m.writable && strings.HasPrefix(m.point, w.Path+"/") && w.Size == 0 && w.Inodes == 0 {
			return nil // below it, the host's own mounts
		}
	}
	if !m.writable {
		return nil
	}
	switch m.kind {
	case "proc", "devpts", "mqueue":
		return nil
	case "cgroup", "cgroup2", "sysfs":
		if spec.GuestProcesses > 0 {
			return nil // a kernel's that is the sandbox's own
		}
	case "tmpfs", "devtmpfs", "dev":
		if m.point == "/dev" {
			return nil // root's alone
		}
	}
	var st unix.Stat_t
	switch err := unix.Lstat(m.point, &st); {
	case errors.Is(err, unix.ENOENT), err == nil && device(st.Dev) != m.device:
		return nil // covered by another mount, which has a line of its own
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR:
		return nil // one of the usual devices, or a mask
	}
	return fmt.Errorf("the mount at %s is writable, and nobody asked for it", m.point)
}

// mountLine is what matters of a line of mountinfo.
type mountLine struct {
	point, kind string
	device      string // "MAJOR:MINOR" of its file system
	writable    bool
}

func device(dev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)) }

// parseMount reads "36 35 98:0 /root /point opts fields... - type source opts".
func parseMount(line string) (m mountLine, ok bool) {
	front, back, ok := strings.Cut(line, " - ")
	if !ok {
		return m, false
	}
	f, b := strings.Fields(front), strings.Fields(back)
	if len(f) < 6 || len(b) < 2 {
		return m, false
	}
	m.point, m.kind, m.device = path.Clean(unescape(f[4])), b[0], f[2]
	m.writable = !hasOption(f[5], "ro") && !hasOption(b[len(b)-1], "ro")
	return m, true
}

func hasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// unescape undoes the kernel's octal escapes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1:i+4]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isOctal(s string) bool {
	return strings.Trim(s, "01234567") == ""
}
