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
	first := freeRange(uids, gids)
	for _, kind := range []struct {
		name string
		have subidFile
	}{{"subuids", uids}, {"subgids", gids}} {
		given := len(kind.have.of(h)) == 0
		r := fmt.Sprintf("%d-%d", first, first+subidCount-1)
		if given {
			s.Do = append(s.Do, h.usermod("--add-"+kind.name, r), "mkdir -p "+h.path(recordFolder),
				fmt.Sprintf("echo %s > %s", r, h.record(kind.name)))
		} else if r = recorded(h.record(kind.name)); r == "" {
			continue // somebody else gave it, and may need it
		}
		s.Undo = append(s.Undo, fmt.Sprintf("if [ -e %s ]; then", h.record(kind.name)),
			"  "+h.usermod("--del-"+kind.name, r), "  rm "+h.record(kind.name), "fi")
	}
	s.Done = len(s.Do) == 0
	return s
}

func (h Host) usermod(flag, ids string) string {
	prefix := ""
	if h.Root != "/" {
		prefix = "--prefix " + h.Root + " "
	}
	return fmt.Sprintf("usermod %s%s %s %s", prefix, flag, ids, h.User)
}

// recordFolder is where it is written down what was given to whom, so that
// undoing takes back that and nothing that the user had before.
const recordFolder = "etc/tranca"

func (h Host) record(kind string) string {
	return h.path(recordFolder + "/" + kind + "." + h.User)
}

// recorded reads a record. It ends up in shell text, so anything but a range
// counts as none.
func recorded(path string) string {
	text, err := os.ReadFile(path)
	ids := strings.TrimSpace(string(text))
	if err != nil || !matches(`^[0-9]{1,10}-[0-9]{1,10}$`, ids) {
		return ""
	}
	return ids
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
