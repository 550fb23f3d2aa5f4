package host

import (
	"fmt"
	"os"

	"tranca"
	"tranca/internal/machine"
)

var _ tranca.ChangeReader = (*sandbox)(nil)

// OpenChanges is [tranca.ChangeReader]. The guest agent has no part in it.
func (sb *sandbox) OpenChanges(target string) (*os.File, error) {
	m, ok := sb.m.(machine.ChangeReader)
	if !ok {
		return nil, fmt.Errorf("%w: this backend keeps no changes", tranca.ErrUnsupported)
	}
	return m.OpenChanges(target)
}
