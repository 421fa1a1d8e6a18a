// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// creel's ResourceManager and Hadoop's are behind one router. Hadoop's runs unmodified: creel agent registers it.
// Policies are written by an administrator's means, one queue for each.
func TestMixed(t *testing.T) {
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	const oneEach = `{"home":{"policy":"weighted","weights":{%q:1}},"split":{"policy":"locality","weights":{"sc-1":1,"sc-hadoop":1},"headroomAlpha":0}}`
	for queue, home := range map[string]string{"root.default": "sc-1", "root.other": "sc-hadoop"} {
		f.Creel(t, "policy", "set", queue, fmt.Sprintf(oneEach, home), "--store", f.Store)
	}
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2"})
	ours := f.StartSubcluster(t, 1, nil)
	ours.Node = f.StartNode(t, "nm-ours", ours.address, ours.Addresses)
	state := tempDir(t, "rmstate")
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: hadoop.Conf{
		// Container ids must differ over the federation, and Hadoop heeds the
		// epoch only where it recovers.
		"yarn.resourcemanager.epoch":                  "2000",
		"yarn.resourcemanager.recovery.enabled":       "true",
		"yarn.resourcemanager.store.class":            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri":     "file://" + state,
		"yarn.am.liveness-monitor.expiry-interval-ms": "900000",
	}})
	other := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses, address: "127.0.0.3"}
	other.Node = f.StartNode(t, "nm-hadoop", other.address, theirs.Addresses)
	f.Subclusters = []*Subcluster{ours, other}
	agent := start(t, "agent", "agent", f.common(t, theirs.Addresses.Conf()), "--subcluster", other.ID)
	f.StartRouter(t, 1, nil)
	f.Await(t, 2)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 2)

	t.Run("submission_report_kill", func(t *testing.T) {
		for queue, home := range map[string]*Subcluster{"default": ours, "other": other} {
			id, err := NewApplication(t, web)
			if err != nil {
				t.Fatal(err)
			}
			if err := Submit(t, web, id, queue); err != nil {
				t.Fatal(err)
			}
			if at := f.Home(t, id); at != home {
				t.Fatalf("%s of queue %s lives at %s, not at %s", id, queue, at.ID, home.ID)
			}
			AwaitState(t, web, id, "ACCEPTED") // its AM sleeps and never registers
			for _, s := range f.Subclusters {
				_, code, err := Report(t, s.Addresses.Web, id)
				if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[s == home]; code != want {
					t.Errorf("%s answers %d for %s, want %d: %v", s.ID, code, id, want, err)
				}
			}
			client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
			if out := client.Run(t, hadoop.ApplicationCLI, "application", "-status", id).
				OK(t).
				Stdout; !strings.Contains(out, "State : ACCEPTED") ||
				!strings.Contains(out, "Queue : root."+queue) {
				t.Errorf("status of %s:\n%s", id, out)
			}
			client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t)
			AwaitState(t, home.Addresses.Web, id, "KILLED")
			AwaitState(t, web, id, "KILLED")
		}
	})

	// An AM at home with us, half of its containers in Hadoop's cluster.
	t.Run("hadoop_as_second", func(t *testing.T) {
		dir := t.TempDir()
		id, shell := f.shell(t, 4, 128, "touch "+dir+"/$NM_HOST.$CONTAINER_ID")
		if err := shell.Exit(); err != nil {
			t.Fatalf("the shell: %v\n%s", err, shell.Tail(60))
		}
		if at := f.Home(t, id); at != ours {
			t.Errorf("%s lives at %s", id, at.ID)
		}
		ran := map[string]int{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			host, _, _ := strings.Cut(e.Name(), ".container")
			ran[host]++
		}
		if ran[ours.address] != 2 || ran[other.address] != 2 {
			t.Errorf("containers ran on %v, want 2 on each", ran)
		}
		// The UAM in Hadoop's cluster ended with the application.
		var uam App
		if process.Poll(nil, func() bool {
			uam, _, err = Report(t, other.Addresses.Web, id)
			return err == nil && uam.State == "FINISHED"
		}) != nil {
			t.Errorf("the UAM: %+v, %v", uam, err)
		}
	})

	// An AM at home with Hadoop has a token that no key of creel's has signed. It registers there through creel's
	// proxy, and half of its maps run in creel's cluster.
	t.Run("hadoop_as_home", func(t *testing.T) {
		figures := process.FreeAddress(t, "127.0.0.1")
		f.StartProxy(t, "proxy-hadoop", other.address, hadoop.Conf{"creel.health.address": figures})
		hosts := slices.Concat(slices.Repeat([]string{ours.address}, 5), slices.Repeat([]string{other.address}, 5))
		client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
		run := client.Run(t, "PlacedJob", append([]string{"other", "1500"}, hosts...)...).OK(t)
		var local, all int
		if at := strings.Index(run.Stdout, "ran on their hosts: "); at < 0 {
			t.Fatalf("the job says nothing:\n%s", run.Stdout)
		} else if _, err := fmt.Sscanf(run.Stdout[at:], "ran on their hosts: %d of %d", &local, &all); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d maps ran where their data is", local, all)
		if all != len(hosts) || local < 9 {
			t.Errorf("%d of %d maps ran where their data is, want 9 of 10", local, all)
		}
		id := regexp.MustCompile(`application_\d+_\d+`).FindString(run.All)
		if at := f.Home(t, id); at != other {
			t.Errorf("%q lives at %s", id, at.ID)
		}
		AwaitState(t, other.Addresses.Web, id, "FINISHED")
		if home, _, err := Report(t, other.Addresses.Web, id); err != nil || home.FinalStatus != "SUCCEEDED" {
			t.Errorf("its home reports %+v, %v", home, err)
		}
		if n := metric(t, figures, "creel_proxy_relayed_logins_total"); n < 1 {
			t.Errorf("%v logins were relayed, want at least one", n)
		}
	})

	// The same with the file in which Hadoop's ResourceManager keeps its keys: the proxy knows the AM
	// by itself. The ResourceManager and the proxy are killed; the AM logs in at the next proxy while
	// there is no ResourceManager, and ends its work when it is back.
	t.Run("hadoop_as_home_by_its_key_file", func(t *testing.T) {
		figures := process.FreeAddress(t, "127.0.0.1")
		proxy := f.StartProxy(t, "proxy-keys", other.address, hadoop.Conf{
			"creel.health.address": figures,
			"creel.proxy.hadoop-key-files": "sc-hadoop=" +
				filepath.Join(state, "FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode"),
		})
		dir := t.TempDir()
		id, shell := f.shell(t, 4, 128,
			"touch "+dir+"/$NM_HOST.$CONTAINER_ID; while [ ! -e "+dir+"/end ]; do sleep 0.2; done", "-queue", "other")
		on := func(at *Subcluster) int {
			names, err := filepath.Glob(dir + "/" + at.address + ".container_*")
			if err != nil {
				t.Fatal(err)
			}
			return len(names)
		}
		shell.Await(t, "four containers", func() bool { return on(ours)+on(other) == 4 })
		if at := f.Home(t, id); at != other || on(ours) == 0 {
			t.Errorf("%s lives at %s, and %d of its containers run with us", id, at.ID, on(ours))
		}
		heard := func() float64 { return metric(t, figures, "creel_proxy_allocates_total") }
		relayed := func() float64 { return metric(t, figures, "creel_proxy_relayed_logins_total") }
		if heard() < 1 || relayed() != 0 {
			t.Errorf("%v allocates came through the proxy, %v logins were relayed", heard(), relayed())
		}
		theirs.Kill()
		proxy.Restart(t)
		shell.Await(t, "the AM's calls, with its home away", func() bool { return heard() >= 1 })
		theirs.Restart(t)
		if err := os.WriteFile(dir+"/end", nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := shell.Exit(); err != nil {
			t.Fatalf("the shell: %v\n%s", err, shell.Tail(60))
		}
		AwaitState(t, other.Addresses.Web, id, "FINISHED")
		if relayed() != 0 {
			t.Errorf("%v logins were relayed", relayed())
		}
		// The members and the node are as before, for the next cases.
		AwaitActive(t, web, 2)
		f.Await(t, 2)
	})

	// Killed by its user in the middle: nothing is left in Hadoop's cluster.
	t.Run("kill_reaches_the_twin", func(t *testing.T) {
		dir := t.TempDir()
		id, shell := f.shell(t, 4, 128, "touch "+dir+"/$NM_HOST.$CONTAINER_ID; exec sleep 1000")
		shell.Await(t, "the containers", func() bool {
			running, err := os.ReadDir(dir)
			return err == nil && len(running) == 4
		})
		client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
		client.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t)
		for _, s := range f.Subclusters {
			AwaitState(t, s.Addresses.Web, id, "KILLED")
		}
	})

	// MapReduce over two sites: home is creel's cluster, and half of the data, or all, is on the node of Hadoop's
	// cluster. Its agent published that node.
	t.Run("maps_run_where_their_data_is", func(t *testing.T) {
		for _, hosts := range [][]string{
			slices.Concat(slices.Repeat([]string{ours.address}, 5), slices.Repeat([]string{other.address}, 5)),
			slices.Repeat([]string{other.address}, 10),
		} {
			client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
			out := client.Run(t, "PlacedJob", append([]string{"default", "1500"}, hosts...)...).OK(t).Stdout
			var local, all int
			if at := strings.Index(out, "ran on their hosts: "); at < 0 {
				t.Fatalf("the job says nothing:\n%s", out)
			} else if _, err := fmt.Sscanf(out[at:], "ran on their hosts: %d of %d", &local, &all); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d maps ran where their data is", local, all)
			if all != len(hosts) || local < 9 {
				t.Errorf("%d of %d maps ran where their data is, want 9 of 10", local, all)
			}
		}
		// Policies know the queues of Hadoop's cluster too.
		view := f.Creel(t, "policy", "view", "--server", "http://"+web)
		if n := strings.Count(view, `root.other`); n < 2 {
			t.Errorf("policies see root.other in %d members, not in 2:\n%s", n, view)
		}
	})

	// The UAM in Hadoop's cluster is killed there. Hadoop accepts its id only once: the next has an id of its own,
	// and is the same application in creel's answers.
	t.Run("twin_made_again", func(t *testing.T) {
		// Home first, so that asks beyond its free capacity go elsewhere at once.
		f.Creel(t, "policy", "set", "root.default", `{"home":{"policy":"weighted","weights":{"sc-1":1}}}`, "--store", f.Store)
		dir := t.TempDir()
		id, shell := f.shell(t, 6, 1024, // of which at most three fit at home
			"touch "+dir+"/$NM_HOST.$CONTAINER_ID; while [ ! -e "+dir+"/end ]; do sleep 0.2; done")
		started := func(at *Subcluster, containersOf string) int {
			names, err := filepath.Glob(dir + "/" + at.address + ".container_*" + containersOf + "_*")
			if err != nil {
				t.Fatal(err)
			}
			return len(names)
		}
		number := strings.TrimPrefix(id, "application")
		shell.Await(t, "six containers", func() bool { return started(ours, number)+started(other, number) == 6 })
		killed := started(other, number)
		there := hadoop.Client{Conf: theirs.Addresses.Conf()}.Setup(t)
		there.Run(t, hadoop.ApplicationCLI, "application", "-kill", id).OK(t)
		shell.Await(t, "six containers again", func() bool { return started(ours, number)+started(other, "") == 6+killed })
		again := started(other, "") - killed
		if n := started(other, number); n != killed || again == 0 {
			t.Fatalf("%d containers have the application's id in Hadoop's cluster, want those %d that were killed; %d others",
				n, killed, again)
		}
		t.Logf("%d containers were killed, %d are under an id of their UAM's own", killed, again)
		why := f.operate(t, "app", "why", id)
		own := regexp.MustCompile(`sc-hadoop: there it is (application_\d+_\d+)`).FindStringSubmatch(why)
		if own == nil {
			t.Fatalf("why does not tell the id that it has there:\n%s", why)
		}
		var list struct{ Apps struct{ App []App } }
		if _, err := Call(t, http.MethodGet, web, "/ws/v1/cluster/apps", nil, &list); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list.Apps.App, func(a App) bool {
			return a.ID == id && a.State == "RUNNING" && a.Containers == 7
		}) || slices.ContainsFunc(list.Apps.App, func(a App) bool { return a.ID == own[1] }) {
			t.Errorf("%s has 7 containers, of which %d are of %s; the list tells %+v", id, again, own[1], list.Apps.App)
		}
		client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
		if out := client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t).Stdout; strings.Contains(out, own[1]) ||
			!strings.Contains(out, id) {
			t.Errorf("yarn application -list shows the UAM %s, or not %s:\n%s", own[1], id, out)
		}
		// The killed UAM is not shown as the application; the containers of the current one are the application's.
		if out := client.Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "KILLED").OK(t).Stdout; strings.Contains(out, id) {
			t.Errorf("%s runs, and yarn application -list has it among those that were killed:\n%s", id, out)
		}
		var one struct{ App App }
		if _, err := Call(t, http.MethodGet, web, "/ws/v1/cluster/apps/"+id, nil, &one); err != nil ||
			one.App.ID != id || one.App.Containers != 7 {
			t.Errorf("the report of %s does not say that it has 7 containers: %+v, %v", id, one.App, err)
		}
		attempt := strings.Replace(id, "application", "appattempt", 1) + "_000001"
		out := client.Run(t, hadoop.ApplicationCLI, "container", "-list", attempt).OK(t).Stdout
		// The epoch is not named: the ResourceManager was restarted before.
		under := regexp.MustCompile(`^container_e\d+` + strings.TrimPrefix(own[1], "application") + "_")
		listed := slices.DeleteFunc(strings.Fields(out), func(word string) bool { return !under.MatchString(word) })
		if len(listed) != again || !strings.Contains(out, "Total number of containers :7") {
			t.Errorf("yarn container -list does not show 7, of which %d are of %s:\n%s", again, own[1], out)
		}
		client.Run(t, hadoop.ApplicationCLI, "application", "-updatePriority", "3", "-appId", id).OK(t)
		if uam, _, err := Report(t, other.Addresses.Web, own[1]); err != nil || uam.Priority != 3 {
			t.Errorf("the UAM after a change of the priority: %+v, %v", uam, err)
		}
		if err := os.WriteFile(dir+"/end", nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := shell.Exit(); err != nil {
			t.Fatalf("the shell: %v\n%s", err, shell.Tail(60))
		}
		AwaitState(t, other.Addresses.Web, own[1], "FINISHED")
	})

	// The agent gone, its member is no longer asked; back, it is.
	t.Run("agent_restarted", func(t *testing.T) {
		agent.Kill()
		AwaitActive(t, web, 1)
		agent.Restart(t)
		AwaitActive(t, web, 2)
	})
}

// shell starts a distributed shell of n small containers and returns its application after the submission. more are
// arguments of the shell.
func (f *Federation) shell(t testing.TB, n, memoryMB int, command string, more ...string) (string, *process.Process) {
	t.Helper()
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	p := hadoop.Client{
		Conf: f.ClientConf(0),
	}.Start(t, hadoop.DistributedShell, append([]string{
		"-jar", jar,
		"-num_containers", strconv.Itoa(n),
		"-master_memory", "256",
		"-container_memory", strconv.Itoa(memoryMB),
		"-timeout", "170000",
		"-shell_command", command,
	}, more...)...)
	p.WaitLine(t, "Submitted application application_")
	return regexp.MustCompile(`application_\d+_\d+`).FindString(p.Output()), p
}
