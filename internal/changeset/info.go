package changeset

import (
	"time"

	"tranca"
)

// KeptFor is how long a set is kept.
const KeptFor = 7 * 24 * time.Hour

// Info is what is told of a set that is kept.
type Info struct {
	ID      tranca.ID `json:"id"`
	Created time.Time `json:"created"`
	Mounts  []Mount   `json:"mounts"`
	// Changes counts the paths that changed.
	Changes int `json:"changes"`
	// Applied is when all of it was applied; zero if it was not.
	Applied time.Time `json:"applied,omitzero"`
}
