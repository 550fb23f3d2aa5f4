// Package cli is the command line of tranca: it turns arguments into requests,
// hands them to what [World] offers, and shows what came back. It decides
// nothing about policies or sandboxes.
//
// One file holds one command. status.go holds the only table from errors and
// ends of runs to exit statuses.
package cli
