package container

// trusted takes every pipe that the operator names or that engines make: who
// may make one of those names, Windows decides.
func trusted(string) error { return nil }
