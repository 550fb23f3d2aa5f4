package policy

import "strings"

// The shapes of names. They are compared byte by byte, since making regular
// expressions costs each start of the command some tenths of a millisecond.

const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	letters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// only reports whether s is not empty and all of it is in set.
func only(s, set string) bool {
	return s != "" && strings.Trim(s, set) == ""
}

// envNamePattern is what isEnvName accepts, for the schema.
const envNamePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

// isEnvName reports whether s can be the name of a variable.
func isEnvName(s string) bool {
	return only(s, letters+digits+"_") && !strings.Contains(digits, s[:1])
}

// isBackendName reports whether s can be the name of a backend.
func isBackendName(s string) bool {
	return only(s, lower+digits+"-") && strings.Contains(lower, s[:1]) && len(s) <= 32
}

// isHostLabel reports whether s can be one part of a host's name.
func isHostLabel(s string) bool {
	return only(s, letters+digits+"-") && s[0] != '-' && s[len(s)-1] != '-'
}
