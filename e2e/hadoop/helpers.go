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

// Helpers returns the directory of creel's own Java programs (java/*.java), compiled against the version's jars.
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

// PythonPath returns a directory for PYTHONPATH with pyspark 3.5 and yarn-api-client. The first call installs about 320
// MB from PyPI.
func PythonPath(t testing.TB) string {
	t.Helper()
	return packages(t, "python", "python/requirements.txt")
}

// Spark is a release line of Spark that the kit can fetch.
type Spark string

const (
	Spark35 Spark = "3.5" // its own Hadoop client is 3.3.4
	Spark4  Spark = "4"   // its own Hadoop client is 3.4.2
)

// PysparkPath returns a directory for PYTHONPATH with a pyspark of the line.
func PysparkPath(t testing.TB, line Spark) string {
	t.Helper()
	if line == Spark4 {
		return packages(t, "spark4", "python/spark4.txt")
	}
	return PythonPath(t)
}

// FlinkHome returns the directory of a Flink distribution: lib, opt and plugins.
func FlinkHome(t testing.TB) string {
	t.Helper()
	return filepath.Join(packages(t, "flink", "python/flink.txt"), "pyflink")
}

// SkeinPath returns a directory for PYTHONPATH with Skein, which starts services on YARN.
func SkeinPath(t testing.TB) string { t.Helper(); return packages(t, "skein", "python/skein.txt") }

// packages returns the directory with the packages of a requirements file.
func packages(t testing.TB, name, file string) string {
	t.Helper()
	requirements, err := files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root := Cached(t, name, requirements, func(dir string) error {
		python, err := programs.Path("python3")
		if err != nil {
			t.Fatalf("%s comes by python3 with venv: %v", name, err)
		}
		t.Logf("fetching %s, up to 500 MB, once", strings.Join(strings.Fields(string(requirements)), " and "))
		// Installed as plain files for PYTHONPATH: a venv's scripts would contain the path of the partial directory.
		return withTemp(requirements, "requirements.txt", func(path string) error {
			venv := filepath.Join(filepath.Dir(path), "venv")
			if err := run(dir, python, "-m", "venv", venv); err != nil {
				return err
			}
			return run(dir, filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "-q", "--no-compile",
				"--target", filepath.Join(dir, "packages"), "-r", path)
		})
	})
	return filepath.Join(root, "packages")
}
