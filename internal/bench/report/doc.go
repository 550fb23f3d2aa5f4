// Package report draws a result of the benchmark: as tables for a terminal, as
// plots, and as one HTML page that needs nothing from elsewhere. It judges
// nothing. The texts of a result may be anybody's, and are escaped here.
package report
