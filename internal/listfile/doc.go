// Package listfile reads lists of rows that are data: they come with the
// program, and an operator may put a newer copy beside it without a new
// program.
//
// A list is JSON:
//
//	{"schema": "tranca.advisories/1", "date": "2026-11-30", "rows": [
//	{...},
//	{...}
//	]}
//
// with one row on a line, so that an error can name the line and a change can
// be read. Unknown fields are errors: a list that means more than this program
// understands is not half understood.
package listfile
