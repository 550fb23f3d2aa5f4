//go:build no_docker

package backends

import (
	"tranca"
	"tranca/internal/advisory"
)

// containers says that this build has no such backend.
func containers(*advisory.InForce) tranca.Backend {
	return newLazy("container", tranca.LevelContainer, func() (tranca.Backend, error) {
		return nil, &tranca.RefusalError{Backend: "container", Unavailable: true, Problems: []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: "the backend container",
			Missing: "this program was built without it (build tag no_docker)",
			Mend:    "use a build without that tag",
		}}}
	})
}
