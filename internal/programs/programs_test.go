// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os/exec"
	"strings"
	"testing"
)

func TestEveryProgramHasAPackageAndIsFound(t *testing.T) {
	if len(Packages) < 10 {
		t.Fatalf("%d programs were read from debian.txt", len(Packages))
	}
	for name, packages := range Packages {
		if len(packages) == 0 {
			t.Errorf("%s has no Debian package", name)
		}
		if _, err := Path(name); err != nil {
			t.Error(err)
		}
	}
}

// The program found also starts: a wrapper without its library would not.
func TestRedisStarts(t *testing.T) {
	for _, name := range []string{"redis-server", "redis-sentinel"} {
		path, err := Path(name)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil {
			t.Errorf("%s --version: %v\n%s", path, err, out)
		}
	}
}

func TestUnlistedProgramIsNotFound(t *testing.T) {
	if path, err := Path("ls"); err == nil || !strings.Contains(err.Error(), "debian.txt") {
		t.Errorf("got %q, %v", path, err)
	}
}

func TestMissingProgramErrorNamesPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	if path, err := Path("mvn"); err == nil || !strings.Contains(err.Error(), "apt-get install maven") {
		t.Errorf("got %q, %v", path, err)
	}
}

func TestLineHasProgramPackagesAndCheck(t *testing.T) {
	got := parse("# head\n\npython3 python3 python3-venv : python3 -c 'import x' # why\nmvn maven # x\nbare\n")
	if len(got) != 3 || strings.Join(got["python3"], ",") != "python3,python3-venv" ||
		strings.Join(got["mvn"], ",") != "maven" || len(got["bare"]) != 0 {
		t.Errorf("got %q", got)
	}
}
