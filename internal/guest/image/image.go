// Package image holds the guest agent's binary, embedded at build time.
//
// `make build` compiles cmd/tranca-guest for each architecture into bin/ before
// it compiles what embeds it. A program built without that step has no agent,
// and says so when it is asked for one.
package image

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"

	"tranca"
)

//go:embed all:bin
var files embed.FS

// WriteTo writes the agent's ELF image for this architecture to w, piece by
// piece: a copy of the whole would cost each start of tranca a millisecond.
// Without an image the error wraps [tranca.ErrUnavailable].
func WriteTo(w io.Writer) error {
	f, err := files.Open("bin/tranca-guest-" + runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("%w: this program was built without the guest agent for %s: "+
			"run `make build` in tranca's source tree first", tranca.ErrUnavailable, runtime.GOARCH)
	}
	defer f.Close()
	_, err = io.CopyBuffer(onlyWriter{w}, f, make([]byte, 128<<10))
	return err
}

// onlyWriter hides a ReadFrom that would make a small buffer of its own.
type onlyWriter struct{ io.Writer }

// Digest returns the image's SHA-256 in hexadecimal, or "" without an image.
func Digest() string {
	h := sha256.New()
	if WriteTo(h) != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
