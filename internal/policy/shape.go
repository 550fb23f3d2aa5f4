package policy

import (
	"slices"
	"strings"
)

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

// isRuntimeName reports whether s can be the name of an OCI runtime.
func isRuntimeName(s string) bool {
	return only(s, lower+digits+"._-") && strings.Contains(lower+digits, s[:1]) && len(s) <= 64
}

const (
	maxImageName = 255
	maxImageTag  = 128
	digestPrefix = "sha256:"
)

// isImage reports whether s can name an image: a reference as registries have
// it, in lower case, [HOST[:PORT]/]NAME[/NAME...][:TAG][@sha256:DIGITS], or
// sha256:DIGITS alone. So no name is an option, an absolute path, or leads out
// of a folder.
func isImage(s string) bool {
	if isDigest(s) {
		return true
	}
	name, digest, pinned := strings.Cut(s, "@")
	if pinned && !isDigest(digest) {
		return false
	}
	// A colon after the last slash begins the tag; before it, a port.
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		if !isImageTag(name[i+1:]) {
			return false
		}
		name = name[:i]
	}
	parts := strings.Split(name, "/")
	if len(name) > maxImageName {
		return false
	}
	if host, port, found := strings.Cut(parts[0], ":"); found && len(parts) > 1 {
		if !only(port, digits) || len(port) > len("65535") {
			return false
		}
		parts[0] = host
	}
	return !slices.ContainsFunc(parts, func(part string) bool { return !isImagePart(part) })
}

func isDigest(s string) bool {
	hex, found := strings.CutPrefix(s, digestPrefix)
	return found && len(hex) == 64 && only(hex, digits+"abcdef")
}

func isImageTag(s string) bool {
	return only(s, letters+digits+"_.-") && !strings.Contains(".-", s[:1]) && len(s) <= maxImageTag
}

// isImagePart reports whether s is lower-case letters and digits with single
// dots, one or two underscores, or hyphens between them.
func isImagePart(s string) bool {
	if !only(s, lower+digits+"._-") || strings.Trim(s, "._-") != s {
		return false
	}
	for i := 0; i < len(s); {
		end := i
		for strings.IndexByte("._-", s[end]) >= 0 {
			end++
		}
		switch between := s[i:end]; {
		case between == "", between == ".", between == "_", between == "__", only(between, "-"):
			i = end + 1
		default:
			return false
		}
	}
	return true
}
