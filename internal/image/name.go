package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"tranca"
)

// The bounds of names.
const (
	maxNameBytes = 255
	maxTagBytes  = 128
	// minPrefix is how many digits of a digest name an image.
	minPrefix = 6
)

// Name is what somebody calls an image: by a name, by a digest, or by both.
type Name struct {
	// Name is a repository and, behind a colon, a tag other than "latest":
	// "code", "python:3.12", "registry.example/team/tool:v1". What Docker calls
	// by its short name has that one. Empty where only a digest was given.
	Name string
	// Digest is "sha256:" and up to 64 hexadecimal digits; empty without one.
	Digest string
}

// ParseName reads a name. Errors wrap [tranca.ErrInvalid].
func ParseName(text string) (Name, error) {
	if err := checkLength(text); err != nil {
		return Name{}, err
	}
	if rest, ok := strings.CutPrefix(text, "sha256:"); ok && isHex(rest) {
		if len(rest) < minPrefix || len(rest) > 64 {
			return Name{}, wrongName(text, fmt.Sprintf("a digest has %d to 64 digits", minPrefix))
		}
		return Name{Digest: text}, nil
	}
	name, digest, pinned := strings.Cut(text, "@")
	if pinned && !wholeDigest(digest) {
		return Name{}, wrongName(text, "behind @ stands a digest: sha256: and 64 hexadecimal digits")
	}
	repository, tag := cutTag(name)
	if why := checkRepository(repository); why != "" {
		return Name{}, wrongName(text, why)
	}
	if tag != "" && !validTag(tag) {
		return Name{}, wrongName(text, "a tag is made of letters, digits, _, . and -, and begins with none of the last two")
	}
	name = familiar(repository)
	if tag != "" && tag != "latest" {
		name += ":" + tag
	}
	if name == tranca.ImageHost {
		return Name{}, wrongName(text, "it stands for the host's own tree, which is no image")
	}
	return Name{Name: name, Digest: digest}, nil
}

func checkLength(text string) error {
	if text == "" {
		return wrongName(text, "it is empty")
	}
	if len(text) > maxNameBytes+1+len("sha256:")+64 {
		return wrongName(text[:40]+"...", fmt.Sprintf("it is longer than %d bytes", maxNameBytes))
	}
	return nil
}

func wrongName(text, why string) error {
	return fmt.Errorf("%w: image name %q: %s", tranca.ErrInvalid, text, why)
}

// cutTag splits a name at the colon of its tag: the last one, unless a slash
// follows, for then it stands before the port of a registry.
func cutTag(name string) (repository, tag string) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 || strings.Contains(name[i:], "/") {
		return name, ""
	}
	if i == len(name)-1 {
		return name, "" // an empty tag: the colon makes the repository wrong
	}
	return name[:i], name[i+1:]
}

// checkRepository says what is wrong with a repository, or "".
func checkRepository(repository string) string {
	if len(repository) > maxNameBytes {
		return fmt.Sprintf("it is longer than %d bytes", maxNameBytes)
	}
	first, rest, several := strings.Cut(repository, "/")
	if several && isRegistry(first) {
		repository = rest
		host, port, _ := strings.Cut(first, ":")
		if strings.Trim(host, ".-") != host || strings.Trim(host, hostChars) != "" || strings.Trim(port, "0123456789") != "" {
			return "a registry is a host and, behind a colon, a port"
		}
	}
	for part := range strings.SplitSeq(repository, "/") {
		if !validPart(part) {
			return "a part of it is made of lower-case letters and digits, with single ., _ or - (or __ or more -) between them"
		}
	}
	return ""
}

const hostChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

// isRegistry tells the host of a registry from the first part of a repository,
// as Docker does.
func isRegistry(first string) bool {
	return strings.ContainsAny(first, ".:") || first == "localhost"
}

func alphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func validPart(part string) bool {
	if part == "" || !alphanumeric(part[0]) || !alphanumeric(part[len(part)-1]) {
		return false
	}
	for i := 0; i < len(part); {
		j := i
		for j < len(part) && !alphanumeric(part[j]) {
			j++
		}
		switch sep := part[i:j]; {
		case sep == "", sep == ".", sep == "_", sep == "__", strings.Trim(sep, "-") == "":
		default:
			return false
		}
		i = j + 1
	}
	return true
}

func validTag(tag string) bool {
	if len(tag) > maxTagBytes || tag[0] == '.' || tag[0] == '-' {
		return false
	}
	for i := range len(tag) {
		c := tag[i]
		if !alphanumeric(c) && (c < 'A' || c > 'Z') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// familiar is the short name of what Docker's own registry has.
func familiar(repository string) string {
	for _, host := range []string{"docker.io/", "index.docker.io/"} {
		if rest, ok := strings.CutPrefix(repository, host); ok {
			repository = rest
			break
		}
	}
	if rest, ok := strings.CutPrefix(repository, "library/"); ok && !strings.Contains(rest, "/") {
		return rest
	}
	return repository
}

// String returns the name as it is written.
func (n Name) String() string {
	if n.Name != "" && n.Digest != "" {
		return n.Name + "@" + n.Digest
	}
	return n.Name + n.Digest
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func wholeDigest(d string) bool {
	rest, ok := strings.CutPrefix(d, "sha256:")
	return ok && len(rest) == 64 && isHex(rest)
}

// hexOf returns the digits of a whole digest.
func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

func digestOf(b []byte) string {
	h := sha256.New()
	h.Write(b)
	return digestIn(h)
}

// digestIn is the digest of what was written to a SHA-256.
func digestIn(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }
