// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
)

// The command-line classes behind the yarn and mapred scripts.
const (
	cli               = "org.apache.hadoop.yarn.client.cli."
	NodeCLI           = cli + "NodeCLI"
	ApplicationCLI    = cli + "ApplicationCLI"
	QueueCLI          = cli + "QueueCLI"
	ClusterCLI        = cli + "ClusterCLI"
	RMAdminCLI        = cli + "RMAdminCLI"
	RouterCLI         = cli + "RouterCLI"    // yarn routeradmin
	SchedConfCLI      = cli + "SchedConfCLI" // yarn schedulerconf
	TopCLI            = cli + "TopCLI"
	LogsCLI           = cli + "LogsCLI"
	NodeAttributesCLI = cli + "NodeAttributesCLI"
	JobClient         = "org.apache.hadoop.mapred.JobClient"
	DistributedShell  = "org.apache.hadoop.yarn.applications.distributedshell.Client"
	UnmanagedLauncher = "org.apache.hadoop.yarn.applications.unmanagedamlauncher.UnmanagedAMLauncher"
	Examples          = "org.apache.hadoop.examples.ExampleDriver"
	SleepJob          = "org.apache.hadoop.mapreduce.SleepJob"
)

// Client is a user's machine: a configuration directory and a Hadoop version. Its AMs and tasks use the same version.
// The zero version is 3.4.2.
type Client struct {
	Version Version
	Conf    Conf     // at least the addresses; takes precedence over the defaults
	User    string   // HADOOP_USER_NAME; default the OS user
	Env     []string // more environment
	HeapMB  int      // default 256
	Timeout time.Duration
	Stdin   io.Reader
	// AddOpens passes AddOpens to the JVM; command-line clients do not need it.
	AddOpens bool
	// FullJIT omits Quick.
	FullJIT bool
	// Jars is a directory of additional jars, after Hadoop's.
	Jars string

	dir string
}

// Result is the outcome of a client.
type Result struct {
	Stdout string
	All    string // standard output and error, including the client's log
	Code   int
}

// Setup makes the client's directory now, so that several runs share the directory and its staging directory. Without
// it, Run makes one for each run.
func (c Client) Setup(t testing.TB) Client {
	t.Helper()
	if c.dir != "" {
		return c
	}
	if c.Version == "" {
		c.Version = V342
	}
	c.dir = tempDir(t, "client")
	c.Conf = common(t, c.dir).With(containers(Jars(t, c.Version), c.ConfDir(), c.dir), c.Conf)
	c.Conf.Write(t, c.ConfDir())
	// The submitter must own it, and sets its mode.
	if err := os.MkdirAll(c.Conf["yarn.app.mapreduce.am.staging-dir"], 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

// Dir returns the client's own directory. Setup must have been called.
func (c Client) Dir() string { return c.dir }

// ConfDir returns the configuration directory.
func (c Client) ConfDir() string { return filepath.Join(c.dir, "conf") }

func (c Client) command(t testing.TB, class string, args []string) process.Command {
	t.Helper()
	flags := []string{heap(c.HeapMB, 256), "-Duser.home=" + c.dir}
	if !c.FullJIT {
		flags = append(flags, strings.Fields(Quick)...)
	}
	if c.AddOpens {
		flags = append(flags, AddOpens)
	}
	classPath := ClassPath(t, c.Version, c.ConfDir())
	if c.Jars != "" {
		classPath += ":" + c.Jars + "/*"
	}
	return process.Command{
		Name:  class[strings.LastIndex(class, ".")+1:],
		Dir:   c.dir,
		Args:  jvm(t, classPath, flags, class, args...),
		Env:   c.Environment(t),
		Stdin: c.Stdin,
	}
}

// Environment returns the environment of a program that acts as this client: the configuration directory, the home
// and the user.
func (c Client) Environment(t testing.TB) []string {
	env := []string{
		"HADOOP_HOME=" + c.dir, "HADOOP_CONF_DIR=" + c.ConfDir(), "YARN_CONF_DIR=" + c.ConfDir(),
		"JAVA_HOME=" + javaHome(t), "HOME=" + c.dir,
	}
	if c.User != "" {
		env = append(env, "HADOOP_USER_NAME="+c.User)
	}
	return append(env, c.Env...)
}

func javaHome(t testing.TB) string {
	path, err := filepath.EvalSymlinks(Java(t))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(path))
}

// Run runs a main class to its end.
func (c Client) Run(t testing.TB, class string, args ...string) Result {
	t.Helper()
	c = c.Setup(t)
	return runCommand(t, c.command(t, class, args), c.Timeout)
}

// Start starts a main class and does not wait for its end.
func (c Client) Start(t testing.TB, class string, args ...string) *process.Process {
	t.Helper()
	c = c.Setup(t)
	return process.Start(t, c.command(t, class, args))
}

func runCommand(t testing.TB, command process.Command, timeout time.Duration) Result {
	t.Helper()
	if timeout == 0 {
		timeout = process.Guard
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	stdout, all, code := process.Run(ctx, t, command)
	return Result{stdout, all, code}
}

// OK fails the test unless the client ended with code 0, and returns the result.
func (r Result) OK(t testing.TB) Result {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, tail(r.All, 60))
	}
	return r
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Lines decodes the JSON lines of the standard output, which creel's Java helpers print. It skips other lines.
func Lines[T any](t testing.TB, r Result) []T {
	t.Helper()
	var out []T
	s := bufio.NewScanner(strings.NewReader(r.Stdout))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if !strings.HasPrefix(s.Text(), "{") {
			continue
		}
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// ClientConf returns the addresses in a client's form.
func (r *ResourceManager) ClientConf() Conf { return r.Addresses.Conf() }

// tempDir returns a directory for one process of one test. Its name is short because paths appear in command lines and
// sockets. All users can search its parents, as public local resources require.
func tempDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "creel-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("CREEL_KEEP") != "" {
			t.Logf("kept %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the directory of %s is still in use: %v", name, err)
		}
	})
	return dir
}
