//go:build !tranca_weaken

package weaken

import "tranca"

// Enabled says that this build can be weakened. It is a constant, so that what
// depends on it is not in an ordinary build.
const Enabled = false

// Takes reports whether a guarantee of a backend is taken away. In an ordinary
// build none ever is.
func Takes(string, tranca.Item) bool { return false }

// Notice is what everybody has to be told of a build that can be weakened; in an
// ordinary one there is nothing to tell.
func Notice() string { return "" }

// Environ is what a process of this program hands on to those of its own that it
// starts with another environment, so that they are weakened, too.
func Environ() []string { return nil }
