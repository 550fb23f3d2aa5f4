//go:build linux

package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tranca"
	"tranca/internal/cli"
	"tranca/internal/image"
	"tranca/internal/image/debian"
	"tranca/internal/image/registry"
	"tranca/internal/policyfile"
)

// images is the store with the ways into it.
type images struct{ *image.Store }

func newImages() cli.Images { return images{image.New(image.Options{})} }

// Pull gets an image from a registry.
func (s images) Pull(ctx context.Context, reference string, plainHTTP bool, o image.AddOptions) (image.Info, error) {
	src, err := registry.New(reference, registry.Options{PlainHTTP: plainHTTP, UserAgent: "tranca/" + cli.Version})
	if err != nil {
		return image.Info{}, err
	}
	return s.Add(ctx, src, o)
}

// Import takes what is on the disk, or comes by in.
func (s images) Import(ctx context.Context, from string, in io.Reader, o image.AddOptions) (image.Info, error) {
	if from == "-" {
		return s.ImportStream(ctx, in, o)
	}
	return s.Store.Import(ctx, from, o)
}

// Build makes an image of Debian's packages.
func (s images) Build(ctx context.Context, b cli.BuildSetup, o image.AddOptions) (image.Info, error) {
	recipe := debian.Recipe{Profile: b.Profile, Packages: b.Packages, Suite: b.Suite, Mirror: b.Mirror, Date: b.Date}
	say := func(what string) {
		if o.Progress != nil {
			o.Progress(image.Step{What: what})
		}
	}
	return s.ImportMade(ctx, "Debian "+recipe.Suite+", "+b.Profile, o, func(ctx context.Context, w io.Writer) error {
		return debian.Build(ctx, recipe, w, say)
	})
}

// Users reads the policies of the system's folder and the user's. One that
// can't be read names no image.
func (s images) Users(ctx context.Context) (map[string][]string, error) {
	users := map[string][]string{}
	dirs := []string{policyfile.SystemDir}
	if config, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(config, "tranca"))
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			p, err := policyfile.Read(file)
			if err != nil || p.Image == tranca.ImageHost {
				continue
			}
			digest, err := s.Digest(ctx, p.Image)
			if errors.Is(err, tranca.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if !slices.Contains(users[digest], file) {
				users[digest] = append(users[digest], file)
			}
		}
	}
	return users, nil
}
