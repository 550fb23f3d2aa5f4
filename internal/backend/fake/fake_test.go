package fake_test

import (
	"testing"

	"go.uber.org/goleak"

	"tranca"
	"tranca/backendtest"
	"tranca/internal/backend/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(*testing.T) tranca.Backend { return fake.New(fake.Options{}) }, backendtest.Expect{
		Command: func(program string, args ...string) []string { return append([]string{program}, args...) },
	})
}
