// Package tranca is the vocabulary of tranca: the types, small interfaces and
// errors with which a boundary around untrusted code is described, whatever
// the boundary is made of.
//
// A [Policy] says what one sandbox may do. The operator writes it before the
// agent starts; a [Narrowing] that comes with a request can only take away.
// A [Backend] makes sandboxes of one kind and reports, by trying, which
// [Guarantee]s it gives on this host. A [Sandbox] starts processes and serves
// files. A [Result] says what came out, how it ended, and by which mechanism
// each item of the policy was enforced.
//
// The package imports nothing but the standard library and holds no logic of
// any one backend. To run code from a Go program, use package tranca/local.
//
// Unless a type says otherwise, values are not safe for concurrent
// modification, and interfaces are safe for concurrent use.
package tranca
