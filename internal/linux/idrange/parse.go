package idrange

import (
	"strconv"
	"strings"
)

// Size is the number of ids in a block.
const Size = 8

// span is a range of ids, end excluded.
type span struct{ first, end uint64 }

// meets reports whether the two have an id in common.
func (s span) meets(o span) bool { return s.first < o.end && o.first < s.end }

// maxID is the end of the ids that are used at all: some programs still take
// an id for a signed number.
const maxID = 1 << 31

// parseSub reads /etc/subuid or /etc/subgid: "OWNER:FIRST:COUNT". It returns
// the ranges of the owners that mine accepts, and all ranges. A line that is
// no such entry is left out, as newuidmap does; so is what lies beyond 2^31.
func parseSub(text string, mine func(owner string) bool) (own, all []span) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || count == 0 {
			continue
		}
		s := span{first, first + count}
		all = append(all, s)
		s.end = min(s.end, maxID)
		if first != 0 && s.first < s.end && f[0] != "" && mine(f[0]) {
			own = append(own, s)
		}
	}
	return own, all
}

// parseIDs reads the ids of /etc/passwd ("NAME:PASSWORD:UID:GID:...") or
// /etc/group ("NAME:PASSWORD:GID:..."): fields 2 up to last.
func parseIDs(text string, last int) []span {
	var all []span
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		for i := 2; i <= last && i < len(f); i++ {
			if id, err := strconv.ParseUint(f[i], 10, 32); err == nil {
				all = append(all, span{id, id + 1})
			}
		}
	}
	return all
}

// namesOf finds the names of a user id in the text of /etc/passwd. Several
// names can share an id.
func namesOf(passwd string, uid int) []string {
	var names []string
	for line := range strings.Lines(passwd) {
		f := strings.Split(line, ":")
		if len(f) >= 4 && f[0] != "" && f[2] == strconv.Itoa(uid) {
			names = append(names, f[0])
		}
	}
	return names
}

// blocks are the numbers of whole blocks in ranges, as ranges of numbers in
// their order.
type blocks []span

// cut makes blocks from ranges of ids, without those that meet an id in
// taken.
func cut(ranges, taken []span) blocks {
	var all blocks
	for _, r := range ranges {
		b := span{(r.first + Size - 1) / Size, r.end / Size}
		if b.first < b.end {
			all = append(all, b)
		}
	}
	for _, t := range taken {
		all = all.without(span{t.first / Size, (t.end + Size - 1) / Size})
	}
	return all
}

// without removes block numbers.
func (b blocks) without(t span) blocks {
	var left blocks
	for _, s := range b {
		if !s.meets(t) {
			left = append(left, s)
			continue
		}
		if s.first < t.first {
			left = append(left, span{s.first, t.first})
		}
		if t.end < s.end {
			left = append(left, span{t.end, s.end})
		}
	}
	return left
}

func (b blocks) len() uint64 {
	var n uint64
	for _, s := range b {
		n += s.end - s.first
	}
	return n
}

// at returns the number of the i-th block, i < len.
func (b blocks) at(i uint64) uint64 {
	for _, s := range b {
		if n := s.end - s.first; i >= n {
			i -= n
			continue
		}
		return s.first + i
	}
	panic("idrange: block index beyond the end")
}
