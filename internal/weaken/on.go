//go:build tranca_weaken

package weaken

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"tranca"
)

// Enabled says that this build can be weakened.
const Enabled = true

// Variable names what is taken away: "backend:item[,backend:item…]".
const Variable = "TRANCA_WEAKEN"

// taken is what is taken away in this process.
var taken struct {
	once sync.Once
	mu   sync.Mutex
	what []Switch
}

// Takes reports whether a guarantee of a backend is taken away. The first call
// of it or of Notice reads the environment; one that names what there is not
// ends the process with status 2 and says so on standard error, since a suite
// that then ran would be green for want of a weakness.
func Takes(backend string, item tranca.Item) bool {
	read()
	taken.mu.Lock()
	defer taken.mu.Unlock()
	for _, s := range taken.what {
		if s.Backend == backend && s.Item == item {
			return true
		}
	}
	return false
}

// Notice is what everybody has to be told of this build, on one line.
func Notice() string {
	read()
	taken.mu.Lock()
	defer taken.mu.Unlock()
	return notice(taken.what)
}

// Take takes away what a list names, in place of what was, and returns what
// brings that back. It is for tests.
func Take(list string) (restore func(), err error) {
	what, err := parse(list)
	if err != nil {
		return nil, err
	}
	read()
	taken.mu.Lock()
	defer taken.mu.Unlock()
	before := taken.what
	taken.what = what
	return func() {
		taken.mu.Lock()
		defer taken.mu.Unlock()
		taken.what = before
	}, nil
}

// read reads the environment, once.
func read() {
	taken.once.Do(func() {
		what, err := parse(os.Getenv(Variable))
		if err != nil {
			fmt.Fprintf(os.Stderr, "tranca: %s: %v\n", Variable, err)
			os.Exit(2)
		}
		taken.what = what
		fmt.Fprintln(os.Stderr, "tranca: "+notice(what))
	})
}

func notice(what []Switch) string {
	names := make([]string, len(what))
	for i, s := range what {
		names[i] = s.Name()
	}
	if len(names) == 0 {
		names = []string{"nothing"}
	}
	return "THIS BUILD IS FOR TESTS: its guarantees can be taken away. Taken away now: " + strings.Join(names, ", ")
}

// Environ is what a process of this program hands on to those of its own that it
// starts with another environment, so that they are weakened, too.
func Environ() []string { return []string{Variable + "=" + os.Getenv(Variable)} }
