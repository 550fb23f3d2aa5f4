package vmtest

import (
	"fmt"
	"io"
	"io/fs"
)

// entry is one file of an initramfs.
type entry struct {
	name string
	mode fs.FileMode // permission bits, and fs.ModeDir for a folder
	data []byte
}

// writeCPIO writes the "newc" archive that Linux unpacks as its first root.
func writeCPIO(w io.Writer, entries []entry) error {
	for i, e := range append(entries, entry{name: "TRAILER!!!"}) {
		mode := uint32(e.mode.Perm())
		switch {
		case e.name == "TRAILER!!!":
			mode = 0
		case e.mode.IsDir():
			mode |= 0o040000
		default:
			mode |= 0o100000
		}
		// magic, then inode, mode, uid, gid, links, mtime, size, two device
		// pairs, length of the name with its NUL, checksum
		_, err := fmt.Fprintf(w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			i+1, mode, 0, 0, 1, 0, len(e.data), 0, 0, 0, 0, len(e.name)+1, 0)
		if err != nil {
			return err
		}
		if err := writePadded(w, append([]byte(e.name), 0), 110); err != nil {
			return err
		}
		if err := writePadded(w, e.data, 0); err != nil {
			return err
		}
	}
	return nil
}

// writePadded writes data and pads to four bytes, counting what came before.
func writePadded(w io.Writer, data []byte, before int) error {
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, (4-(before+len(data))%4)%4))
	return err
}
