// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// labelConf has one queue be guaranteed the nodes of label gpu, and so its AMs too, and the other use
// them where it can.
var labelConf = hadoop.Conf{
	"yarn.scheduler.capacity.root.default.user-limit-factor":                           "100",
	"yarn.scheduler.capacity.root.other.user-limit-factor":                             "100",
	"yarn.node-labels.enabled":                                                         "true",
	"yarn.scheduler.capacity.maximum-am-resource-percent":                              "1",
	"yarn.scheduler.capacity.root.accessible-node-labels.gpu.capacity":                 "100",
	"yarn.scheduler.capacity.root.default.accessible-node-labels":                      "gpu",
	"yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity":         "0",
	"yarn.scheduler.capacity.root.other.accessible-node-labels":                        "gpu",
	"yarn.scheduler.capacity.root.other.accessible-node-labels.gpu.capacity":           "100",
	"yarn.scheduler.capacity.root.other.accessible-node-labels.gpu.maximum-capacity":   "100",
	"yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.maximum-capacity": "100",
}

// labelNodes sets the label gpu on a member's first n nodes.
func labelNodes(t testing.TB, s *Subcluster, n int) {
	t.Helper()
	var doc struct {
		Nodes struct{ Node []struct{ ID string } }
	}
	if process.Poll(nil, func() bool {
		_, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/nodes", nil, &doc)
		return err == nil && len(doc.Nodes.Node) >= n
	}) != nil {
		t.Fatalf("%s has not %d nodes: %+v", s.ID, n, doc)
	}
	if _, err := Call(t, http.MethodPost, s.Addresses.Web, "/ws/v1/cluster/add-node-labels", map[string]any{
		"nodeLabelInfo": []map[string]any{{"name": "gpu", "exclusivity": true}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(doc.Nodes.Node, func(a, b struct{ ID string }) int { return strings.Compare(a.ID, b.ID) })
	for _, node := range doc.Nodes.Node[:n] {
		if _, err := Call(t, http.MethodPost, s.Addresses.Web, "/ws/v1/cluster/replace-node-to-labels", map[string]any{
			"nodeToLabels": []map[string]any{{"nodeId": node.ID, "labels": []string{"gpu"}}},
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A queue's maximum on nodes of a label applies over three members in every sample, and so do the caps. Use reaches the
// allowed amount, also when it moves to another member. On nodes without the label the queue has no maximum. Plan, tree
// and why show the label.
func TestLabelMaximumHoldsOverFederation(t *testing.T) {
	const maximum, each, node = 12288, 512, 8192
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"})
	for i := range 3 {
		s := f.StartSubcluster(t, i+1, labelConf)
		f.Subclusters = append(f.Subclusters, s)
		startSimulatedNodes(t, s, 2, node)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 6) // nodes
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 3)
	for _, s := range f.Subclusters {
		labelNodes(t, s, 1)
	}
	f.startRebalancer(t)
	f.applyTree(t, fmt.Sprintf("queues:\n- {queue: root.other, labels: {gpu: {maximum: {memory: %d}}}}\n", maximum))
	if process.Poll(t.Context().Done(), func() bool { return len(escrowOf(t, web).Escrow) == 3 }) != nil {
		t.Fatalf("not every member asks for its part\n%s", f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
	}
	samples := 0
	comes := func(order []*Subcluster, want int) {
		t.Helper()
		began, sum, highest := time.Now(), 0, 0
		if process.Poll(nil, func() bool {
			sum = 0
			for _, s := range order { // members whose use falls come last
				sum += queueOf(t, s, "other").usedOn("gpu")
			}
			caps := 0
			for _, e := range escrowOf(t, web).Escrow {
				caps += e.Cap["memory-mb"]
			}
			if samples++; sum > maximum || caps > maximum {
				t.Fatalf("sample %d: %d MB are in use and %d MB held, of %d", samples, sum, caps, maximum)
			}
			highest = max(highest, sum)
			return sum >= want
		}) != nil {
			t.Fatalf("%d MB of %d are in use\n%s", sum, want, f.Creel(t, "rebalancer", "escrow", "--store", f.Store))
		}
		t.Logf("after %s: %d MB, in %d samples none above %d", time.Since(began).Round(100*time.Millisecond), sum, samples,
			highest)
	}
	one, two, three := f.Subclusters[0], f.Subclusters[1], f.Subclusters[2]
	var first []string
	for range 20 {
		first = append(first, submitSleepOn(t, "gpu", one.Addresses.Web, "other", each))
	}
	comes([]*Subcluster{one, two, three}, node) // all nodes of the label there
	var waits string                            // one that may begin, for AMs, and that the maximum holds back
	for i := range 20 {
		if id := submitSleepOn(t, "gpu", two.Addresses.Web, "other", each); i == 12 {
			waits = id
		}
	}
	comes([]*Subcluster{two, one, three}, maximum*95/100)
	for range node / each { // of nodes without the label it may have all
		submitSleep(t, one.Addresses.Web, "other", each)
	}
	if process.Poll(nil, func() bool { return queueOf(t, one, "other").usedOn("") == node }) != nil {
		t.Errorf("on nodes without the label it has %d MB of %d", queueOf(t, one, "other").usedOn(""), node)
	}
	var why struct{ Wait struct{ Text string } }
	_, err := Call(t, http.MethodGet, two.Addresses.Web, "/api/v1/apps/"+waits+"/why", nil, &why)
	if err != nil || !strings.Contains(why.Wait.Text, "On the nodes of label gpu: Queue root.other may use") {
		t.Errorf("why says %+v, %v", why, err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"queue", "show", "--federation"}, `root\.other +gpu +document`},
		{[]string{"rebalancer", "plan"}, `root\.other +gpu +`},
		{[]string{"rebalancer", "why", "root.other"}, `of its nodes of label gpu`},
		{[]string{"rebalancer", "why", "root.other"}, `of its maximum on nodes of label gpu`},
	} {
		f.says(t, c.says, c.args...)
	}
	// The first member's running applications end, and all that wait there; the third wants the share.
	for _, id := range first {
		KillApp(t, one.Addresses.Web, id)
	}
	for range 20 {
		submitSleepOn(t, "gpu", three.Addresses.Web, "other", each)
	}
	comes([]*Subcluster{three, two, one}, maximum*95/100)
}

// goesByPlanOf waits until queue lacks something by the plan of a label's nodes. It then submits to the router until
// the router chooses a home by that plan.
func goesByPlanOf(t *testing.T, f *Federation, label, queue string, memoryMB int) {
	t.Helper()
	f.says(t, `(?m)^root\.`+queue+` +`+label+` +[0-9.]+% +0\.0% +[1-9]`, "rebalancer", "plan")
	says, why := "by the plan the queue is entitled to more on nodes of label "+label+" there", ""
	const most = 100
	for range most {
		id := submitSleepOn(t, label, f.RouterAddresses[0].Web, queue, memoryMB)
		if why = f.operate(t, "app", "why", id); strings.Contains(why, says) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("no home of %d is chosen by the plan of label %s:\n%s", most, label, why)
}

// says waits until a command's output matches.
func (f *Federation) says(t testing.TB, pattern string, args ...string) {
	t.Helper()
	text := ""
	if process.Poll(nil, func() bool {
		text = f.operate(t, args...)
		return regexp.MustCompile(pattern).MatchString(text)
	}) != nil {
		t.Errorf("creel %s says nothing like %q:\n%s", strings.Join(args, " "), pattern, text)
	}
}

// A queue is guaranteed half of the nodes of a label in the federation. It recovers them in the one member with its
// work, whose file has no such guarantee. Capacities follow the plan there too. The router chooses homes by the queue's
// lack there.
func TestLabelGuaranteeFollowsPlan(t *testing.T) {
	const each, memory = 512, 8192
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	f := startSimulation(t, 2, memory, labelConf.With(hadoop.Conf{
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		prefix + "monitoring_interval":                  "200",
		prefix + "max_wait_before_kill":                 "4000", // until then it lacks
		prefix + "total_preemption_per_round":           "1",
		prefix + "natural_termination_factor":           "1",
	}))
	one, two := f.Subclusters[0], f.Subclusters[1]
	for _, s := range f.Subclusters {
		labelNodes(t, s, 1)
	}
	f.startRebalancer(t)
	for _, s := range []*Subcluster{one, two} {
		for range memory / each {
			submitSleepOn(t, "gpu", s.Addresses.Web, "other", each)
		}
	}
	if process.Poll(nil, func() bool {
		return queueOf(t, one, "other").usedOn("gpu")+queueOf(t, two, "other").usedOn("gpu") == 2*memory
	}) != nil {
		t.Fatal("the members are not full")
	}
	f.applyTree(t, "queues:\n- {queue: root.default, labels: {gpu: {guarantee: 50%}}}\n"+
		"- {queue: root.other, labels: {gpu: {guarantee: 50%}}}\n")
	began := time.Now()
	for range memory / each {
		submitSleepOn(t, "gpu", one.Addresses.Web, "default", each)
	}
	goesByPlanOf(t, f, "gpu", "default", each)
	const enough = memory * 85 / 100
	if process.Poll(nil, func() bool { return queueOf(t, one, "default").usedOn("gpu") >= enough }) != nil {
		t.Fatalf("it has %d of %d MB", queueOf(t, one, "default").usedOn("gpu"), memory)
	}
	t.Logf("%d of %d MB after %.1f s", queueOf(t, one, "default").usedOn("gpu"), memory, time.Since(began).Seconds())
	if n := metric(t, two.Addresses.Web, "creel_rm_preempted_containers_total"); n > 0 {
		t.Errorf("%v containers are taken back in the other member", n)
	}
	f.says(t, `root\.default is entitled to 50\.0% of its nodes of label gpu(.|\n)*sc-1 guarantees it memory `,
		"rebalancer", "why", "root.default")
	f.says(t, `(?m)^root\.default +gpu .*sc-1 memory `, "queue", "show", "--federation", "-o", "wide")
}
