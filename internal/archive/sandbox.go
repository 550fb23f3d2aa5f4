package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"tranca"
)

// Extract extracts a tar archive into a folder of a sandbox, which it makes where
// nothing is. Files that are there are replaced and keep their modes; folders
// that are there are filled.
//
// An entry that has no business there is [tranca.ErrInvalid] with its name.
// Links take the ability [tranca.FileLinker]: where files lacks it, an archive
// with links is [tranca.ErrUnsupported]. Other errors are those of files. After
// an error what was extracted stays, and the last file may be there in part.
//
// The code in the sandbox can put a link where a folder was looked at a moment
// ago. That leads at most to where the code itself may write.
func Extract(ctx context.Context, files tranca.Files, path string, r io.Reader, opts Options) (Summary, error) {
	info, err := files.Stat(ctx, path)
	switch {
	case errors.Is(err, tranca.ErrNotFound):
		_, err = files.MakeDir(ctx, path)
	case err == nil && info.Type != tranca.FileDirectory:
		err = fmt.Errorf("%w: extracting into %.200q, which is a %s: name a folder", tranca.ErrInvalid, path, info.Type)
	}
	if err != nil {
		return Summary{}, err
	}
	linker, _ := tranca.As[tranca.FileLinker](files)
	return extract(ctx, &inside{ctx, files, linker, strings.TrimRight(path, "/") + "/"}, r, opts)
}

// inside is a folder of a sandbox.
type inside struct {
	ctx    context.Context
	files  tranca.Files
	linker tranca.FileLinker // nil where there is none
	base   string
}

func (t *inside) kind(name string) (tranca.FileType, string, error) {
	info, err := t.files.Stat(t.ctx, t.base+name)
	if errors.Is(err, tranca.ErrNotFound) {
		return "", "", nil
	}
	return info.Type, info.LinkTarget, err
}

func (t *inside) mkdir(name string) error {
	_, err := t.files.MakeDir(t.ctx, t.base+name)
	return err
}

func (t *inside) write(name string, r io.Reader, mode fs.FileMode) error {
	_, err := t.files.Write(t.ctx, t.base+name, r, mode)
	return err
}

func (t *inside) symlink(name, to string) error {
	if t.linker == nil {
		return fmt.Errorf("%w: this sandbox makes no links", tranca.ErrUnsupported)
	}
	return t.linker.Symlink(t.ctx, to, t.base+name)
}

func (t *inside) remove(name string) error { return t.files.Remove(t.ctx, t.base+name) }
