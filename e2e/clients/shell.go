// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// shellArgs returns the arguments of a distributed shell with n small containers.
func shellArgs(t *testing.T, n int, more ...string) []string {
	t.Helper()
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	return append([]string{
		"-jar",
		jar,
		"-num_containers",
		strconv.Itoa(n),
		"-master_memory",
		"256",
		"-container_memory",
		"128",
		"-timeout",
		"170000",
	}, more...)
}

// RunShell runs a distributed shell of n containers that must succeed, and returns its id.
func RunShell(t *testing.T, c *Cluster, n int, more ...string) string {
	t.Helper()
	return runShell(t, c, c.client(t), n, more...)
}

// runShell runs a distributed shell that must succeed, and returns its id.
func runShell(t *testing.T, c *Cluster, client hadoop.Client, n int, more ...string) string {
	t.Helper()
	r := c.ran(t, client, hadoop.DistributedShell, shellArgs(t, n, more...)...)
	says(t, r.All, "Application completed successfully")
	id := matches(t, r.All, applicationID)
	c.ends(t, client, id, "FINISHED", "SUCCEEDED")
	return id
}

// containersOf returns the files that an application's containers left under their ids.
func containersOf(t *testing.T, dir, id string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*container_*" + strings.TrimPrefix(id, "application_") + "_*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// startShell starts a distributed shell of n sleeping containers and waits until they run. It returns its id and its
// client.
func startShell(t *testing.T, c *Cluster, client hadoop.Client, n int) (string, *process.Process) {
	t.Helper()
	dir := t.TempDir()
	return c.started(t, client, n, dir, fmt.Sprintf("touch %s/began.$CONTAINER_ID; exec sleep 1000", dir))
}

// started starts a distributed shell of n containers whose command writes began.ID in dir. It waits for all and returns
// the id and the client. While ResourceManagers are killed, it restarts the shell if a node refused an earlier grant.
// The shell requests no replacement and would wait forever.
func (c *Cluster) started(
	t *testing.T,
	client hadoop.Client,
	n int,
	dir, command string,
	more ...string,
) (id string, p *process.Process) {
	t.Helper()
	for {
		p = client.Start(t, hadoop.DistributedShell, shellArgs(t, n, append(more, "-shell_command", command)...)...)
		began := func() bool {
			files, err := filepath.Glob(dir + "/began.*")
			return err == nil && len(files) == n
		}
		if !c.Restarts {
			p.Await(t, "the containers", began)
			return regexp.MustCompile(applicationID).FindString(p.Output()), p
		}
		patience := time.After(time.Minute)
		for waiting := true; waiting && !began() && !p.Ended(); {
			select {
			case <-patience:
				waiting = false
			case <-time.After(100 * time.Millisecond):
			}
		}
		id = regexp.MustCompile(applicationID).FindString(p.Output())
		if began() && !p.Ended() {
			return id, p
		}
		if id == "" {
			t.Fatalf("a shell that no application came of:\n%s", p.Tail(40))
		}
		client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id)
		until(t, "the end of "+id, func() bool {
			state := c.report(t, client, id).State
			return state == "KILLED" || state == "FINISHED" || state == "FAILED"
		})
		p.Stop()
		if logs := client.Run(t, hadoop.LogsCLI, "-applicationId", id).Stdout; !strings.Contains(logs, refused) {
			t.Fatalf("%s did not begin its containers, and no node refused one:\n%s", id, logs[max(0, len(logs)-20000):])
		}
		t.Logf("%s was granted containers that were not begun before a ResourceManager died: again", id)
		files, err := filepath.Glob(dir + "/*.*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// list returns yarn container -list of an attempt with n containers.
func list(t *testing.T, c *Cluster, client hadoop.Client, attempt string, n int) (out string) {
	t.Helper()
	total := fmt.Sprintf("Total number of containers :%d", n)
	return shows(t, c, client, []string{"container", "-list", attempt}, total)
}

// shows runs `yarn application` and similar commands, and fails unless the output has the wanted texts. While
// ResourceManagers restart this may take longer. Lists lack absent members, and AMs come back one by one.
func shows(t *testing.T, c *Cluster, client hadoop.Client, args []string, wanted ...string) (out string) {
	t.Helper()
	once := func() bool {
		out = client.Run(t, hadoop.ApplicationCLI, args...).OK(t).Stdout
		return !slices.ContainsFunc(wanted, func(w string) bool { return !strings.Contains(out, w) })
	}
	if c.Restarts {
		until(t, strings.Join(wanted, ", "), once)
	} else if !once() {
		says(t, out, wanted...)
	}
	return out
}

// roles separates an attempt's AM from its n workers. Container numbers do not: each subcluster of a federation
// counts from 1.
func roles(t *testing.T, c *Cluster, client hadoop.Client, attempt string, n int) (am string, workers []string) {
	t.Helper()
	out := client.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-status", attempt).OK(t).Stdout
	am = matches(t, out, `AMContainer : (`+containerID+`)`)
	out = list(t, c, client, attempt, n+1)
	workers = regexp.MustCompile(containerID).FindAllString(out, -1)
	slices.Sort(workers)
	workers = slices.Compact(workers)
	i, found := slices.BinarySearch(workers, am)
	if !found {
		t.Fatalf("the AM %s is not among %v", am, workers)
	}
	return am, slices.Delete(workers, i, i+1)
}

var shell = []Case{
	{"dshell_2", func(t *testing.T, c *Cluster) {
		dir := t.TempDir()
		id := runShell(t, c, c.client(t), 2, "-shell_command", "touch "+dir+"/$CONTAINER_ID")
		if ran := containersOf(t, dir, id); len(ran) != 2 {
			t.Errorf("%d containers ran", len(ran))
		}
	}},
	{"dshell_8", func(t *testing.T, c *Cluster) {
		dir := t.TempDir()
		id := runShell(t, c, c.client(t), 8, "-shell_command", "touch "+dir+"/$CONTAINER_ID")
		if ran := containersOf(t, dir, id); len(ran) != 8 {
			t.Errorf("%d containers ran", len(ran))
		}
	}},
	{"dshell_50", func(t *testing.T, c *Cluster) {
		dir := t.TempDir()
		id := runShell(t, c, c.client(t), 50, "-shell_command", "touch "+dir+"/$CONTAINER_ID")
		if ran := containersOf(t, dir, id); len(ran) != 50 {
			t.Errorf("%d containers ran", len(ran))
		}
	}},
	{"dshell_keep", func(t *testing.T, c *Cluster) {
		// The AM dies. The next attempt inherits its containers.
		client, dir := c.client(t), t.TempDir()
		wait := fmt.Sprintf(
			"touch %s/began.$CONTAINER_ID; until [ -e %s/go ]; do sleep 0.2; done; touch %s/ended.$CONTAINER_ID",
			dir,
			dir,
			dir,
		)
		id, p := c.started(t, client, 2, dir, wait, "-keep_containers_across_application_attempts")
		t.Cleanup(func() {
			if t.Failed() { // it would run forever and block its nodes for later cases
				client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id)
				t.Log(client.Run(t, hadoop.LogsCLI, "-applicationId", id).Stdout)
			}
		})
		attempt := func(n int) string {
			return fmt.Sprintf("%s_%06d", strings.Replace(id, "application", "appattempt", 1), n)
		}
		am, workers := roles(t, c, client, attempt(1), 2)
		if len(workers) != 2 {
			t.Fatalf("the first attempt has %s and %v", am, workers)
		}
		signal := func() hadoop.Result {
			return client.Run(t, hadoop.ApplicationCLI, "container", "-signal", am, "FORCEFUL_SHUTDOWN")
		}
		if !c.Forgets {
			signal().OK(t)
		}
		until(t, "the second attempt", func() bool {
			if c.Forgets {
				signal() // repeat until the container is gone
			}
			r := client.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-status", attempt(2))
			return strings.Contains(r.Stdout, "State : RUNNING")
		})
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := p.Exit(); err != nil {
			t.Errorf("the shell: %v\n%s", err, p.Tail(40))
		}
		c.ends(t, client, id, "FINISHED", "SUCCEEDED")
		for _, worker := range workers {
			if _, err := os.Stat(filepath.Join(dir, "ended."+worker)); err != nil {
				t.Errorf("%s did not live on: %v", worker, err)
			}
		}
		// An attempt that starts while a member is away gets the member's containers when the member is back. By then
		// it has requested others.
		if began, _ := filepath.Glob(dir + "/began.*"); len(began) != 2 && !c.Restarts {
			t.Errorf("%d containers began, want the two of the first attempt", len(began))
		}
	}},
	{"dshell_script", func(t *testing.T, c *Cluster) {
		dir := t.TempDir()
		script := filepath.Join(dir, "work.sh")
		if err := os.WriteFile(
			script,
			[]byte("#!/bin/bash\necho \"$GREETING $1\" > "+dir+"/$CONTAINER_ID.txt\n"),
			0o755,
		); err != nil {
			t.Fatal(err)
		}
		// One container: the shell's AM renames the script once for each container, each in its own thread. It dies
		// when the second thread does not find the script.
		id := runShell(t, c, c.client(t), 1, "-shell_script", script, "-shell_args", "world",
			"-shell_env", "GREETING=hello")
		output := containersOf(t, dir, id)
		if len(output) != 1 {
			t.Fatalf("%d containers ran", len(output))
		}
		if b, err := os.ReadFile(output[0]); err != nil || string(b) != "hello world\n" {
			t.Errorf("the script said %q, %v", b, err)
		}
	}},
	{"dshell_fail", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		r := client.Run(t, hadoop.DistributedShell, shellArgs(t, 2, "-shell_command", "exit 3")...)
		if r.Code == 0 {
			t.Errorf("exit code 0\n%s", r.All)
		}
		says(t, r.All, "Application failed to complete successfully")
		c.ends(t, client, matches(t, r.All, applicationID), "FINISHED", "FAILED")
	}},
	{"app_life", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		id, _ := startShell(t, c, client, 2)
		shows(t, c, client, []string{"application", "-status", id}, "Application-Id : "+id, "State : RUNNING",
			"Final-State : UNDEFINED", "Queue : root.default", "Application-Type : YARN")
		out := shows(t, c, client, []string{"applicationattempt", "-list", id},
			"Total number of application attempts :1", "RUNNING")
		attempt := matches(t, out, `appattempt_\d+_\d+_\d+`)
		out = list(t, c, client, attempt, 3)
		container := matches(t, out, containerID)
		status := func() bool {
			r := client.Run(t, hadoop.ApplicationCLI, "container", "-status", container)
			out = r.All
			return r.Code == 0 && strings.Contains(r.Stdout, "State : RUNNING")
		}
		if c.Restarts { // after a restart the ResourceManager has it when its node is back
			until(t, container+" to be running", status)
		} else if !status() {
			t.Fatal(out)
		}
		says(t, out, "Container-Id : "+container)
		shows(t, c, client, []string{"application", "-list"}, id)
		says(
			t,
			client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t).Stdout,
			"Killing application "+id,
		)
		c.ends(t, client, id, "KILLED", "KILLED")
		// a second kill finds it ended
		says(t, client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t).All, "has already finished")
	}},
	{"app_admin", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		id, _ := startShell(t, c, client, 1)
		client.Run(t, hadoop.ApplicationCLI, "application", "-appId", id, "-updatePriority", "5").OK(t)
		client.Run(t, hadoop.ApplicationCLI, "application", "-appId", id, "-updateLifetime", "300").OK(t)
		client.Run(t, hadoop.ApplicationCLI, "application", "-appId", id, "-changeQueue", "other").OK(t)
		out := client.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout
		says(t, out, "Application Priority : 5", "Queue : root.other", "TimeoutType : LIFETIME")
		client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t)
		c.ends(t, client, id, "KILLED", "KILLED")
	}},
	{"signal", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		id, p := startShell(t, c, client, 1)
		_, workers := roles(t, c, client, strings.Replace(id, "application", "appattempt", 1)+"_000001", 1)
		if len(workers) != 1 {
			t.Fatalf("the attempt has the workers %v", workers)
		}
		worker := workers[0]
		signal := func() hadoop.Result {
			return client.Run(t, hadoop.ApplicationCLI, "container", "-signal", worker, "GRACEFUL_SHUTDOWN")
		}
		if c.Forgets {
			until(t, "the worker's end", func() bool { return signal().Code != 0 && p.Ended() })
		} else {
			says(t, signal().OK(t).All, "Signalling container "+worker)
		}
		// The worker ends with 143, so the application ends and fails.
		if err := p.Exit(); err == nil {
			t.Errorf("the shell ended well\n%s", p.Tail(40))
		}
		c.ends(t, client, id, "FINISHED", "FAILED")
	}},
	{"logs", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		id := runShell(t, c, client, 2, "-shell_command", "echo needle in $CONTAINER_ID")
		var last hadoop.Result
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the last answer, exit code %d:\n%s", last.Code, last.All)
			}
		})
		until(t, "aggregated logs", func() bool {
			last = client.Run(t, hadoop.LogsCLI, "-applicationId", id)
			// Each node uploads its own logs, perhaps the AM's node last.
			return strings.Count(last.Stdout, "needle in container_") == 2 &&
				strings.Contains(last.Stdout, "LogType:AppMaster.stderr")
		})
		out := last.Stdout
		says(t, out, "LogType:stdout")
	}},
	{"uam", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		dir := t.TempDir()
		script := filepath.Join(dir, "am.sh")
		text := fmt.Sprintf(
			"#!/bin/bash\nexec %s -Xmx128m -XX:TieredStopAtLevel=1 -cp '%s' Master 2 'touch %s/$CONTAINER_ID'\n",
			hadoop.Java(t),
			hadoop.ClassPath(t, hadoop.V342, client.ConfDir()),
			dir,
		)
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		r := client.Run(t, hadoop.UnmanagedLauncher, "-cmd", script).OK(t)
		says(t, r.All, "registered", "finished")
		if ran, _ := filepath.Glob(dir + "/container_*"); len(ran) != 2 {
			t.Errorf("%d containers ran\n%s", len(ran), r.All)
		}
		c.ends(t, client, matches(t, r.All, applicationID), "FINISHED", "SUCCEEDED")
	}},
	{"uam_kill", func(t *testing.T, c *Cluster) {
		// The kill comes before its AM has registered.
		client := c.client(t)
		p := client.Start(t, hadoop.UnmanagedLauncher, "-cmd", "sleep 1000")
		p.WaitLine(t, "Launching AM with application attempt id")
		id := regexp.MustCompile(applicationID).FindString(p.Output())
		if r := c.report(t, client, id); r.State != "ACCEPTED" {
			t.Errorf("%s is %s", id, r.State)
		}
		client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t)
		c.ends(t, client, id, "KILLED", "KILLED")
	}},
	{"dshell_placement", func(t *testing.T, c *Cluster) {
		client, dir := c.client(t), t.TempDir()
		args := []string{
			"-placement_spec",
			"kit(2),NOTIN,NODE,kit",
			"-shell_command",
			fmt.Sprintf("touch %[1]s/$NM_HOST:$NM_PORT.$CONTAINER_ID.1; sleep 2; touch %[1]s/$NM_HOST:$NM_PORT.$CONTAINER_ID.2", dir),
		}
		if why, no := c.Without["dshell_placement"]; no {
			r := client.Run(t, hadoop.DistributedShell, shellArgs(t, 2, args...)...)
			if r.Code == 0 {
				t.Errorf("exit code 0 without the feature")
			}
			c.toldIn(t, client, r, why)
			return
		}
		apart(t, dir, runShell(t, c, client, 2, args...), c.OneNode)
	}},
	{"dshell_opportunistic", func(t *testing.T, c *Cluster) {
		client, dir := c.client(t), t.TempDir()
		// Each container reads from its node how it was started. The shell redirects the output of the last command.
		id := runShell(t, c, client, 2, "-container_type", "OPPORTUNISTIC", "-shell_command", fmt.Sprintf(
			"exec 3<>/dev/tcp/$NM_HOST/$NM_HTTP_PORT; "+
				"(echo GET /ws/v1/node/containers/$CONTAINER_ID HTTP/1.0; echo) >&3; cat <&3 >%s/$CONTAINER_ID; true", dir))
		ran := containersOf(t, dir, id)
		if len(ran) != 2 {
			t.Errorf("%d containers ran", len(ran))
		}
		for _, file := range ran {
			told, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			says(t, string(told), `"executionType":"OPPORTUNISTIC"`)
		}
	}},
}

