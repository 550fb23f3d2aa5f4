package bootspec

import (
	"encoding/hex"
	"hash/fnv"
)

// Where what is written to a copy-on-write mount is, relative to the writable
// space, in which the code sees /work, /tmp and /dev/shm and nothing else.
const (
	// CowFolder holds a folder for each such mount.
	CowFolder = "cow"
	// CowUpper is, in that, the upper folder of its overlay.
	CowUpper = "upper"
)

// CowFailed begins what the agent answers where an overlay can't be made.
const CowFailed = "copy-on-write: "

// CowPlace is the folder of the mount with this target, relative to the new
// root: the same for the agent, which makes it, and the host, which reads it.
func CowPlace(target string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(target)) // never fails
	return CowFolder + "/" + hex.EncodeToString(h.Sum(nil))
}
