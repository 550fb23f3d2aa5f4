package terminal

import (
	"fmt"
	"slices"
	"strings"
)

// undo knows which sequences may pass, and what takes back those that did.
type undo struct {
	modes    []string // private modes that are not as they were found
	alphabet bool
	keypad   bool
	looks    bool // colours and the like
	cursor   bool // its form
	region   bool
	insert   bool
}

// restingModes are the private modes that may be changed, with how they are
// left: those of the cursor, of keys, of the mouse, of the screen, of pasting.
func restingModes() map[string]byte {
	return map[string]byte{
		"1": 'l', "5": 'l', "6": 'l', "7": 'h', "12": 'l', "25": 'h', "47": 'l', "66": 'l', "69": 'l',
		"1000": 'l', "1002": 'l', "1003": 'l', "1004": 'l', "1005": 'l', "1006": 'l', "1007": 'l',
		"1015": 'l', "1016": 'l', "1047": 'l', "1048": 'l', "1049": 'l', "2004": 'l', "2026": 'l',
	}
}

// escape reports whether ESC and these characters may pass.
func (u *undo) escape(s string) bool {
	switch s[0] {
	case '(', ')', '*', '+', '-', '.', '/':
		u.alphabet = true
		return len(s) <= 3 && len(s) > 1
	}
	switch s {
	case "=":
		u.keypad = true
	case "N", "O", "n", "o", "|", "}", "~":
		u.alphabet = true
	case "7", "8", "6", "9", "D", "E", "H", "M", ">", "c", "#8":
	default:
		return false
	}
	return true
}

// control returns the sequence as it may pass, without ESC [.
func (u *undo) control(params string, final byte) (string, bool) {
	whole := params + string(final)
	if strings.HasPrefix(params, "?") {
		return u.private(params[1:], final)
	}
	if i := strings.IndexFunc(params, func(r rune) bool { return r < '0' || r > ';' }); i >= 0 {
		// A prefix or intermediate character.
		switch {
		case whole == ">c" || whole == ">0c" || whole == "!p":
			return whole, true
		case params[i:] == " " && final == 'q':
			u.cursor = true
			return whole, true
		}
		return "", false
	}
	switch final {
	case 'm':
		u.looks = true
	case 'r':
		u.region = true
	case 'h', 'l':
		u.insert = true
		return whole, params == "4" || params == "20"
	case 'c':
		return whole, params == "" || params == "0"
	case 'n':
		return whole, params == "5" || params == "6"
	default:
		return whole, strings.IndexByte("@ABCDEFGHIJKLMPSTXZ`abdefgsu", final) >= 0
	}
	return whole, true
}

// private is control for what begins with a question mark.
func (u *undo) private(params string, final byte) (string, bool) {
	switch final {
	case 'J', 'K':
		return "?" + params + string(final), strings.Trim(params, "0123456789") == ""
	case 'h', 'l':
	default:
		return "", false
	}
	resting := restingModes()
	var kept []string
	for _, mode := range strings.Split(params, ";") {
		rest, ok := resting[mode]
		if !ok {
			continue
		}
		kept = append(kept, mode)
		u.modes = slices.DeleteFunc(u.modes, func(m string) bool { return m == mode })
		if rest != final {
			u.modes = append(u.modes, mode)
		}
	}
	return "?" + strings.Join(kept, ";") + string(final), len(kept) > 0
}

// sequences takes everything back. The screen comes first, since the rest is
// meant for the one that was there before.
func (u *undo) sequences() []byte {
	var out []byte
	resting := restingModes()
	slices.SortStableFunc(u.modes, func(a, b string) int { return screenFirst(a) - screenFirst(b) })
	for _, mode := range u.modes {
		out = fmt.Appendf(out, "\x1b[?%s%c", mode, resting[mode])
	}
	for _, back := range []struct {
		changed  bool
		sequence string
	}{
		{u.region, "\x1b7\x1b[r\x1b8"}, // it moves the cursor
		{u.insert, "\x1b[4l\x1b[20l"},
		{u.keypad, "\x1b>"},
		{u.alphabet, "\x0f\x1b(B"},
		{u.cursor, "\x1b[0 q"},
		{u.looks, "\x1b[0m"},
	} {
		if back.changed {
			out = append(out, back.sequence...)
		}
	}
	return out
}

func screenFirst(mode string) int {
	switch mode {
	case "1049", "1047", "47":
		return 0
	}
	return 1
}
