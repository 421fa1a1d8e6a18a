// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

// Helpers returns the directory of our own Java programs (java/*.java),
// compiled against the version's jars.
func Helpers(t testing.TB, v Version) string {
	t.Helper()
	jars := Jars(t, v)
	sources, err := fs.Glob(files, "java/*.java")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range sources {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(name + "\n")
		all.Write(text)
	}
	all.WriteString(jars)
	return Cached(t, "helpers-"+string(v), []byte(all.String()), func(dir string) error {
		return withTemp(nil, "x", func(path string) error {
			args := []string{
				tool(t, "javac"),
				"-nowarn",
				"-Xlint:-options",
				"-proc:none",
				"--release",
				"17",
				"-cp",
				jars + "/*",
				"-d",
				dir,
			}
			for _, name := range sources {
				text, err := files.ReadFile(name)
				if err != nil {
					return err
				}
				source := filepath.Join(filepath.Dir(path), filepath.Base(name))
				if err := os.WriteFile(source, text, 0o644); err != nil {
					return err
				}
				args = append(args, source)
			}
			return run(dir, args...)
		})
	})
}

// PythonPath returns a directory for PYTHONPATH that holds pyspark and
// yarn-api-client, filled the first time it is wanted (about 320 MB from PyPI).
func PythonPath(t testing.TB) string {
	t.Helper()
	requirements, err := files.ReadFile("python/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := Cached(t, "python", requirements, func(dir string) error {
		python, err := programs.Path("python3")
		if err != nil {
			t.Fatalf("the Spark and REST client tests need python3 with venv: %v", err)
		}
		t.Log("fetching pyspark and yarn-api-client, about 320 MB, once")
		// Installed as plain files for PYTHONPATH: a venv would carry the path
		// of the partial directory in its scripts.
		return withTemp(requirements, "requirements.txt", func(path string) error {
			venv := filepath.Join(filepath.Dir(path), "venv")
			if err := run(dir, python, "-m", "venv", venv); err != nil {
				return err
			}
			return run(
				dir,
				filepath.Join(venv, "bin", "python"),
				"-m",
				"pip",
				"install",
				"-q",
				"--no-compile",
				"--target",
				filepath.Join(dir, "packages"),
				"-r",
				path,
			)
		})
	})
	return filepath.Join(root, "packages")
}
