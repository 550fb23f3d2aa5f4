package hostsetup

import "os"

// ownedBy reports whether a folder is there and belongs to the user.
func ownedBy(folder string, uid int) bool {
	info, err := os.Lstat(folder)
	return err == nil && info.IsDir() && ownerOf(info) == uint32(uid)
}
