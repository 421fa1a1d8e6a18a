// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// startSimulated starts a simulated node of a member, with one core for each 512 MB. Its containers run for an hour and
// start no process.
func startSimulated(t testing.TB, s *Subcluster, memoryMB int) {
	t.Helper()
	startSimulatedNodes(t, s, 1, memoryMB)
}

// startSimulatedNodes starts n such nodes.
func startSimulatedNodes(t testing.TB, s *Subcluster, n, memoryMB int) {
	t.Helper()
	start(t, "nm-"+s.ID, "nm", hadoop.Conf{
		"yarn.resourcemanager.resource-tracker.address": s.Addresses.Tracker,
		"creel.nm.simulate":                             strconv.Itoa(n),
		"creel.nm.simulate.memory-mb":                   strconv.Itoa(memoryMB),
		"creel.nm.simulate.vcores":                      strconv.Itoa(memoryMB / 512),
		"creel.nm.simulate.run-time":                    "1h",
	})
}

// startSimulation starts n of creel's ResourceManagers, each with a simulated node, and a router, over a Redis. All use
// the configuration conf.
func startSimulation(t testing.TB, n, memoryMB int, conf hadoop.Conf) *Federation {
	t.Helper()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	hosts := []string{"127.0.0.1"}
	for i := range n {
		hosts = append(hosts, "127.0.0."+strconv.Itoa(i+2))
	}
	f.proxyPort = commonPort(t, hosts)
	for i := range n {
		s := f.StartSubcluster(t, i+1, conf)
		f.Subclusters = append(f.Subclusters, s)
		startSimulated(t, s, memoryMB)
	}
	f.StartRouter(t, 1, conf)
	f.Await(t, n)
	AwaitActive(t, f.RouterAddresses[0].Web, n)
	return f
}

// applyTree writes the federation's queue tree.
func (f *Federation) applyTree(t testing.TB, document string) {
	t.Helper()
	file := filepath.Join(tempDir(t, "document"), "federation.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	var out []byte
	var err error
	if process.Poll(nil, func() bool { // the router may not have the nodes yet
		out, err = exec.Command(rm.Binary(t), "queue", "apply", "-f", file,
			"--server", "http://"+f.RouterAddresses[0].Web, "--user", hadoop.OSUser(t)).CombinedOutput()
		return err == nil
	}) != nil {
		t.Fatalf("the queue tree is refused: %v\n%s", err, out)
	}
}

// operate runs the command line as an administrator of the federation, on its first router.
func (f *Federation) operate(t testing.TB, args ...string) string {
	t.Helper()
	return f.Creel(t, append(args, "--server", "http://"+f.RouterAddresses[0].Web, "--user", hadoop.OSUser(t))...)
}

// submitSleep submits an application of one container, its AM, to a member or a router. It returns the application's
// id.
func submitSleep(t testing.TB, web, queue string, memoryMB int) string {
	t.Helper()
	return submitSleepOn(t, "", web, queue, memoryMB)
}

// submitSleepOn is submitSleep on nodes of a label, "" for those without a label.
func submitSleepOn(t testing.TB, label, web, queue string, memoryMB int) string {
	t.Helper()
	id, err := NewApplication(t, web)
	if err != nil {
		t.Fatal(err)
	}
	app := map[string]any{
		"application-id": id, "application-name": "load", "queue": queue, "application-type": "TEST",
		"max-app-attempts": 1, "resource": map[string]any{"memory": memoryMB, "vCores": 1},
		"am-container-spec": map[string]any{"commands": map[string]any{"command": "sleep 1000"}},
	}
	if label != "" {
		app["app-node-label-expression"], app["am-container-node-label-expression"] = label, label
	}
	if code, err := Call(t, http.MethodPost, web, "/ws/v1/cluster/apps", app, nil); err != nil {
		t.Fatal(code, err)
	}
	return id
}

// AwaitUserLimits waits until n members have their part of a user limit.
func AwaitUserLimits(t testing.TB, web string, n int) {
	t.Helper()
	err := process.Poll(nil, func() bool {
		var doc struct {
			UserLimits []struct{ Cap map[string]int } `json:"user_limits"`
		}
		_, err := Call(t, http.MethodGet, web, "/api/v1/rebalancer", nil, &doc)
		hold := 0
		for _, e := range doc.UserLimits {
			if e.Cap["memory-mb"] > 0 {
				hold++
			}
		}
		return err == nil && hold >= n
	})
	if err != nil {
		t.Fatalf("%d members do not hold their part of the user limit: %v", n, err)
	}
}

// queueNow is a queue below root in a ResourceManager's scheduler document.
type queueNow struct {
	QueueName        string
	Capacity         float64
	AbsoluteCapacity float64
	ResourcesUsed    struct{ Memory int }
	Planned          *struct { // only in creel's documents
		AbsoluteCapacity float64
		PlanVersion      int64
	}
	Capacities struct {
		QueueCapacitiesByPartition []struct {
			PartitionName string
			Capacity      float64
		}
	}
	Resources struct {
		ResourceUsagesByPartition []struct {
			PartitionName string
			Used          struct{ Memory int }
		}
	}
	Users struct {
		User []struct {
			Username      string
			ResourcesUsed struct{ Memory int }
		}
	}
}

// usedOn returns the use on nodes of a label, in MB.
func (q queueNow) usedOn(label string) int {
	for _, p := range q.Resources.ResourceUsagesByPartition {
		if p.PartitionName == label {
			return p.Used.Memory
		}
	}
	return 0
}

// capacityOn returns the capacity on nodes of a label, in percent.
func (q queueNow) capacityOn(label string) float64 {
	for _, p := range q.Capacities.QueueCapacitiesByPartition {
		if p.PartitionName == label {
			return p.Capacity
		}
	}
	return 0
}

// queuesOf returns the queues below root, as a member's ResourceManager reports them.
func queuesOf(t testing.TB, s *Subcluster) []queueNow {
	t.Helper()
	var doc struct {
		Scheduler struct {
			SchedulerInfo struct{ Queues struct{ Queue []queueNow } }
		}
	}
	if _, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/scheduler", nil, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Scheduler.SchedulerInfo.Queues.Queue
}

func queueOf(t testing.TB, s *Subcluster, name string) queueNow {
	t.Helper()
	for _, q := range queuesOf(t, s) {
		if q.QueueName == name {
			return q
		}
	}
	t.Fatalf("%s has no queue %s", s.ID, name)
	return queueNow{}
}

// queueUse returns the use of a queue below root in a member, in MB.
func queueUse(t testing.TB, s *Subcluster, queue string) int {
	t.Helper()
	return queueOf(t, s, queue).ResourcesUsed.Memory
}
