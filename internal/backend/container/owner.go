package container

import (
	"os"
	"strconv"
	"time"

	"tranca"
)

// The labels of whatever this backend makes on an engine. By them a later
// process finds what a dead one left, and nothing else.
const (
	labelSandbox  = "tranca.sandbox"
	labelUser     = "tranca.owner.user"
	labelProcess  = "tranca.owner.process"
	labelDeadline = "tranca.deadline"
	labelVersion  = "tranca.version"
)

// longest is how long a sandbox lives at most where nobody can tell whether its
// owner does.
const longest = 48 * time.Hour

// owner is this process as labels name it.
type owner struct {
	user    string
	process string // see [processName]; "" where there is no such name
}

func newOwner() owner {
	return owner{user: strconv.Itoa(os.Geteuid()), process: processName()}
}

// labels are those of one sandbox.
func (o owner) labels(id tranca.ID) map[string]string {
	return map[string]string{
		labelSandbox: string(id), labelUser: o.user, labelProcess: o.process,
		labelDeadline: strconv.FormatInt(time.Now().Add(longest).Unix(), 10),
		labelVersion:  version(),
	}
}

// abandoned reports whether labels are of this user and of a process that no
// longer lives: surely, where the process is one that this host can tell of,
// else when the deadline has passed.
func (o owner) abandoned(labels map[string]string, now time.Time) bool {
	if labels[labelSandbox] == "" || labels[labelUser] != o.user {
		return false
	}
	switch lives(labels[labelProcess]) {
	case alive:
		return false
	case dead:
		return true
	}
	at, err := strconv.ParseInt(labels[labelDeadline], 10, 64)
	return err == nil && now.Unix() > at
}

// life is what can be told of a process by its name.
type life int

const (
	unknown life = iota
	alive
	dead
)
