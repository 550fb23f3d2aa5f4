//go:build !amd64

package main

// Not compiled ahead: see filter.go.
var kernelCompiled, filesCompiled compiled
