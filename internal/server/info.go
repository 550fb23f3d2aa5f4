package server

import (
	_ "embed"
	"net/http"

	"tranca/internal/api"
	"tranca/internal/interpreter"
	"tranca/internal/policy"
	"tranca/internal/server/route"
)

// openAPI is made from package route and the types of package api by the test
// of package openapi, which also checks that it is what they say now.
//
//go:embed openapi.json
var openAPI []byte

func document(c *call) error {
	c.bytes(http.StatusOK, api.TypeJSON, openAPI)
	return nil
}

func health(c *call) error {
	if c.s.stopping.Err() != nil {
		return errStopping()
	}
	return c.json(http.StatusOK, route.Health{Status: "ok"})
}

func info(c *call) error {
	e := c.s.cfg.Engine
	out := api.Info{Version: c.s.cfg.Version, Languages: interpreter.Names(), Profiles: []api.ProfileInfo{}}
	for _, name := range e.Profiles() {
		p, err := e.PolicyOf(name)
		if err != nil {
			return err
		}
		out.Profiles = append(out.Profiles, api.ProfileInfo{
			Name: name, Digest: policy.Digest(p), Limits: api.LimitsOf(p.Limits),
		})
	}
	return c.json(http.StatusOK, out)
}