// PromotesShell runs opportunistic containers that their AM promotes once they run. Each reads from its node how it
// runs until it is guaranteed. It returns their ids. The AM promotes opportunistic containers only, and logs each.
func PromotesShell(t *testing.T, c *Cluster) (ids []string) {
	t.Helper()
	client, dir := c.client(t), t.TempDir()
	id := runShell(t, c, client, 2, "-container_type", "OPPORTUNISTIC", "-enforce_execution_type",
		"-promote_opportunistic_after_start", "-shell_command", fmt.Sprintf(
			"while ! grep -q GUARANTEED %[1]s/$CONTAINER_ID; do exec 3<>/dev/tcp/$NM_HOST/$NM_HTTP_PORT; "+
				"(echo GET /ws/v1/node/containers/$CONTAINER_ID HTTP/1.0; echo) >&3; "+
				"cat <&3 >%[1]s/$CONTAINER_ID; sleep 0.3; done; true", dir))
	ran := containersOf(t, dir, id)
	if len(ran) != 2 {
		t.Errorf("%d containers ran", len(ran))
	}
	for _, file := range ran {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		says(t, string(doc), `"executionType":"GUARANTEED"`)
		ids = append(ids, filepath.Base(file))
	}
	if c.Conf["yarn.log-aggregation-enable"] != "true" {
		return ids
	}
	logs := ""
	until(t, "the AM's log", func() bool {
		logs = client.Run(t, hadoop.LogsCLI, "-applicationId", id).Stdout
		return strings.Contains(logs, "Promoting container")
	})
	for _, id := range ids {
		says(t, logs, "Promoting container "+id)
	}
	return ids
}

