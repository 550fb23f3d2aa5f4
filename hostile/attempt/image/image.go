// Package image holds the small static program that runs hostile programs,
// embedded at build time.
//
// `make build` compiles cmd/tranca-probe into bin/ before it compiles what
// embeds it. A program built without that step has none, and says so when it is
// asked for it.
package image

import (
	"embed"
	"fmt"
	"runtime"

	"tranca"
)

//go:embed all:bin
var files embed.FS

// Program returns the ELF image for this architecture. Without one the error
// wraps [tranca.ErrUnavailable].
func Program() ([]byte, error) {
	data, err := files.ReadFile("bin/tranca-probe-" + runtime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("%w: this program was built without the probe program for %s: "+
			"run `make build` in tranca's source tree first", tranca.ErrUnavailable, runtime.GOARCH)
	}
	return data, nil
}
