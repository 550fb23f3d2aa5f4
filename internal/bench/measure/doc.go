// Package measure does to each subject what the measures of package bench say:
// side by side, in random order, with a bare baseline first and last. A subject
// that fails has rows that say so, and the rest goes on.
package measure
