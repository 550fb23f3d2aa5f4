// Package app puts tranca together. It is the only place that knows concrete
// backends, and wires them to the engine and the engine to the surfaces;
// everything else speaks by the vocabulary of the root package.
package app
