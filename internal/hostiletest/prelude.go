package hostiletest

import _ "embed"

// Prelude is what every hostile program in Python begins with: how it tells
// what it tried, and whether its benign twins worked. It gets its variables as
// JSON in the first argument.
//
//go:embed prelude.py
var Prelude string
