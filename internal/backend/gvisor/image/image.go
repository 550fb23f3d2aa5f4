//go:build !no_gvisor

package image

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"strings"

	"tranca"
)

//go:embed all:bin
var files embed.FS

// name of the embedded file, which goes before ".gz" and ".sha256".
const name = "bin/tranca-sentry-" + runtime.GOARCH

// missing says what is wrong with this build.
func missing() error {
	return fmt.Errorf("%w: this program was built without gVisor for %s: "+
		"run `make build` in tranca's source tree", tranca.ErrUnavailable, runtime.GOARCH)
}

// Digest returns the binary's SHA-256 in hexadecimal, without unpacking it.
func Digest() (string, error) {
	text, err := fs.ReadFile(files, name+".sha256")
	if err != nil {
		return "", missing()
	}
	digest := strings.TrimSpace(string(text))
	if b, err := hex.DecodeString(digest); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("%w: the digest of the embedded gVisor is no digest", tranca.ErrUnavailable)
	}
	return digest, nil
}

// writeTo unpacks the binary to w and sees that it is the one of the digest.
func writeTo(w io.Writer, digest string) error {
	f, err := files.Open(name + ".gz")
	if err != nil {
		return missing()
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%w: embedded gVisor: %w", tranca.ErrUnavailable, err)
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{io.MultiWriter(w, sum)}, z, make([]byte, 256<<10)); err != nil {
		return fmt.Errorf("unpack gVisor: %w", err)
	}
	return same(sum, digest)
}

func same(sum hash.Hash, digest string) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%w: gVisor has the digest %s, not %s", tranca.ErrUnavailable, got, digest)
	}
	return nil
}

// onlyWriter hides a ReadFrom that would make a buffer of its own.
type onlyWriter struct{ io.Writer }
