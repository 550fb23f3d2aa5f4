// Package fake is a backend that executes nothing. It keeps the contracts of
// package tranca in memory: sandboxes, processes, files, limits and their end
// reasons, all played by goroutines. Tests of the engine and of surfaces use
// it to reach states that real sandboxes reach rarely, at no cost.
//
// It holds nothing back from anybody: never wire it into a program.
//
// # Programs
//
// The first argument of a command names one of a fixed set of programs (see
// programs.go), such as "exit 3", "print out err", "sleep 0.5", "spin",
// "alloc 1000000", "flood 1048576". Everything else is not found.
//
// The interpreters are there too. The code that they are given is read as one
// such command per line, run one after another until one fails; words are
// separated by blanks. So a request of code "print hello\nexit 3" behaves like
// any program that prints hello and exits with 3.
package fake
