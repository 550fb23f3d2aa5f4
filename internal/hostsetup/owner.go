package hostsetup

import (
	"os"
	"syscall"
)

// ownedBy reports whether a folder is there and belongs to the user.
func ownedBy(folder string, uid int) bool {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() {
		return false
	}
	return info.Sys().(*syscall.Stat_t).Uid == uint32(uid)
}
