package attempt

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxBuffer bounds one buf:N of a syscall's arguments.
const MaxBuffer = 1 << 20

// number reads a decimal or 0x number of 64 bits, which may be negative.
func number(text string) (int64, error) {
	rest, minus := strings.CutPrefix(text, "-")
	base := 10
	if hexadecimal, ok := strings.CutPrefix(rest, "0x"); ok {
		rest, base = hexadecimal, 16
	}
	n, err := strconv.ParseUint(rest, base, 64)
	if err != nil || minus && n > 1<<63 {
		return 0, fmt.Errorf("%q is no number", text)
	}
	if minus {
		return -int64(n), nil
	}
	return int64(n), nil
}

// kindOf returns the prefix of an argument that is no number.
func kindOf(arg string) string {
	for _, kind := range []string{"text:", "hex:", "buf:", "fd:", "fdw:", "fdp:"} {
		if strings.HasPrefix(arg, kind) {
			return kind
		}
	}
	return ""
}

// opened says that an argument is the path of what is opened for the call.
func opened(kind string) bool { return kind == "fd:" || kind == "fdw:" || kind == "fdp:" }

// argument reads one argument of a syscall: a number, or the bytes to whose
// address it becomes; a text and the path of a descriptor have a NUL at their
// end.
func argument(arg string, self int) (n int64, bytes []byte, err error) {
	kind := kindOf(arg)
	rest := arg[len(kind):]
	switch {
	case arg == "self":
		return int64(self), nil, nil
	case kind == "text:":
		return 0, append([]byte(rest), 0), nil
	case opened(kind):
		if rest == "" || len(rest) > 4095 || strings.ContainsRune(rest, 0) {
			return 0, nil, fmt.Errorf("%.40q has no path", arg)
		}
		return 0, append([]byte(rest), 0), nil
	case kind == "hex:":
		bytes, err = hex.DecodeString(rest)
		if err != nil || len(bytes) == 0 {
			return 0, nil, fmt.Errorf("%q has no hexadecimal bytes", arg)
		}
		return 0, bytes, nil
	case kind == "buf:":
		size, err := strconv.Atoi(rest)
		if err != nil || size < 1 || size > MaxBuffer {
			return 0, nil, fmt.Errorf("%q is not between buf:1 and buf:%d", arg, MaxBuffer)
		}
		return 0, make([]byte, size), nil
	}
	n, err = number(arg)
	return n, nil, err
}

// newKinds holds what new names against the kinds of namespaces.
func newKinds(text string) error {
	known := []string{"user", "mount", "pid", "net", "ipc", "uts", "cgroup", "time"}
	var seen []string
	for _, kind := range strings.Split(text, "+") {
		if !slices.Contains(known, kind) || slices.Contains(seen, kind) {
			return fmt.Errorf("%q is not some of %s, each once, joined by +", text, strings.Join(known, ", "))
		}
		seen = append(seen, kind)
	}
	return nil
}

// dataBytes returns what data stands for: its own bytes or, behind "hex:", those
// that no text can hold.
func dataBytes(data string) ([]byte, error) {
	rest, ok := strings.CutPrefix(data, "hex:")
	if !ok {
		return []byte(data), nil
	}
	bytes, err := hex.DecodeString(rest)
	if err != nil {
		return nil, fmt.Errorf("%.40q has no hexadecimal bytes", data)
	}
	return bytes, nil
}

// fileMode reads an octal mode.
func fileMode(text string) (uint32, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o7777 {
		return 0, fmt.Errorf("%q is no octal mode up to 07777", text)
	}
	return uint32(mode), nil
}

// deviceMode reads "c 1 3": kind, major and minor number of a device.
func deviceMode(text string) (kind byte, major, minor uint32, err error) {
	parts := strings.Fields(text)
	if len(parts) != 3 || parts[0] != "c" && parts[0] != "b" {
		return 0, 0, 0, fmt.Errorf("%q is not like \"c 1 3\"", text)
	}
	a, err1 := strconv.ParseUint(parts[1], 10, 12)
	b, err2 := strconv.ParseUint(parts[2], 10, 20)
	if err1 != nil || err2 != nil {
		return 0, 0, 0, fmt.Errorf("%q is not like \"c 1 3\"", text)
	}
	return parts[0][0], uint32(a), uint32(b), nil
}

// quote writes bytes as a Value: printable ASCII as it is, everything else as
// \xNN, and no more than MaxValue in all.
func quote(data []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, min(len(data)*2, MaxValue))
	for _, c := range data {
		if c >= ' ' && c <= '~' {
			if len(out) == MaxValue {
				break
			}
			out = append(out, c)
			continue
		}
		if len(out)+4 > MaxValue {
			break
		}
		out = append(out, '\\', 'x', digits[c>>4], digits[c&15])
	}
	return string(out)
}
