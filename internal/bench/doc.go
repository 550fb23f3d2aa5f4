// Package bench is what `tranca bench` found out, as data: the result with its
// JSON form, what its measures mean, and how two results compare. How it is
// measured is below it: sample times side by side, stats judges, measure says
// what is done to each subject, baseline holds others' sandboxes, and report
// draws. docs/BENCH.md describes all of it.
package bench
