package server

import (
	"fmt"

	"tranca"
)

func readArchive(*call) error  { return fmt.Errorf("%w: archives", tranca.ErrUnsupported) }
func writeArchive(*call) error { return fmt.Errorf("%w: archives", tranca.ErrUnsupported) }
