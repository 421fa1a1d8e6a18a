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

// Binary returns the path of the creel program. It is $CREEL_BINARY, or a build of this tree, made once for the test
// binary.
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
	Conf     hadoop.Conf // takes precedence over the defaults
	Volatile bool        // keep no journal
	Args     []string    // additional arguments of creel rm
	// Addresses are the listen addresses. Empty ones become free loopback ports.
	Addresses hadoop.Addresses
}

// Creel is a process of creel's ResourceManager.
type Creel struct {
	*process.Process
	hadoop.Addresses
	Conf    hadoop.Conf
	ConfDir string
	command process.Command
	ready   string
}

// Start runs `creel rm --conf DIR` and waits until it serves. Its configuration is the one that hadoop.StartRM writes
// for Hadoop's. The process ends with the test.
func Start(t testing.TB, o Options) *Creel {
	t.Helper()
	if o.Name == "" {
		o.Name = "creel-rm"
	}
	// Not t.TempDir: its path contains the test's name, and this path appears in command lines.
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

// Kill9 ends it with SIGKILL, like a crash.
func (r *Creel) Kill9() { r.KillAlone() }

// Restart starts it on the same ports and the same journal. It first ends it if it still runs.
func (r *Creel) Restart(t testing.TB) {
	t.Helper()
	if !r.Ended() {
		r.Stop()
	}
	r.spawn(t)
}

// String returns its name for a test's messages.
func (r *Creel) String() string { return fmt.Sprintf("creel rm on %s", r.Client) }
