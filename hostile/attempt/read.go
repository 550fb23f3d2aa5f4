package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxProgram bounds a program's JSON, in bytes.
const MaxProgram = 1 << 20

// Read reads one program from r. It reads no further than the end of the
// program's JSON, so that a stream that stays open is no hindrance, and holds
// the steps against [Check].
func Read(r io.Reader) (Program, error) {
	var p Program
	limited := &io.LimitedReader{R: r, N: MaxProgram}
	d := json.NewDecoder(limited)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		if limited.N <= 0 {
			return Program{}, fmt.Errorf("the program has more than %d bytes", MaxProgram)
		}
		return Program{}, fmt.Errorf("the program is not what package attempt describes: %w", err)
	}
	if err := errors.Join(Check(p.Steps)...); err != nil {
		return Program{}, err
	}
	return p, nil
}
