package attempt

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed attempt.py
var twin string

// slot is where the twin has its program.
const slot = "@PROGRAM@"

// Python returns the program with its interpreter as one script, which python3
// from 3.8 on takes from standard input: `python3 -I -`. The mark is in the
// process's name, as far as that has room, for its command line has none.
func Python(p Program) (script string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	if len(text) > MaxProgram {
		return "", fmt.Errorf("the program has %d bytes, at most %d", len(text), MaxProgram)
	}
	return strings.Replace(twin, slot, base64.StdEncoding.EncodeToString(text), 1), nil
}
