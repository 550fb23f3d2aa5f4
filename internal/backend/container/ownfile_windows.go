package container

import "os"

// ownAlone leaves it to the user's profile, in which the folder lies.
func ownAlone(string) error { return nil }

func openRegular(path string) (*os.File, error) { return os.Open(path) }
