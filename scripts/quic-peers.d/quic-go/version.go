package main

import "runtime/debug"

// What it is made of: `v0.65.0 (go1.27.3)`.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/quic-go/quic-go" {
			return module.Version + " (" + info.GoVersion + ")"
		}
	}
	return "unknown"
}
