// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

// Version is a Hadoop release that the kit can fetch.
type Version string

const (
	V342 Version = "3.4.2" // daemons and clients
	V336 Version = "3.3.6" // clients and the ResourceManager
)

//go:embed pom.xml pom-336.xml pom-tez.xml pom-gpg.xml pom-mariadb.xml java/*.java python/*.txt
var files embed.FS

// Java returns the path of the java program; JAVA_HOME takes precedence over PATH.
func Java(t testing.TB) string { t.Helper(); return tool(t, "java") }

func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	if err != nil {
		t.Fatalf("the Hadoop tests need %s: %v", name, err)
	}
	return path
}

// CacheDir returns the directory for jars, compiled helpers and the Python environment. It outlives a run:
// $CREEL_CACHE, else creel in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("CREEL_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w; set CREEL_CACHE", err)
	}
	return filepath.Join(dir, "creel"), nil
}

// Jars returns the directory with every jar of the version. The first call fetches them.
func Jars(t testing.TB, v Version) string {
	t.Helper()
	pom := map[Version]string{V342: "pom.xml", V336: "pom-336.xml"}[v]
	if pom == "" {
		t.Fatalf("no pom for Hadoop %s", v)
	}
	return fetched(t, "hadoop-"+string(v), pom, "Hadoop "+string(v))
}

// TezJars returns the directory of Tez and its examples. They also need the jars of V342.
func TezJars(t testing.TB) string { t.Helper(); return fetched(t, "tez", "pom-tez.xml", "Tez") }

// mariaDBDriver returns the directory of MariaDB's JDBC driver.
func mariaDBDriver(t testing.TB) string {
	t.Helper()
	return fetched(t, "mariadb", "pom-mariadb.xml", "MariaDB's JDBC driver")
}

// FlinkExamples returns the jar of Flink's streaming examples. Later releases of this Maven goal read the parent, which
// some registries lack. So an old release fetches the jar alone, into a repository of its own.
func FlinkExamples(t testing.TB) string {
	t.Helper()
	const artifact, name = "org.apache.flink:flink-examples-streaming:2.3.0", "flink-examples-streaming-2.3.0.jar"
	dir := Cached(t, "flink-examples", []byte(artifact), func(dir string) error {
		repository := filepath.Join(dir, "repository")
		err := run(dir, tool(t, "mvn"), "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:2.8:get",
			"-Dmaven.repo.local="+repository, "-Dtransitive=false", "-Dartifact="+artifact)
		if err != nil {
			return err
		}
		jar := filepath.Join(repository, "org", "apache", "flink", "flink-examples-streaming", "2.3.0", name)
		return errors.Join(os.Rename(jar, filepath.Join(dir, name)), os.RemoveAll(repository))
	})
	return filepath.Join(dir, name)
}

// fetched returns the directory of a pom's jars.
func fetched(t testing.TB, name, pom, what string) string {
	t.Helper()
	text, err := files.ReadFile(pom)
	if err != nil {
		t.Fatal(err)
	}
	return Cached(t, name, text, func(dir string) error {
		mvn := tool(t, "mvn")
		tool(t, "javac")
		t.Logf("fetching %s, once", what)
		return withTemp(text, "pom.xml", func(pom string) error {
			return run(
				dir,
				mvn,
				"-q",
				"-B",
				"-f",
				pom,
				"dependency:copy-dependencies",
				"-DincludeScope=runtime",
				"-DoutputDirectory="+dir,
			)
		})
	})
}

// Cached returns the directory of a result that is built once. Its name contains a hash of its inputs, so a change
// builds another one. make fills an empty directory, which gets its final name when it is complete. If two processes
// need the same result at once, one waits for the other.
//
// A finished directory is verified against the list of its files and their sizes. A damaged directory is rebuilt.
//
// A finished directory is verified against the list of its files and their sizes, and rebuilt if it was damaged.
func Cached(t testing.TB, name string, from []byte, make func(dir string) error) string {
	t.Helper()
	root, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, fmt.Sprintf("%s-%x", name, sha256.Sum256(from))[:len(name)+13])
	inThisProcess.Lock()
	defer inThisProcess.Unlock()
	if verified[dir] {
		return dir
	}
	if err := once(root, dir, make); err != nil {
		t.Fatalf("make %s: %v", dir, err)
	}
	verified[dir] = true
	return dir
}

var (
	inThisProcess sync.Mutex
	verified      = map[string]bool{}
)

func once(root, dir string, make func(dir string) error) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	damage := check(dir)
	if damage == nil {
		return nil
	}
	if !errors.Is(damage, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "the cache at %s is damaged (%v) and is made again\n", dir, damage)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	temp := dir + ".partial" // safe: this process has the lock
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return err
	}
	if err := make(temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	list, err := manifest(temp)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, manifestName), []byte(list), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

const manifestName = "MANIFEST.creel"

// manifest lists the regular files directly in dir with their sizes. Tools check deeper files themselves.
func manifest(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == manifestName {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%d %s\n", info.Size(), e.Name())
	}
	return b.String(), nil
}

func check(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	got, err := manifest(dir)
	if err != nil {
		return err
	}
	if got != string(want) {
		return errors.New("its files are not those that were fetched")
	}
	return nil
}

func withTemp(text []byte, name string, f func(path string) error) error {
	dir, err := os.MkdirTemp("", "creel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	return f(path)
}

// run runs a tool. If the tool fails, the error contains its output.
func run(dir string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
