package attempt

// amd64Only lists the calls that only amd64 has.
func amd64Only() []numbered {
	var all []numbered
	for _, name := range []string{
		"fork", "vfork", "arch_prctl",
		"iopl", "ioperm", "modify_ldt",
		"sysfs", "ustat", "uselib",
		"open", "creat", "mkdir",
		"mknod", "link", "unlink",
		"rename", "chmod", "chown",
		"pause", "alarm",
	} {
		all = append(all, numbered{name, -1})
	}
	return all
}
