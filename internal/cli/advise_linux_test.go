package cli_test

import (
	"strings"
	"testing"
)

// TestAdviseAsksAtATerminal: a person gets the questions that are open, may
// answer by number or word, is told what is allowed, and skips what does not
// matter. The backends are made up, so any host will do.
func TestAdviseAsksAtATerminal(t *testing.T) {
	d := atTerminal(t, []string{"REAL="}, "advise", "--network", "none")
	d.see("Whose code is it?")
	d.see("4  strangers")
	d.write("everybody\n")
	d.see(`"everybody" is no answer: want own, nearly-trusted, internal-tools, strangers or tenants`)
	d.see("Whose code is it?")
	d.write("4\n")
	d.see("What would it cost")
	d.write("this-user\n")
	d.see("secrets?")
	d.write("1\n")
	d.see("How long may the first byte")
	d.write("soon\n")
	d.see("> ")
	d.write("\n")
	d.see("How many sandboxes")
	d.write("\n")
	d.see("How much memory")
	d.write("512MiB\n")
	d.see("In which image")
	d.write("\n")
	d.see("backend gvisor, floor gvisor")
	d.see("memory: 512MiB")
	d.ends(0)
	if strings.Contains(d.all(), "need a network?") {
		t.Error("it asked what a flag had answered")
	}
}

// TestAdviseIsInterrupted: Ctrl-C at a question ends it, and so does the end of
// the answers.
func TestAdviseIsInterrupted(t *testing.T) {
	d := atTerminal(t, []string{"REAL="}, "advise")
	d.see("Whose code is it?")
	d.write("\x03")
	d.ends(130)
	d = atTerminal(t, []string{"REAL="}, "advise")
	d.see("Whose code is it?")
	d.write("\x04")
	d.see("the answers ended before the questions did")
	d.ends(125)
}
