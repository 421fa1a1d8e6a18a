// SPDX-License-Identifier: Apache-2.0

// Package programs finds the programs that tests run beside creel (Redis, Java, a browser). The table debian.txt maps
// each to its Debian packages. ./test tools installs from the same table. A program outside the table is not found,
// even if it is installed. So no test can depend on a program that is missing on a fresh machine.
package programs

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed debian.txt
var table string

// Packages maps each program to its Debian packages.
var Packages = parse(table)

// Path returns the path of a program of the table: Java's programs from JAVA_HOME, others from PATH. The error explains
// how to install a missing program.
func Path(name string) (string, error) {
	packages, ok := Packages[name]
	if !ok {
		return "", fmt.Errorf("%s is not in internal/programs/debian.txt: add it there with its Debian package", name)
	}
	if home := os.Getenv("JAVA_HOME"); home != "" && strings.HasPrefix(name, "java") {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: ./test tools does it, or apt-get install %s (Debian)",
			name, strings.Join(packages, " "))
	}
	return path, nil
}

// parse reads the table: each line is a program, its packages, and optionally a check after a colon.
func parse(text string) map[string][]string {
	packages := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " : ")
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			packages[words[0]] = words[1:]
		}
	}
	return packages
}
