// SPDX-License-Identifier: Apache-2.0

// Package build has this process's version of creel.
package build

import (
	_ "embed"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
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

// next is the version under development. The chart, the image and the changelog name it too.
//
//go:embed VERSION
var next string

// version is set by the linker if there is no repository to read it from, as in an image: -X
// github.com/creelrm/creel/app/daemon/build.version=v1.2.3
var version string

// Read returns the build information that the Go toolchain stored in this binary.
func Read() Info {
	b := Info{Version: development(""), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = development(v)
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

// pseudo matches the version that Go assigns to a commit without a tag, such as
// v0.0.0-20261127194452-dffed05e105e+dirty.
var pseudo = regexp.MustCompile(`^v.*[.-]([0-9]{14})-([0-9a-f]{12})(\+dirty)?$`)

// development returns the version of a build between releases, with the time and the hash of its commit. A commit
// without a tag precedes the next release, so the version is not v0.0.0. A release's version stays.
func development(module string) string {
	v := "v" + strings.TrimSpace(next) + "-dev"
	if module == "" {
		return v
	}
	m := pseudo.FindStringSubmatch(module)
	if m == nil {
		return module
	}
	return v + "." + m[1] + "+" + m[2] + strings.Replace(m[3], "+", ".", 1)
}
