package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/image"
)

// Images is the store of images, with the ways into it.
type Images interface {
	// Pull gets an image from a registry.
	Pull(ctx context.Context, reference string, plainHTTP bool, o image.AddOptions) (image.Info, error)
	// Import takes a file or folder, or what comes by in where from is "-".
	Import(ctx context.Context, from string, in io.Reader, o image.AddOptions) (image.Info, error)
	// Build makes an image of packages.
	Build(ctx context.Context, b BuildSetup, o image.AddOptions) (image.Info, error)
	// List returns all images, Inspect all that is known of one.
	List(ctx context.Context) ([]image.Info, error)
	Inspect(ctx context.Context, name string) (image.Detail, error)
	// Remove gives up a name, Prune what nothing leads to.
	Remove(ctx context.Context, name string) (image.Removed, error)
	Prune(ctx context.Context, all bool, keep func(image.Info) bool) (image.Removed, error)
	// Users returns the policy files that name each image, by its digest.
	Users(ctx context.Context) (map[string][]string, error)
}

// BuildSetup is what an image of packages is made from.
type BuildSetup struct {
	// Profile is what is in it: one of [image.Profiles].
	Profile string
	// Packages are added to the profile's.
	Packages []string
	// Suite and Mirror say of which Debian; empty is tranca's own choice.
	Suite, Mirror string
	// Date pins the times in it; zero is the date of the suite's last change.
	Date time.Time
	// Log takes what the tools say.
	Log io.Writer
}

const imageHelp = `An image is a root tree for sandboxes. A policy names one by its name or digest
(image: code); without that, or with image: host, the code sees a minimal part
of this host's own tree. Images are kept in your cache folder, unpacked once and
shared, read-only, by all sandboxes. Whatever its configuration says: the policy
decides what runs, and as whom.

`

func (a *app) imageCommand() *cli.Command {
	return &cli.Command{
		Name:        "image",
		Usage:       "get, build, list and remove root trees for sandboxes",
		Description: imageHelp,
		Commands: []*cli.Command{
			a.imageBuild(), a.imagePull(), a.imageImport(), a.imageList(), a.imageInspect(), a.imageRm(), a.imagePrune(),
		},
		Action: noCommand,
	}
}

// withImages does the work of a command with the store. The first signal ends
// the context, and with it the work.
func (a *app) withImages(ctx context.Context, c *cli.Command, work func(context.Context, Images) error) error {
	if a.Elsewhere != nil {
		return a.Elsewhere
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	return a.reported(c, work(ctx, a.Images()))
}

// steps shows what is done, one thing after the other.
type steps struct {
	a   *app
	now *progress
}

func (s *steps) tell(step image.Step) {
	if step.What != "" {
		s.stop()
		s.now = s.a.progress(step.What, step.Total)
	}
	if s.now != nil {
		s.now.done.Add(step.Done)
	}
}

func (s *steps) stop() {
	if s.now != nil {
		s.now.stop()
		s.now = nil
	}
}

// add does what brings an image in, and says what came.
func (a *app) add(ctx context.Context, c *cli.Command, name string, work func(context.Context, Images, image.AddOptions) (image.Info, error)) error {
	platform, err := image.ParsePlatform(c.String("platform"))
	if err != nil {
		return &usageError{c.FullName(), "--platform: " + plain(err)}
	}
	if _, err := image.ParseName(name); err != nil {
		return &usageError{c.FullName(), plain(err)}
	}
	return a.withImages(ctx, c, func(ctx context.Context, store Images) error {
		s := &steps{a: a}
		defer s.stop()
		info, err := work(ctx, store, image.AddOptions{Name: name, Platform: platform, Progress: s.tell})
		s.stop()
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			return a.printJSON(info)
		}
		a.noteTree(info)
		_, err = fmt.Fprintf(a.Stdout, "%s  %s  %s\n", name, info.Digest, roundSize(info.Size))
		return err
	})
}

// noteTree says what the tree has not, though the image had it.
func (a *app) noteTree(info image.Info) {
	if n := info.Tally.LeftOut; n > 0 {
		fmt.Fprintf(a.Stderr, "tranca: %d devices, FIFOs and sockets were left out: sandboxes have devices of their own\n", n)
	}
	if n := info.Tally.SetID; n > 0 {
		fmt.Fprintf(a.Stderr, "tranca: %d programs lost their set-id bits: nothing in a sandbox becomes another user\n", n)
	}
}

func platformFlag() cli.Flag {
	return &cli.StringFlag{Name: "platform", Usage: "take the one for this `OS/ARCHITECTURE`; left out, this host's", HideDefault: true}
}

const imagePullHelp = `Gets an image from a registry, by a tag or a digest. Each blob is compared with
its digest. Who you are there comes from the files that docker login and podman
login write. Prints its name, digest and size.

Examples:
  tranca image pull python:3.12-slim
  tranca image pull --name tools registry.example/team/tools:v1
  tranca image pull python@sha256:…

`

