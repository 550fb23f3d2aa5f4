package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/archive"
	"tranca/internal/terminal"
)

const cpHelp = `Copies a file or a whole folder into a sandbox or out of one. ID:PATH is in the
sandbox; a PATH that is not absolute begins at /work. Where DST is a folder that
is there, or ends with a slash, the copy goes into it under its own name; SRC/.
is what is in a folder. A local name with a colon is written ./a:b.

A minus is standard input or output, a folder goes there as a tar.

Of folders, files, folders and links are copied, with their permissions; owners
are not. What comes out of a sandbox is written below DST and nowhere else: no
link is followed, neither one of the copy nor one that was there, and names that
lead out end it. Links that lead out are left out, and named.

A file that comes out is whole or not there: up to its end it has the name
DST.part. With --resume it goes on where an earlier copy of the same file, in or
out, broke off; that the file is still the same is for you to know.

Examples:
  tranca cp data.csv $id:
  tranca cp $id:/work/out ./results
  tranca cp --resume model.bin $id:/work/model.bin
  tranca cp $id:/work/plot.png - > plot.png

`

func (a *app) cpCommand() *cli.Command {
	return &cli.Command{
		Name:        "cp",
		Usage:       "copy files and folders into a sandbox and out of it",
		ArgsUsage:   "SRC DST",
		Description: cpHelp + statusHelp("0      all was copied"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "resume", Usage: "go on with the copy of a single file"},
			serverFlag(),
		},
		Action: a.cp,
	}
}

// place is one end of a copy.
type place struct {
	id   tranca.ID // empty: on this host
	path string
}

func (p place) remote() bool { return p.id != "" }

// stream reports whether the place is standard input or output.
func (p place) stream() bool { return !p.remote() && p.path == "-" }

// folderAsked reports whether a path says that it is a folder.
func folderAsked(name string) bool { return strings.HasSuffix(name, "/") }

// contentsAsked reports whether what is in a folder is meant, and not itself.
func contentsAsked(name string) bool {
	name = filepath.ToSlash(name)
	return name == "." || name == ".." || strings.HasSuffix(name, "/.") || strings.HasSuffix(name, "/..") || path.Clean(name) == "/"
}

// workFolder is where a path in a sandbox begins.
const workFolder = "/work"

// parsePlace takes an argument of cp apart. One letter before a colon is a
// drive where there are such.
func parsePlace(text string) place {
	id, name, ok := strings.Cut(text, ":")
	if !ok || len(id) < 2 || strings.ContainsAny(id, `/\`) {
		return place{path: text}
	}
	if !strings.HasPrefix(name, "/") {
		name = workFolder + "/" + name
	}
	return place{tranca.ID(id), name}
}

func (a *app) cp(ctx context.Context, c *cli.Command) error {
	if err := argumentCount(c, 2, 2); err != nil {
		return err
	}
	src, dst := parsePlace(c.Args().Get(0)), parsePlace(c.Args().Get(1))
	switch {
	case src.remote() && dst.remote():
		return &usageError{c.FullName(), "both are in a sandbox: copy by way of this host, such as: tranca cp ID:FILE - | tranca cp - ID:FILE"}
	case !src.remote() && !dst.remote():
		return &usageError{c.FullName(), "neither is in a sandbox: want ID:PATH for one of them"}
	case c.Bool("resume") && (src.stream() || dst.stream()):
		return &usageError{c.FullName(), "--resume goes on with a file, and a stream is none"}
	}
	return a.withServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		box, err := findSandbox(ctx, s, src.id+dst.id)
		if err != nil {
			return err
		}
		if dst.remote() {
			return (&upload{a: a, box: box, resume: c.Bool("resume")}).copy(ctx, src.path, dst.path)
		}
		return (&download{a: a, box: box, resume: c.Bool("resume")}).copy(ctx, src.path, dst.path)
	})
}

// errResumeFolder says what can't be resumed.
var errResumeFolder = fmt.Errorf("%w: --resume goes on with a single file, and this is a folder", tranca.ErrInvalid)

// existing is what is known of a path of a sandbox, or nil where nothing is.
func existing(ctx context.Context, files tranca.Files, name string) (*tranca.FileInfo, error) {
	info, err := files.Stat(ctx, path.Clean(name))
	switch {
	case errors.Is(err, tranca.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// remoteIsFolder reports whether a path of a sandbox is a folder that is there.
func remoteIsFolder(ctx context.Context, files tranca.Files, name string) (bool, error) {
	info, err := existing(ctx, files, name)
	return info != nil && info.Type == tranca.FileDirectory, err
}

// saySkipped names what a copy does not hold.
func (a *app) saySkipped(s archive.Skipped, why string) {
	const most = 10
	for i, name := range s.Names {
		if i == most {
			fmt.Fprintf(a.Stderr, "tranca: and %d more\n", s.Count-most)
			return
		}
		fmt.Fprintf(a.Stderr, "tranca: left out: %s (%s)\n", terminal.Clean(name), why)
	}
}
