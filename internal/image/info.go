//go:build linux

package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// info returns what is known of one image.
func (s *Store) info(ctx context.Context, digest string) (Info, error) {
	refs, err := s.refs(ctx)
	if err != nil {
		return Info{}, err
	}
	return s.describe(digest, refs), nil
}

// describe never fails: what is damaged is worth listing most of all.
func (s *Store) describe(digest string, refs []ref) Info {
	i := Info{Digest: digest, Names: []string{}}
	for _, r := range refs {
		if r.Digest == digest {
			i.Names = append(i.Names, r.Name)
			if r.Added.After(i.Added) {
				i.Added, i.Source = r.Added, r.Source
			}
		}
	}
	slices.Sort(i.Names)
	m, c, err := s.documents(digest)
	if err != nil {
		i.Damaged = err.Error()
		return i
	}
	for _, l := range m.Layers {
		i.Size += l.Size
	}
	i.Platform = c.Platform
	t, err := s.readMarker(digest)
	switch {
	case err == nil:
		i.Tally = t.Tally
		if info, err := os.Stat(s.path(treesDir, hexOf(digest), markerName)); err == nil {
			i.Used = info.ModTime()
		}
	case !errors.Is(err, fs.ErrNotExist):
		i.Damaged = err.Error()
	}
	return i
}

// List returns all images, the named ones first, by their names.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	if err := s.look(); errors.Is(err, fs.ErrNotExist) {
		return []Info{}, nil
	} else if err != nil {
		return nil, err
	}
	refs, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	digests, err := s.trees()
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		digests = append(digests, r.Digest)
	}
	slices.Sort(digests)
	all := []Info{}
	for _, d := range slices.Compact(digests) {
		all = append(all, s.describe(d, refs))
	}
	slices.SortStableFunc(all, func(a, b Info) int {
		if (len(a.Names) == 0) != (len(b.Names) == 0) {
			return len(b.Names) - len(a.Names)
		}
		return strings.Compare(strings.Join(a.Names, " "), strings.Join(b.Names, " "))
	})
	return all, nil
}

// Inspect returns all that is known of one image. Errors are those of Open.
func (s *Store) Inspect(ctx context.Context, name string) (Detail, error) {
	digest, err := s.resolve(ctx, name)
	if err != nil {
		return Detail{}, err
	}
	info, err := s.info(ctx, digest)
	if err != nil {
		return Detail{}, err
	}
	m, c, err := s.documents(digest)
	if err != nil {
		return Detail{}, s.mend(name, err)
	}
	d := Detail{
		Info: info, Root: s.path(treesDir, hexOf(digest), treeName), Config: m.Config.Digest,
		Layers: m.Layers, Env: c.environment(), Entrypoint: c.Config.Entrypoint, Command: c.Config.Cmd,
		User: c.Config.User, Workdir: c.Config.WorkingDir, Health: c.Config.Healthcheck,
	}
	for v := range c.Config.Volumes {
		d.Volumes = append(d.Volumes, v)
	}
	slices.Sort(d.Volumes)
	return d, nil
}