func (a *app) imagePull() *cli.Command {
	return &cli.Command{
		Name:        "pull",
		Usage:       "get an image from a registry",
		ArgsUsage:   "REFERENCE",
		Description: imagePullHelp + statusHelp("0      it is there"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "call it by this `NAME`; left out, as the registry does", HideDefault: true},
			platformFlag(),
			&cli.BoolFlag{Name: "plain-http", Usage: "allow a registry that does not speak TLS"},
			jsonFlag("print what is known of it as JSON"),
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := argumentCount(c, 1, 1); err != nil {
				return err
			}
			reference := c.Args().First()
			name := reference
			if c.IsSet("name") {
				name = c.String("name")
			}
			return a.add(ctx, c, name, func(ctx context.Context, s Images, o image.AddOptions) (image.Info, error) {
				return s.Pull(ctx, reference, c.Bool("plain-http"), o)
			})
		},
	}
}

const imageImportHelp = `Takes an image from the disk: an OCI layout (a folder or a tar archive), an
archive of docker save, or a root tree (a folder, or a tarball). What it is, its
content tells. - is standard input. Prints its name, digest and size.

Examples:
  docker save tool | tranca image import - tool
  tranca image import rootfs.tar.gz mine
  tranca image import ./rootfs mine

`

func (a *app) imageImport() *cli.Command {
	return &cli.Command{
		Name:        "import",
		Usage:       "take an image from a file, a folder or standard input",
		ArgsUsage:   "FILE|FOLDER|- NAME",
		Description: imageImportHelp + statusHelp("0      it is there"),
		Flags:       []cli.Flag{platformFlag(), jsonFlag("print what is known of it as JSON")},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := argumentCount(c, 2, 2); err != nil {
				return err
			}
			return a.add(ctx, c, c.Args().Get(1), func(ctx context.Context, s Images, o image.AddOptions) (image.Info, error) {
				return s.Import(ctx, c.Args().First(), a.Stdin, o)
			})
		},
	}
}

const imageBuildHelp = `Makes an image from Debian's packages, without a registry: needs mmdebstrap, and
as another user than root subordinate ids (tranca setup). The same packages with
the same date give the same image, byte for byte.

  minimal  python3 and certificates
  code     also numpy, pandas, matplotlib, ipykernel, node, git, curl, and a
           user "user" with its home

Examples:
  tranca image build code
  tranca image build minimal
  tranca image build mine --profile code --packages jq,ripgrep

`

func (a *app) imageBuild() *cli.Command {
	return &cli.Command{
		Name:        "build",
		Usage:       "make an image from Debian's packages",
		ArgsUsage:   "NAME",
		Description: imageBuildHelp + statusHelp("0      it is there"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "profile", Usage: "what is in it: `code|minimal`; left out, by the name, or minimal", HideDefault: true},
			&cli.GenericFlag{Name: "packages", Usage: "add these Debian `PACKAGES`, parted by commas; may be repeated", HideDefault: true, Value: &values{}},
			&cli.StringFlag{Name: "suite", Usage: "of this `SUITE` of Debian", Value: "bookworm"},
			&cli.StringFlag{Name: "mirror", Usage: "from this `URL`, or the file with apt's sources", HideDefault: true},
			&cli.StringFlag{Name: "date", Usage: "no file is newer than `YYYY-MM-DD`; left out, the date of the suite", HideDefault: true},
			jsonFlag("print what is known of it as JSON"),
		},
		Action: a.buildImage,
	}
}

func (a *app) buildImage(ctx context.Context, c *cli.Command) error {
	if err := argumentCount(c, 1, 1); err != nil {
		return err
	}
	name := c.Args().First()
	b := BuildSetup{Profile: c.String("profile"), Suite: c.String("suite"), Mirror: c.String("mirror"), Log: a.Stderr}
	switch {
	case b.Profile == "" && slices.Contains(image.Profiles, name):
		b.Profile = name
	case b.Profile == "":
		b.Profile = "minimal"
	case !slices.Contains(image.Profiles, b.Profile):
		return &usageError{c.FullName(), fmt.Sprintf("--profile: %q is not one of %s", b.Profile, strings.Join(image.Profiles, ", "))}
	}
	given, _ := c.Generic("packages").(*values)
	for _, text := range *given {
		for p := range strings.SplitSeq(text, ",") {
			if p = strings.TrimSpace(p); p != "" {
				b.Packages = append(b.Packages, p)
			}
		}
	}
	if text := c.String("date"); text != "" {
		date, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return &usageError{c.FullName(), fmt.Sprintf("--date: %q is not YYYY-MM-DD", text)}
		}
		b.Date = date
	}
	return a.add(ctx, c, name, func(ctx context.Context, s Images, o image.AddOptions) (image.Info, error) {
		return s.Build(ctx, b, o)
	})
}

// notFound says of an image that isn't there what people expect of a name, where
// a run would be refused.
func notFound(err error) error {
	var refused *tranca.RefusalError
	if errors.As(err, &refused) && errors.Is(err, tranca.ErrNotFound) {
		return fmt.Errorf("%w: %s; get it: %s", tranca.ErrNotFound, refused.Problems[0].Missing, refused.Problems[0].Mend)
	}
	return err
}
