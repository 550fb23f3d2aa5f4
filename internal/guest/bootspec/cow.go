package bootspec

import (
	"encoding/hex"
	"hash/fnv"
)

// cowFolder holds a folder for each copy-on-write mount, with what is written
// to it. It is in the writable space, in which the code sees /work, /tmp and
// /dev/shm and nothing else.
const cowFolder = "cow"

// CowFailed begins what the agent answers where an overlay can't be made.
const CowFailed = "copy-on-write: "

// CowPlace is the folder of the mount with this target, relative to the writable
// space: the same for the agent, which makes it, and the host, which reads it.
func CowPlace(target string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(target)) // never fails
	return cowFolder + "/" + hex.EncodeToString(h.Sum(nil))
}
