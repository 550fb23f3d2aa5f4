package report

// Progress tells of a run while it goes on: a cell began, or, where Cell is set,
// a cell is done. What only has a Note tells of something between cells: a
// backend that is tried, a control that is set up.
type Progress struct {
	// Done of Total cells are done.
	Done, Total int
	// Probe and Column name the cell.
	Probe, Column string
	// Cell is the cell that is now done. It is not changed later on.
	Cell *Cell
	Note string
}
