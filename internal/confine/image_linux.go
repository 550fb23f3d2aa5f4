package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
)

// maxImageBinds bounds what of an image is shown piece by piece. Each piece is a
// mount: an image has some twenty of them, a hostile one what it likes.
const maxImageBinds = 200

// ownPlaces are those of the root that no image fills.
var ownPlaces = []string{"dev", "proc", "sys", "tmp", "work", "etc"}

// imageTree shows the tree of an image.
type imageTree struct {
	root  *os.Root
	spec  *bootspec.Spec
	binds int
	// targets are those of the policy's mounts, relative.
	targets []string
}

// AddImage adds the tree of an image to a boot message: its folders and files as
// read-only binds, its links at the top as links, and over its /etc the files of
// every sandbox's own. A folder in which the policy mounts something is made
// anew, and shows what the image has in it piece by piece.
func AddImage(spec *bootspec.Spec, p *tranca.Policy, img *tranca.Image) error {
	root, err := os.OpenRoot(img.Root)
	if err != nil {
		return fmt.Errorf("%w: image %s: %w", tranca.ErrUnavailable, img.Name, err)
	}
	defer root.Close()
	t := &imageTree{root: root, spec: spec}
	for _, m := range p.Mounts {
		t.targets = append(t.targets, strings.TrimPrefix(m.Target, "/"))
	}
	spec.Image = img.Root
	if err := t.folder("."); err != nil {
		return t.refusal(img, err)
	}
	if err := t.etc(p); err != nil {
		return t.refusal(img, err)
	}
	return addDevices(spec)
}

// refusal says that this image can't be shown.
func (t *imageTree) refusal(img *tranca.Image, err error) error {
	var why *unfit
	if errors.As(err, &why) {
		return &tranca.RefusalError{Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "image " + img.Name, Missing: why.missing, Mend: why.mend,
		}}}
	}
	return fmt.Errorf("%w: image %s: %w", tranca.ErrUnavailable, img.Name, err)
}

type unfit struct{ missing, mend string }

func (u *unfit) Error() string { return u.missing }

// folder shows what a folder of the image holds.
func (t *imageTree) folder(dir string) error {
	f, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	list, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range list {
		name := path.Join(dir, e.Name())
		if dir == "." && (slices.Contains(ownPlaces, name) || strings.HasPrefix(name, ".")) {
			continue // what begins with a dot is nobody's, but for what tranca makes
		}
		if err := t.entry(name, e); err != nil {
			return err
		}
	}
	return nil
}

// entry shows one entry, unless the policy mounts something there.
func (t *imageTree) entry(name string, e fs.DirEntry) error {
	below := slices.ContainsFunc(t.targets, func(target string) bool { return strings.HasPrefix(target, name+"/") })
	if slices.Contains(t.targets, name) {
		return nil
	}
	if t.binds++; t.binds > maxImageBinds {
		return &unfit{
			missing: fmt.Sprintf("the image has more than %d entries at its top, or beside a mount", maxImageBinds),
			mend:    "another target for the mount, or another image",
		}
	}
	switch {
	case below && !e.IsDir():
		return &unfit{
			missing: "/" + name + " is no folder in the image, and a mount is to lie below it",
			mend:    "a target for the mount that does not lead through it",
		}
	case below:
		t.spec.Folders = append(t.spec.Folders, name)
		return t.folder(name)
	case e.Type()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(name)
		if err != nil {
			return err
		}
		t.spec.Links = append(t.spec.Links, bootspec.Link{Path: name, Target: to})
	case e.IsDir() && t.isEmpty(name):
		t.spec.Folders = append(t.spec.Folders, name)
	case e.IsDir() || e.Type().IsRegular():
		t.spec.Binds = append(t.spec.Binds, bootspec.Bind{From: bootspec.FromImage, Source: name, Target: name, File: !e.IsDir()})
	}
	return nil
}

// isEmpty spares a mount for a folder that shows nothing.
func (t *imageTree) isEmpty(name string) bool {
	f, err := t.root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	list, err := f.Readdirnames(1)
	return len(list) == 0 && err != nil
}

// etc shows the image's /etc, which may be a link, and over it the files that
// every sandbox has of its own. The store has made a place for each.
func (t *imageTree) etc(p *tranca.Policy) error {
	source, err := t.etcFolder()
	if err != nil {
		return err
	}
	t.spec.Binds = append(t.spec.Binds, bootspec.Bind{From: bootspec.FromImage, Source: source, Target: "etc"})
	var own bootspec.Spec
	AddIdentity(&own, p)
	for _, f := range own.Files {
		base := path.Base(f.Path)
		info, err := t.root.Lstat(path.Join(source, base))
		if err != nil || !info.Mode().IsRegular() {
			return &unfit{missing: "the image's tree has no file /" + f.Path + " to cover", mend: "tranca image rm, and get it again"}
		}
		at := bootspec.OwnFolder + "/" + base
		t.spec.Files = append(t.spec.Files, bootspec.File{Path: at, Content: f.Content, Mode: f.Mode})
		t.spec.Binds = append(t.spec.Binds, bootspec.Bind{From: bootspec.FromRoot, Source: at, Target: f.Path, File: true})
	}
	return nil
}

// etcFolder is where the image's /etc really is.
func (t *imageTree) etcFolder() (string, error) {
	top, err := t.root.Open(".")
	if err != nil {
		return "", err
	}
	defer top.Close()
	fd, err := unix.Openat2(int(top.Fd()), "etc", &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return "", &unfit{missing: "the image's tree has no folder /etc", mend: "tranca image rm, and get it again"}
	}
	defer unix.Close(fd)
	return below(int(top.Fd()), fd)
}

// below says where one folder is, relative to another.
func below(dir, fd int) (string, error) {
	root, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return "", err
	}
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	rel, ok := strings.CutPrefix(at, root+"/")
	if !ok {
		return "", &unfit{missing: "the image's /etc is no folder of its own"}
	}
	return rel, nil
}

// ImageEnvironment is [Environment] in an image, whose own variables come first:
// the policy's win over them, and so do those that say who the code is.
func ImageEnvironment(p *tranca.Policy, img *tranca.Image) []string {
	if img == nil {
		return Environment(p)
	}
	own := *p
	own.Env = map[string]string{}
	for name, value := range img.Env {
		switch name {
		case "HOME", "USER", "LOGNAME", "TMPDIR", "PWD":
		default:
			own.Env[name] = value
		}
	}
	maps.Copy(own.Env, p.Env)
	return Environment(&own)
}

// ImagePath is where programs are looked up in an image; nil is the host's tree.
func ImagePath(img *tranca.Image) string {
	if img != nil && img.Env["PATH"] != "" {
		return img.Env["PATH"]
	}
	return SearchPath
}
