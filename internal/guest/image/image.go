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
	"runtime"

	"tranca"
)

//go:embed all:bin
var files embed.FS

// Bytes returns the agent's ELF image for this architecture. The slice must
// not be changed. The error wraps [tranca.ErrUnavailable].
func Bytes() ([]byte, error) {
	b, err := files.ReadFile("bin/tranca-guest-" + runtime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("%w: this program was built without the guest agent for %s: "+
			"run `make build` in tranca's source tree first", tranca.ErrUnavailable, runtime.GOARCH)
	}
	return b, nil
}

// Digest returns the image's SHA-256 in hexadecimal, or "" without an image.
func Digest() string {
	b, err := Bytes()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
