// Package route is the list of the server's calls: their parameters, bodies and
// answers. The server reads requests by it, and the OpenAPI document and
// docs/API.md are made from it, so that neither can say what is not so.
package route
