package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"tranca"
)

// dropped is what tells of the build, or is found again by whoever needs it: at
// these places folders stay and are empty, and files are gone.
var dropped = []string{
	"tmp/", "run/", "var/tmp/", "var/log/", "var/cache/", "var/lib/apt/", "usr/share/doc/", "usr/share/man/",
	"usr/share/info/", "usr/share/lintian/", "var/lib/dpkg/lock", "var/lib/dpkg/status-old",
	"var/lib/dpkg/available-old", "var/lib/dpkg/diversions-old", "etc/machine-id", "var/lib/dbus/machine-id",
	"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-", "etc/hostname",
	"etc/resolv.conf", "etc/apt/sources.list", "etc/apt/sources.list.d/", "etc/.pwd.lock",
	"etc/dpkg/dpkg.cfg.d/99mmdebstrap", "etc/apt/apt.conf.d/99mmdebstrap",
}

// kept are exceptions: a license must go with what it is the license of.
func kept(name string) bool {
	return strings.HasPrefix(name, "usr/share/doc/") && path.Base(name) == "copyright"
}

func isDropped(name string, folder bool) bool {
	for _, d := range dropped {
		below, isFolder := strings.CutSuffix(d, "/")
		if name == below {
			return !isFolder
		}
		if isFolder && strings.HasPrefix(name, d) {
			return !kept(name) && !(folder && strings.HasPrefix(name, "usr/share/doc/"))
		}
	}
	return false
}

// normalize copies a tree, without what differs from build to build. The date
// that it has none of may only come at the end, so the tree waits in a file.
func normalize(r io.Reader, w io.Writer, date time.Time) error {
	spool, err := os.CreateTemp("", "tranca-build-")
	if err != nil {
		return fmt.Errorf("%w: image build: %w", tranca.ErrUnavailable, err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return fmt.Errorf("%w: image build: %w", tranca.ErrUnavailable, err)
	}
	if _, err := io.Copy(spool, r); err != nil {
		return err
	}
	if date.IsZero() {
		if date, err = suiteDate(spool); err != nil {
			return err
		}
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in, out := tar.NewReader(spool), tar.NewWriter(w)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return out.Close()
		}
		if err != nil {
			return fmt.Errorf("%w: image build: what mmdebstrap made can't be read: %w", tranca.ErrUnavailable, err)
		}
		if err := copyEntry(in, out, h, date); err != nil {
			return err
		}
	}
}

// suiteDate reads the newest date of the suites from the tree.
func suiteDate(spool *os.File) (time.Time, error) {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return time.Time{}, err
	}
	in := tar.NewReader(spool)
	for {
		h, err := in.Next()
		if err != nil {
			return time.Time{}, fmt.Errorf("%w: image build: the mirror does not tell the date of the suite: name one (--date)", tranca.ErrUnavailable)
		}
		if path.Clean(h.Name) != dateFile {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(in, 64<<10))
		if err != nil {
			return time.Time{}, err
		}
		if date := newest(string(text)); !date.IsZero() {
			return date, nil
		}
	}
}

func newest(text string) time.Time {
	var date time.Time
	for line := range strings.Lines(text) {
		t, err := time.Parse(time.RFC1123, strings.TrimSpace(strings.TrimPrefix(line, "Date:")))
		if err == nil && t.After(date) {
			date = t.UTC()
		}
	}
	return date
}

// maxRewritten bounds a file whose content is looked at.
const maxRewritten = 4 << 20

func copyEntry(in io.Reader, out *tar.Writer, h *tar.Header, date time.Time) error {
	name := strings.TrimPrefix(path.Clean(h.Name), "/")
	if name == dateFile || isDropped(name, h.Typeflag == tar.TypeDir) {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	default:
		return nil // devices: whoever shows the tree has its own
	}
	if h.ModTime.After(date) {
		h.ModTime = date
	}
	clean := &tar.Header{
		Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode,
		Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime.Truncate(time.Second), Format: tar.FormatPAX,
	}
	body := in
	if name == "etc/shadow" && h.Size < maxRewritten {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		text = pinShadow(text, date)
		clean.Size, body = int64(len(text)), bytes.NewReader(text)
	}
	if err := out.WriteHeader(clean); err != nil {
		return err
	}
	_, err := io.Copy(out, body)
	if errors.Is(err, tar.ErrWriteTooLong) {
		err = fmt.Errorf("%w: image build: %s: %w", tranca.ErrUnavailable, name, err)
	}
	return err
}

// pinShadow sets the day on which each password was changed last.
func pinShadow(text []byte, date time.Time) []byte {
	day := strconv.FormatInt(date.Unix()/(24*3600), 10)
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(fields) > 2 && fields[2] != "" {
			fields[2] = day
		}
		b.WriteString(strings.Join(fields, ":") + "\n")
	}
	return []byte(b.String())
}
