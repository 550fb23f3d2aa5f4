package badinput

func clockControl() int { return 0 }