// toldIn fails unless the reason is in the client's output or in the application's diagnostics.
func (c *Cluster) toldIn(t *testing.T, client hadoop.Client, r hadoop.Result, why string) {
	t.Helper()
	text := r.All
	if id := regexp.MustCompile(applicationID).FindString(r.All); id != "" {
		text += c.report(t, client, id).Diagnostics
		text += client.Run(t, hadoop.LogsCLI, "-applicationId", id).Stdout
	}
	says(t, text, why)
}

// apart fails unless two containers ran on two nodes or, on a cluster of one-node members, one after the other. Each
// leaves files NODE.CONTAINER.1 and .2 at its begin and end.
func apart(t *testing.T, dir, id string, oneNode bool) {
	t.Helper()
	began := slices.DeleteFunc(containersOf(t, dir, id), func(f string) bool { return !strings.HasSuffix(f, ".1") })
	if len(began) != 2 {
		t.Fatalf("%d containers ran", len(began))
	}
	at := func(file string) time.Time {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	node := func(file string) string {
		name, _, _ := strings.Cut(filepath.Base(file), ".container")
		return name
	}
	if node(began[0]) != node(began[1]) {
		return
	}
	slices.SortFunc(began, func(a, b string) int { return at(a).Compare(at(b)) })
	end := at(strings.TrimSuffix(began[0], ".1") + ".2")
	if !oneNode || at(began[1]).Before(end) {
		t.Errorf("containers that must not meet ran on %s, the second %v after the end of the first",
			node(began[0]), at(began[1]).Sub(end))
	}
}
