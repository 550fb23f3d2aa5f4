package policy

import (
	"fmt"
	"strconv"
	"strings"

	"tranca"
)

// maxID is the greatest user or group id inside. A user namespace commonly
// has 65536 ids, and its last one is the kernel's "unmapped".
const maxID = 65534

var (
	defaultUser = tranca.User{Name: "user", UID: 1000, GID: 1000}
	nobody      = tranca.User{Name: "nobody", UID: 65534, GID: 65534}
)

// ParseUser reads "user", "nobody", UID or UID:GID. The error is an [*Error]
// without file or path.
func ParseUser(s string) (tranca.User, error) {
	switch s {
	case "user":
		return defaultUser, nil
	case "nobody":
		return nobody, nil
	case "root":
		return tranca.User{}, &Error{Message: "root inside belongs to the guest agent", Suggestion: "user"}
	}
	first, second, both := strings.Cut(s, ":")
	if !both {
		second = first
	}
	uid, err := parseID(first)
	if err != nil {
		return tranca.User{}, userError(s)
	}
	gid, err := parseID(second)
	if err != nil {
		return tranca.User{}, userError(s)
	}
	u := tranca.User{Name: "user", UID: uid, GID: gid}
	if uid == nobody.UID {
		u.Name = nobody.Name
	}
	return u, nil
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 0 || n > maxID || s[0] == '+' {
		return 0, fmt.Errorf("%w: id %q", tranca.ErrInvalid, s)
	}
	return uint32(n), nil
}

func userError(s string) *Error {
	e := errorf("", "user %s: want user, nobody, UID or UID:GID, each id from 1 to %d", quote(s), maxID)
	e.Suggestion = nearest(s, []string{"user", "nobody"})
	return e
}

func formatUser(u tranca.User) string {
	switch {
	case u == defaultUser:
		return "user"
	case u == nobody:
		return "nobody"
	case u.UID == u.GID:
		return strconv.FormatUint(uint64(u.UID), 10)
	}
	return fmt.Sprintf("%d:%d", u.UID, u.GID)
}
