// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

var built struct {
	sync.Mutex
	dir string
}

// Main is for TestMain of packages that use Binary: it runs the tests and removes the built program.
func Main(m *testing.M) {
	code := m.Run()
	built.Lock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// Binary is the path of the creel program: $CREEL_BINARY, or else built from
// this tree once for the test binary.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CREEL_BINARY"); path != "" {
		return path
	}
	built.Lock()
	defer built.Unlock()
	path := filepath.Join(built.dir, "creel")
	if built.dir != "" {
		return path
	}
	dir, err := os.MkdirTemp("", "creel-binary-")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "creel")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/creelrm/creel/cmd/creel").
		CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		t.Fatalf("go build: %v\n%s", err, out)
	}
	built.dir = dir
	return path
}

// Options are a ResourceManager's start options; the zero value is usable.
type Options struct {
	Name     string      // default "creel-rm"
	Conf     hadoop.Conf // wins over the defaults
	Volatile bool        // keep no journal
	Args     []string    // more arguments of creel rm
	// Addresses are where it listens; those left empty are free loopback ports.
	Addresses hadoop.Addresses
}

// Creel is one of creel's ResourceManagers in a process of its own.
type Creel struct {
	*process.Process
	hadoop.Addresses
	Conf    hadoop.Conf
	ConfDir string
	command process.Command
	ready   string
}

// Start runs `creel rm --conf DIR` with the configuration that hadoop.StartRM writes for Hadoop's, and waits until it
// serves. It ends with the test.
func Start(t testing.TB, o Options) *Creel {
	t.Helper()
	if o.Name == "" {
		o.Name = "creel-rm"
	}
	// Not t.TempDir: its path carries the test's name, and this one ends up in
	// command lines.
	dir, err := os.MkdirTemp("", "creel-rm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	a := o.Addresses
	for _, address := range []*string{&a.Client, &a.Scheduler, &a.Tracker, &a.Admin, &a.Web} {
		if *address == "" {
			*address = process.FreeAddress(t, "127.0.0.1")
		}
	}
	user := hadoop.OSUser(t)
	r := &Creel{Addresses: a, ConfDir: filepath.Join(dir, "conf"), ready: filepath.Join(dir, "ready")}
	r.Conf = hadoop.Conf{
		"fs.defaultFS":                          "file:///",
		"hadoop.tmp.dir":                        filepath.Join(dir, "tmp"),
		"hadoop.http.staticuser.user":           user,
		"hadoop.proxyuser." + user + ".hosts":   "*",
		"hadoop.proxyuser." + user + ".groups":  "*",
		"yarn.resourcemanager.scheduler.class":  "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		"yarn.scheduler.minimum-allocation-mb":  "128",
		"yarn.scheduler.maximum-allocation-mb":  "4096",
		"yarn.cluster.max-application-priority": "10",
	}.With(a.Conf(), hadoop.Queues(), o.Conf)
	r.Conf.Write(t, r.ConfDir)
	args := append([]string{Binary(t), "rm", "--conf", r.ConfDir, "--ready-file", r.ready}, o.Args...)
	if !o.Volatile {
		args = append(args, "--data", filepath.Join(dir, "data"))
	}
	r.command = process.Command{Name: o.Name, Dir: dir, Args: args}
	r.spawn(t)
	t.Cleanup(func() { r.End(t) })
	return r
}

func (r *Creel) spawn(t testing.TB) {
	t.Helper()
	if err := os.Remove(r.ready); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	r.Process = process.Spawn(t, r.command)
	r.Await(t, "its ready file", func() bool {
		b, err := os.ReadFile(r.ready)
		if err != nil {
			return false
		}
		var entry struct{ PID int }
		return json.Unmarshal(b, &entry) == nil && entry.PID == r.PID()
	})
}

// Kill9 ends it with SIGKILL, as a crash would.
func (r *Creel) Kill9() { r.KillAlone() }

// Restart starts it again on the same ports and the same journal, after ending
// it if it still runs.
func (r *Creel) Restart(t testing.TB) {
	t.Helper()
	if !r.Ended() {
		r.Stop()
	}
	r.spawn(t)
}

// String names it in a test's messages.
func (r *Creel) String() string { return fmt.Sprintf("creel rm on %s", r.Client) }
