// Package debian makes root trees from Debian's packages, by mmdebstrap. The
// same packages with the same date give the same tree, byte for byte: times are
// cut to the date, and what tells of the build (logs, caches, the machine's id)
// is left out.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tranca"
)

// Recipe is what a tree is made from.
type Recipe struct {
	// Profile is "minimal" or "code".
	Profile string
	// Packages are added to the profile's.
	Packages []string
	// Suite is a release of Debian; empty is [DefaultSuite].
	Suite string
	// Mirror is a URL or the path of a file with apt's sources; empty is what
	// this host itself uses, where it is of that suite, else Debian's own.
	Mirror string
	// Date is the newest time in the tree; zero is the date of the suite's last
	// change, which the mirror tells.
	Date time.Time
}

// DefaultSuite is the release where none is named.
const DefaultSuite = "bookworm"

// The packages of each profile, and what every one has.
var profiles = map[string][]string{
	"minimal": {"python3-minimal", "ca-certificates"},
	"code": {
		"python3", "python3-numpy", "python3-pandas", "python3-matplotlib", "python3-ipykernel",
		"nodejs", "git", "curl", "ca-certificates",
	},
}

// withUser are the profiles that have a user of their own.
var withUser = []string{"code"}

// The names that there are. Their lengths are checked beside: a count in the
// expression would cost each start of the program the time of compiling it.
var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]+$`)
	suiteName   = regexp.MustCompile(`^[a-z][a-z0-9-]+$`)
)

const (
	longestPackage = 101
	longestSuite   = 61
)

// check refuses what could be more than a name to the tools.
func (r Recipe) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: image build: %s", tranca.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if profiles[r.Profile] == nil {
		return wrong("there is no profile %q", r.Profile)
	}
	for _, p := range r.Packages {
		if len(p) > longestPackage || !packageName.MatchString(p) {
			return wrong("%q is no name of a Debian package", p)
		}
	}
	if len(r.Suite) > longestSuite || !suiteName.MatchString(r.Suite) {
		return wrong("%q is no suite of Debian", r.Suite)
	}
	if r.Mirror != "" && !filepath.IsAbs(r.Mirror) && !strings.HasPrefix(r.Mirror, "http://") && !strings.HasPrefix(r.Mirror, "https://") {
		return wrong("mirror %q is neither a URL nor the absolute path of a file", r.Mirror)
	}
	if strings.ContainsAny(r.Mirror, " \t\n") {
		return wrong("mirror %q has spaces in it", r.Mirror)
	}
	return nil
}

// Build writes the tree as a tar archive to w. say is told each step of the
// tools. Errors wrap [tranca.ErrInvalid] or [tranca.ErrUnavailable]: then they
// name what is missing, and what mends it.
func Build(ctx context.Context, r Recipe, w io.Writer, say func(string)) error {
	if r.Suite == "" {
		r.Suite = DefaultSuite
	}
	if err := r.check(); err != nil {
		return err
	}
	program, mode, err := findTool()
	if err != nil {
		return err
	}
	if r.Mirror == "" {
		r.Mirror = hostSources(r.Suite)
	}
	raw, out := io.Pipe()
	defer raw.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := &teller{say: say}
	cmd := exec.CommandContext(ctx, program, r.arguments(mode)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, said, "/"
	cmd.Env = r.environment()
	// It kills its children and removes its folder when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: image build: %w", tranca.ErrUnavailable, err)
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		out.CloseWithError(err)
		ended <- err
	}()
	err = normalize(raw, w, r.Date)
	if err != nil {
		cancel()
	}
	raw.CloseWithError(io.ErrClosedPipe)
	if failed := <-ended; failed != nil && (err == nil || errors.Is(err, failed)) {
		return fmt.Errorf("%w: image build: mmdebstrap: %w%s", tranca.ErrUnavailable, failed, said.last())
	}
	return err
}

// findTool finds mmdebstrap, and how it can be used by this user.
func findTool() (program, mode string, err error) {
	missing := func(what, mend string) error {
		return &tranca.RefusalError{Unavailable: true, Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "image build", Missing: what, Mend: mend,
		}}}
	}
	program, err = exec.LookPath("mmdebstrap")
	if err != nil {
		return "", "", missing("mmdebstrap, which makes root trees of Debian's packages, is not there", "apt-get install mmdebstrap")
	}
	if os.Geteuid() == 0 {
		return program, "root", nil
	}
	for _, helper := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(helper); err != nil {
			return "", "", missing("another user than root needs "+helper, "apt-get install uidmap")
		}
	}
	if !hasSubordinates("/etc/subuid") || !hasSubordinates("/etc/subgid") {
		return "", "", missing("another user than root needs 65536 subordinate ids", "tranca setup")
	}
	return program, "unshare", nil
}

// hasSubordinates reports whether a file gives this user ids.
func hasSubordinates(path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	name := os.Getenv("USER")
	uid := fmt.Sprint(os.Geteuid())
	for line := range strings.Lines(string(b)) {
		owner, _, ok := strings.Cut(line, ":")
		if ok && (owner == uid || owner == name && name != "") {
			return true
		}
	}
	// The name may not be in the environment; mmdebstrap itself knows it.
	return name == "" && len(bytes.TrimSpace(b)) > 0
}

// hostSources are the sources of this host where they are for the suite: a mirror
// near by, and what its operator allows.
func hostSources(suite string) string {
	for _, path := range []string{"/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"} {
		b, err := os.ReadFile(path)
		if err == nil && slices.Contains(strings.Fields(withoutRemarks(string(b))), suite) {
			return path
		}
	}
	return ""
}

func withoutRemarks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// dateFile is where the hook leaves the dates of the suite, in the tree.
const dateFile = ".tranca-dates"

func (r Recipe) arguments(mode string) []string {
	packages := slices.Concat(profiles[r.Profile], r.Packages)
	args := []string{
		"--mode=" + mode, "--variant=minbase", "--format=tar", "--include=" + strings.Join(packages, ","),
		// The tree is thrown away where the build fails, so nothing waits for the disk.
		"--dpkgopt=force-unsafe-io",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/lintian/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright",
		`--customize-hook=cat "$1"/var/lib/apt/lists/*Release | grep ^Date: > "$1"/` + dateFile,
	}
	if slices.Contains(withUser, r.Profile) {
		args = append(args, `--customize-hook=chroot "$1" useradd --uid 1000 --user-group --create-home --shell /bin/bash user`)
	}
	args = append(args, r.Suite, "-")
	if r.Mirror != "" {
		args = append(args, r.Mirror)
	}
	return args
}

// environment is that of the tools: nothing that could change what they make,
// but for the way to the mirror.
func (r Recipe) environment() []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL=C.UTF-8", "TZ=UTC", "PYTHONHASHSEED=0", "DEBIAN_FRONTEND=noninteractive",
		"HOME=" + os.Getenv("HOME"), "USER=" + os.Getenv("USER"),
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	if dir := os.Getenv("TMPDIR"); fitForTree(dir) {
		env = append(env, "TMPDIR="+dir)
	}
	if !r.Date.IsZero() {
		env = append(env, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.Date.Unix()))
	}
	return env
}

// fitForTree reports whether a tree may be made in a folder. mmdebstrap shows the
// host's /dev in its tree and then removes the tree: one that lay below /dev held
// itself, and what the host has there would go with it.
func fitForTree(dir string) bool {
	real, err := filepath.EvalSymlinks(dir) //nolint:forbidigo // it is compared, not opened
	if err != nil || !filepath.IsAbs(real) {
		return false
	}
	for _, own := range []string{"/dev", "/proc", "/sys"} {
		if real == own || strings.HasPrefix(real, own+"/") {
			return false
		}
	}
	return true
}

// teller hands on each line that the tools say, and keeps the last ones, which
// say why they failed.
type teller struct {
	say  func(string)
	part []byte
	kept []string
}

func (t *teller) Write(b []byte) (int, error) {
	t.part = append(t.part, b...)
	for {
		i := bytes.IndexAny(t.part, "\r\n")
		if i < 0 {
			t.part = t.part[:min(len(t.part), 1<<10)]
			return len(b), nil
		}
		line := strings.TrimSpace(string(t.part[:i]))
		t.part = t.part[i+1:]
		if line == "" {
			continue
		}
		if t.kept = append(t.kept, line); len(t.kept) > 5 {
			t.kept = t.kept[1:]
		}
		if step, ok := strings.CutPrefix(line, "I: "); ok && t.say != nil {
			t.say(step)
		}
	}
}

func (t *teller) last() string {
	if len(t.kept) == 0 {
		return ""
	}
	return ":\n" + strings.Join(t.kept, "\n")
}
