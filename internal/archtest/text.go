package archtest

import (
	"bytes"
	"fmt"
	"strings"
)

// unwanted are strings that tie a committed file to one machine or one mirror.
// They are put together here so that this file doesn't hold them.
func unwanted() []string {
	return []string{
		"/work/" + "main", "/work/" + "shared", "/work/." + "library", "/work/." + "mirror",
		"proxy." + "golang.org", "registry." + "npmjs.org", "files." + "pythonhosted.org",
		"pypi.org/" + "simple", "deb." + "debian.org",
	}
}

// CheckText returns a line for each place in a committed file that names a
// folder of somebody's machine or a registry's host.
func CheckText(name string, text []byte) []string {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	var bad []string
	for i, line := range strings.Split(string(text), "\n") {
		for _, word := range unwanted() {
			if strings.Contains(line, word) {
				bad = append(bad, fmt.Sprintf("%s:%d: names %s", name, i+1, word))
			}
		}
	}
	return bad
}
