package hostsetup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	subidCount = 65536
	// subidFirst and subidLast bound what is given away, as login.defs of
	// most distributions has it.
	subidFirst, subidLast = 100000, 600100000
)

// subids gives the user a range of ids of its own, so that code runs as
// another user than the one who runs tranca.
func subids(h Host) Step {
	s := Step{
		Title: "Subordinate ids: users for the code to run as, for " + h.User,
		Why: "With ids of its own the code is another user than you on this host, and two\n" +
			"sandboxes can be two users. Needs newuidmap: " + ReadDistribution(h.Root).Install("newuidmap"),
	}
	uids, gids := readSubids(h, "etc/subuid"), readSubids(h, "etc/subgid")
	for _, r := range uids.of(h) {
		s.Undo = append(s.Undo, h.usermod("--del-subuids", r))
	}
	for _, r := range gids.of(h) {
		s.Undo = append(s.Undo, h.usermod("--del-subgids", r))
	}
	first := freeRange(uids, gids)
	if len(uids.of(h)) == 0 {
		r := subid{first: first, count: subidCount}
		s.Do = append(s.Do, h.usermod("--add-subuids", r))
		s.Undo = append(s.Undo, h.usermod("--del-subuids", r))
	}
	if len(gids.of(h)) == 0 {
		r := subid{first: first, count: subidCount}
		s.Do = append(s.Do, h.usermod("--add-subgids", r))
		s.Undo = append(s.Undo, h.usermod("--del-subgids", r))
	}
	s.Done = len(s.Do) == 0
	return s
}

func (h Host) usermod(flag string, r subid) string {
	prefix := ""
	if h.Root != "/" {
		prefix = "--prefix " + h.Root + " "
	}
	return fmt.Sprintf("usermod %s%s %d-%d %s", prefix, flag, r.first, r.first+r.count-1, h.User)
}

// subid is one line of /etc/subuid or /etc/subgid.
type subid struct {
	owner        string
	first, count int64
}

type subidFile []subid

// of lists the ranges of the host's user, who may be named or numbered.
func (f subidFile) of(h Host) []subid {
	var own []subid
	for _, r := range f {
		if r.owner == h.User || r.owner == strconv.Itoa(h.UID) {
			own = append(own, r)
		}
	}
	return own
}

// readSubids reads a file of ranges. Lines that make no sense are left out, as
// the programs that use the file do.
func readSubids(h Host, name string) subidFile {
	text, err := os.ReadFile(h.path(name))
	if err != nil {
		return nil
	}
	var all subidFile
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), ":")
		if len(parts) != 3 {
			continue
		}
		first, err1 := strconv.ParseInt(parts[1], 10, 64)
		count, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err1 == nil && err2 == nil && first >= 0 && count > 0 && count < 1<<32 {
			all = append(all, subid{parts[0], first, count})
		}
	}
	return all
}

// freeRange returns the first id of a range that touches no other in any of
// the files.
func freeRange(files ...subidFile) int64 {
	first := int64(subidFirst)
	for moved := true; moved && first+subidCount <= subidLast; {
		moved = false
		for _, f := range files {
			for _, r := range f {
				if first < r.first+r.count && r.first < first+subidCount {
					first, moved = r.first+r.count, true
				}
			}
		}
	}
	return first
}
