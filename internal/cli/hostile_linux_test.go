package cli_test

import (
	"strings"
	"testing"
)

// Ctrl-C at a terminal: the lines that change are gone, what was found is there.
func TestHostileAtATerminal(t *testing.T) {
	d := atTerminal(t, []string{"REAL=", "FAKE_HOSTILE=stopped", "LANG=C.UTF-8"}, "hostile")
	d.see("0 of 20, 0%; the first control")
	d.write("\x03")
	d.see("\x1b[1A\x1b[J")
	d.see("Partial: the run was stopped by SIGINT. What was not run is shown by nothing.")
	d.see("stopped by SIGINT")
	d.ends(130)
	if !strings.Contains(d.all(), "\x1b[31m✗\x1b[0m \x1b[31m✗\x1b[0m \x1b[36m≤\x1b[0m") {
		t.Errorf("the matrix has no colours: %q", d.all())
	}
}
