package gvisor

import (
	"tranca"
	"tranca/internal/advisory"
)

// gVisorVersion is what the second program links. This one doesn't link it, so
// its own build information says nothing; a test compares it with go.mod.
const gVisorVersion = "v0.0.0-20260905035102-160fafc42237"

// advisories returns the known holes of that version.
func advisories(known *advisory.InForce) []tranca.Advisory {
	found, err := known.Table().Known(advisory.GVisor, gVisorVersion, advisory.Changelog{})
	if err != nil {
		return nil // a test reads it
	}
	return found
}
