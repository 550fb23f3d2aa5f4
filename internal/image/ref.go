//go:build linux

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// ref gives an image a name. Its file is called by the name's digest, since names
// are longer than file names and hold slashes.
type ref struct {
	Name   string    `json:"name"`
	Digest string    `json:"digest"`
	Source string    `json:"source"`
	Added  time.Time `json:"added"`
}

const refSuffix = ".json"

func (s *Store) refPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return s.path(refsDir, hex.EncodeToString(sum[:])+refSuffix)
}

// addRef gives a name to an image, also one that another image had.
func (w *work) addRef(r ref) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := w.writeFile(w.s.refPath(r.Name), text); err != nil {
		return err
	}
	return w.s.failed("write", refsDir, syncFolder(w.s.path(refsDir)))
}

// ref reads what a name stands for; [fs.ErrNotExist] where it stands for nothing.
func (s *Store) ref(name string) (ref, error) { return s.readRef(s.refPath(name)) }

func (s *Store) readRef(path string) (ref, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return ref{}, s.failed("read", path, err)
	}
	var r ref
	if err := json.Unmarshal(b, &r); err != nil || !wholeDigest(r.Digest) || s.refPath(r.Name) != path {
		return ref{}, s.corrupt(path)
	}
	return r, nil
}

// refs returns all names, in no order.
func (s *Store) refs(ctx context.Context) ([]ref, error) {
	list, err := os.ReadDir(s.path(refsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failed("read", refsDir, err)
	}
	var all []ref
	for _, e := range list {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !strings.HasSuffix(e.Name(), refSuffix) {
			continue
		}
		r, err := s.readRef(s.path(refsDir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errCorrupt) {
			continue // removed meanwhile, or no name any more
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// trees returns the digests of all unpacked trees, in no order.
func (s *Store) trees() ([]string, error) {
	list, err := os.ReadDir(s.path(treesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failed("read", treesDir, err)
	}
	var all []string
	for _, e := range list {
		if d := "sha256:" + e.Name(); wholeDigest(d) {
			all = append(all, d)
		}
	}
	return all, nil
}
