package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tranca"
)

// TestWhereNothingRuns is the command on a host without local runs: each says
// why, and what works instead.
func TestWhereNothingRuns(t *testing.T) {
	why := fmt.Errorf("%w: this is another system: use a server by --server URL", tranca.ErrUnavailable)
	var stdout, stderr bytes.Buffer
	w := worldOf(&recorder{}, nil, &stdout, &stderr)
	w.Elsewhere = why
	w.Open = func(tranca.Policy) (Engine, error) { return nil, why }
	for _, args := range [][]string{{"run", "-c", "x"}, {"setup"}, {"setup", "--print"}} {
		stderr.Reset()
		if status := Main(t.Context(), w, append([]string{"tranca"}, args...)); status != statusRefused || !strings.Contains(stderr.String(), "--server URL") {
			t.Errorf("%q: status %d, said %q", args, status, stderr.String())
		}
	}
}
