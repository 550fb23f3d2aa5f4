package container

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tranca"
	"tranca/internal/guest/image"
)

// files are those that containers see of this program: the guest agent, and
// for an engine that takes it by its path alone, the system call filter.
type files struct {
	agent   string
	profile string
	empty   string // hides a file of a mount
}

// cacheFiles puts them into the cache folder, unless they are there.
func cacheFiles(folder, filter string) (files, error) {
	dir, err := cacheFolder(folder)
	if err != nil {
		return files{}, err
	}
	var f files
	if f.agent, err = cacheFile(dir, "guest", 0o555, image.WriteTo); err != nil {
		return files{}, err
	}
	if f.empty, err = cacheFile(dir, "empty", 0o400, func(io.Writer) error { return nil }); err != nil {
		return files{}, err
	}
	f.profile, err = cacheFile(dir, "seccomp", 0o444, func(w io.Writer) error {
		_, err := io.WriteString(w, filter)
		return err
	})
	return f, err
}

// cacheFolder makes the folder, and refuses one into which others can write.
func cacheFolder(folder string) (string, error) {
	if folder == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: no cache folder: %w", tranca.ErrUnavailable, err)
		}
		folder = filepath.Join(base, "tranca")
	}
	dir := filepath.Join(folder, "container")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("%w: cache folder: %w", tranca.ErrUnavailable, err)
	}
	for _, d := range []string{folder, dir} {
		if err := ownAlone(d); err != nil {
			return "", fmt.Errorf("%w: cache folder %s: %w", tranca.ErrUnavailable, d, err)
		}
	}
	return dir, nil
}

// cacheFile returns the path of a file with this content, which is named after
// it. One that is there is read and compared: it is what every container will
// run.
func cacheFile(dir, name string, mode os.FileMode, write func(io.Writer) error) (string, error) {
	h := sha256.New()
	if err := write(h); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	path := filepath.Join(dir, name+"-"+sum[:32])
	err := sameFile(path, sum)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errOtherContent) {
		return "", fmt.Errorf("%w: %s: %w", tranca.ErrUnavailable, path, err)
	}
	if err := writeFile(dir, path, mode, write); err != nil {
		return "", fmt.Errorf("%w: %s: %w", tranca.ErrUnavailable, path, err)
	}
	if err := sameFile(path, sum); err != nil {
		return "", fmt.Errorf("%w: %s, just written: %w", tranca.ErrUnavailable, path, err)
	}
	return path, nil
}

var errOtherContent = errors.New("its content is another")

func sameFile(path, sum string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 128<<10)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return errOtherContent
	}
	return nil
}

// writeFile writes it aside and gives it its name when it is whole: others may
// do the same at the same time, and a container may have the old one open.
func writeFile(dir, path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, "part-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone where it got its name
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
