module example.com/hostexec

go 1.26.3

require tranca v0.0.0

require (
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/godbus/dbus/v5 v5.2.4 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace tranca => ../..
