// SPDX-License-Identifier: Apache-2.0

// Package build knows which version of creel this process is.
package build

import (
	"runtime"
	"runtime/debug"
)

// Info is the content of /version and `creel version`.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// version is set by the linker where there is no repository to read it from, as in an
// image: -X github.com/creelrm/creel/internal/app/daemon/build.version=v1.2.3
var version string

// Read returns the build information that the Go toolchain stored in this binary.
func Read() Info {
	b := Info{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	if version != "" {
		b.Version = version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
