//go:build !no_docker

package backends

import (
	"os"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/backend/container"
)

// containers is the backend of containers. Which engine, and which image where
// a policy names none, the operator says by variables.
func containers(known *advisory.InForce) tranca.Backend {
	return newLazy(container.Name, tranca.LevelContainer, func() (tranca.Backend, error) {
		return container.New(container.Options{
			Engine: os.Getenv("TRANCA_CONTAINER_ENGINE"),
			Image:  os.Getenv("TRANCA_CONTAINER_IMAGE"),

			Advisories: known,
		})
	})
}
