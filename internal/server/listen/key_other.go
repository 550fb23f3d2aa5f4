//go:build !unix

package listen

import (
	"fmt"

	"tranca"
)

// ReadKey says that there is no server here.
func ReadKey(string) (string, error) {
	return "", fmt.Errorf("%w: a server runs on Linux only", tranca.ErrUnsupported)
}
