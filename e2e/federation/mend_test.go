// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// changeable has queues changed by calls, in either ResourceManager.
var changeable = hadoop.Conf{"yarn.scheduler.configuration.store.class": "memory"}

// A member with creel's ResourceManager and one with Hadoop's drift from the document, on nodes with and without a
// label. One command shows the drift, mends both, and reverts the mend. The values checked are those of both scheduler
// documents.
func TestDriftIsMendedInHadoopsResourceManagerToo(t *testing.T) {
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2"})
	conf := changeable.With(labelConf)
	ours := f.StartSubcluster(t, 1, conf)
	ours.Node = f.StartNode(t, "nm-ours", ours.address, ours.Addresses)
	theirs := hadoop.StartRM(t, hadoop.RM{Name: "hadoop-rm", Conf: conf.With(hadoop.Conf{
		"yarn.node-labels.fs-store.root-dir": "file://" + tempDir(t, "labels"),
	})})
	other := &Subcluster{ID: "sc-hadoop", Addresses: theirs.Addresses, address: "127.0.0.3"}
	other.Node = f.StartNode(t, "nm-hadoop", other.address, theirs.Addresses)
	f.Subclusters = []*Subcluster{ours, other}
	start(t, "agent", "agent", f.common(t, theirs.Addresses.Conf()), "--subcluster", other.ID)
	for _, s := range f.Subclusters {
		startSimulated(t, s, 4096)
	}
	f.StartRouter(t, 1, nil)
	f.Await(t, 4) // nodes
	for _, s := range f.Subclusters {
		labelNodes(t, s, 1)
	}
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 2)
	creel := func(args ...string) string {
		return f.Creel(t, append(args, "--server", "http://"+web, "--user", hadoop.OSUser(t))...)
	}
	// capacities of root's children, as each ResourceManager's scheduler document has them.
	capacities := func(s *Subcluster) (out map[string]float64) {
		t.Helper()
		out = map[string]float64{}
		for _, q := range queuesOf(t, s) {
			out[q.QueueName] = q.Capacity
		}
		return out
	}
	is := func(want string) {
		t.Helper()
		for _, s := range f.Subclusters {
			c := capacities(s)
			got := fmt.Sprintf("default %.0f other %.0f new %.0f, gpu %.0f %.0f", c["default"], c["other"], c["new"],
				queueOf(t, s, "default").capacityOn("gpu"), queueOf(t, s, "other").capacityOn("gpu"))
			if got != want {
				t.Errorf("queues of %s: %s, want %s", s.ID, got, want)
			}
		}
	}
	show := func() string { return creel("queue", "show", "--federation") }
	shows := func(what string, is func(string) bool) {
		t.Helper()
		if process.Poll(nil, func() bool { return is(show()) }) != nil {
			t.Fatalf("%s:\n%s", what, show())
		}
	}
	file := filepath.Join(tempDir(t, "document"), "federation.yaml")
	document := "queues:\n- {queue: root.default, guarantee: 50%, labels: {gpu: {guarantee: 40%}}}\n" +
		"- {queue: root.new, guarantee: 20%}\n- {queue: root.other, labels: {gpu: {guarantee: 60%}}}\n"
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("no queues yet", func(text string) bool { return strings.Count(text, "members") >= 3 })
	// A member registers before it publishes its queues.
	if process.Poll(nil, func() bool {
		var doc struct {
			Queues []struct {
				Queue, Label string
				Members      map[string]any
			}
		}
		_, err := Call(t, http.MethodGet, web, "/api/v1/queues", nil, &doc)
		known := map[string]int{}
		for _, q := range doc.Queues {
			known[q.Queue+" "+q.Label] = len(q.Members)
		}
		return err == nil && known["root.default "] == 2 && known["root.other "] == 2 && known["root.other gpu"] == 2
	}) != nil {
		t.Fatalf("the router does not know the queues of both:\n%s", creel("queue", "show", "--federation", "-o", "json"))
	}
	is("default 70 other 30 new 0, gpu 0 100")
	creel("queue", "apply", "-f", file)
	shows("nothing of the drift on nodes of the label", func(text string) bool {
		return strings.Contains(text, "members' files guarantee 0.0% of the federation, the document 40.0%")
	})
	t.Log(creel("queue", "mend", "--dry-run"))
	is("default 70 other 30 new 0, gpu 0 100")
	made := creel("queue", "mend")
	t.Log(made)
	is("default 50 other 30 new 20, gpu 40 60")
	shows("drift is left", func(text string) bool {
		return !strings.Contains(text, "without such") && !strings.Contains(text, "files guarantee")
	})
	t.Log(creel("queue", "mend", "--undo", regexp.MustCompile(`--undo (\d+)`).FindStringSubmatch(made)[1]))
	is("default 70 other 30 new 0, gpu 0 100")
}
