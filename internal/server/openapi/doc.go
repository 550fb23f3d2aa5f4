// Package openapi makes the OpenAPI document and docs/API.md from the list of
// calls in package route, the types of package api and their comments. Its test
// writes both when it is run with -update, and fails where they say something
// else than the code. No program links it.
package openapi
