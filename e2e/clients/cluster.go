// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// Cluster is a YARN cluster or a replacement for one. It has the queues of hadoop.Queues and at least two nodes of 4096
// MB and 8 vcores. The nodes run containers and the shuffle service.
type Cluster struct {
	Conf  hadoop.Conf // the addresses, and additional settings of its clients
	Web   string      // host:port of the REST API
	Nodes []string    // ids of its nodes
	Logs  string      // directory of aggregated logs: the nodes' yarn.nodemanager.remote-app-log-dir; "": none
	Login *Login      // of its user by Kerberos; nil: a bare name
	// Version of the command line and of the MapReduce and shell clients. The zero value is 3.4.2.
	Version hadoop.Version
	// OneNode reports that the nodes belong to different members, each with one node. Requests that need two
	// containers on one node then cannot be met.
	OneNode bool
	// Restarts reports that ResourceManagers are killed and restarted meanwhile. Then an application's end may be
	// reported late, after its home is back. A node may refuse a container that was granted but not started before its
	// ResourceManager died. That is Hadoop's limit. A MapReduce job then repeats its task; a shell counts the container
	// as failed and is run again.
	Restarts bool
	// Forgets reports that some ResourceManagers are Hadoop's. Such a ResourceManager loses a signal that it accepted
	// but its node has not received. It also refuses a signal before the node is back.
	Forgets bool
	// Without lists the cases whose feature the cluster lacks, each with a text that the client must print then. Only
	// dshell_placement uses the text; other cases are skipped.
	Without map[string]string
	// Only, if not empty, lists the cases to run.
	Only []string
}

// Case is one action of a user. Run fails the test unless the action works as on a YARN cluster.
type Case struct {
	Name string
	Run  func(t *testing.T, c *Cluster)
}

// atOnce is the number of cases that run together. They mostly wait for JVM starts and heartbeats.
const atOnce = 3

// messageCases lists the cases that check the message shown without the feature.
var messageCases = []string{"dshell_placement"}

// Run runs the cases against the cluster, a few at a time, and returns when all are over. It fails at once if Only or
// Without names an unknown case.
func Run(t *testing.T, c *Cluster) {
	t.Helper()
	if c.Logs != "" {
		c.Conf = c.Conf.With(hadoop.Conf{
			"yarn.log-aggregation-enable":         "true",
			"yarn.nodemanager.remote-app-log-dir": c.Logs,
		})
	}
	for _, name := range slices.Concat(c.Only, slices.Collect(maps.Keys(c.Without))) {
		if !slices.ContainsFunc(Cases(), func(k Case) bool { return k.Name == name }) {
			t.Fatalf("there is no case %s", name)
		}
	}
	places := make(chan struct{}, atOnce)
	t.Run("cases", func(t *testing.T) {
		for _, k := range Cases() {
			if _, no := c.Without[k.Name]; no && !slices.Contains(messageCases, k.Name) {
				continue
			}
			if len(c.Only) > 0 && !slices.Contains(c.Only, k.Name) {
				continue
			}
			t.Run(k.Name, func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				k.Run(t, c)
			})
		}
	})
}

// Cases returns all cases, roughly in the order in which a new user tries them.
func Cases() []Case {
	return slices.Concat(commandLine, rest, shell, mapreduce, tez, flink, skein, spark)
}

// Reads returns the named cases, or all, that read the state of the whole cluster. Work returns the others: they
// start an application and wait for its end.
func Reads(only []string) []string { return named(only, slices.Concat(commandLine, rest[:1])) }

// Work: see Reads.
func Work(only []string) []string {
	return named(only, slices.Concat(rest[1:], shell, mapreduce, tez, flink, skein, spark))
}

func named(only []string, of []Case) (names []string) {
	for _, k := range of {
		if len(only) == 0 || slices.Contains(only, k.Name) {
			names = append(names, k.Name)
		}
	}
	return names
}

// client returns a new client machine of the cluster.
func (c *Cluster) client(t *testing.T, more ...hadoop.Conf) hadoop.Client {
	t.Helper()
	return hadoop.Client{Version: c.Version, Conf: c.Conf.With(more...), Env: c.Login.environment()}.Setup(t)
}

// says fails unless the text contains all wanted parts.
func says(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// matches fails unless the pattern is in the text. It returns the first group of the match, or the whole match.
func matches(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no match for %s in:\n%s", pattern, text)
	}
	return m[len(m)-1]
}

const (
	applicationID = `application_\d+_\d+`
	containerID   = `container_(?:e\d+_)?\d+_\d+_\d+_\d+`
)

// report is YarnDriver's report of an application.
type report struct {
	ID, Name, User, Queue, Type, State, Final, Diagnostics, Tracking string
	OK                                                               bool
	Class, Message                                                   string
}

// report reads an application's report with Hadoop's client library.
func (c *Cluster) report(t *testing.T, client hadoop.Client, id string) report {
	t.Helper()
	all := hadoop.Lines[report](t, client.Run(t, "YarnDriver", "report", id).OK(t))
	if len(all) != 1 || !all[0].OK {
		t.Fatalf("report of %s: %+v", id, all)
	}
	return all[0]
}

// ends fails unless the application has ended in this state and final status.
func (c *Cluster) ends(t *testing.T, client hadoop.Client, id, state, final string) {
	t.Helper()
	r := c.report(t, client, id)
	if c.Restarts && r.State != state {
		until(t, "the end of "+id, func() bool {
			r = c.report(t, client, id)
			return r.State == state
		})
	}
	if r.State != state || r.Final != final {
		t.Errorf("%s is %s, %s; want %s, %s: %s", id, r.State, r.Final, state, final, r.Diagnostics)
	}
}

// refused matches a node's response to a start that an earlier instance of its ResourceManager granted.
const refused = "rejected as it is allocated by a previous RM"

// missed is the message of a MapReduce client that requested the job's end after the AM had gone. That can happen
// around a restart, because the kit has no history server.
const missed = "FinalApplicationStatus=SUCCEEDED. Redirecting to job history server"

// ran runs a client that must succeed. If it fails, the ends of its application's container logs are in the test's log.
func (c *Cluster) ran(t *testing.T, client hadoop.Client, class string, args ...string) hadoop.Result {
	t.Helper()
	r := client.Run(t, class, args...)
	if id := regexp.MustCompile(`application_\d+_\d+|job_\d+_\d+`).FindString(r.All); id != "" && r.Code != 0 {
		id = strings.Replace(id, "job_", "application_", 1)
		until(t, "the logs of "+id, func() bool { return c.report(t, client, id).State != "RUNNING" })
		logs := client.Run(t, hadoop.LogsCLI, "-applicationId", id).Stdout
		if c.Restarts && strings.Contains(logs, refused) {
			t.Logf("%s was granted containers that were not begun before a ResourceManager died: again", id)
			return c.ran(t, client, class, args...)
		}
		if c.Restarts && strings.Contains(r.All, missed) {
			c.ends(t, client, id, "FINISHED", "SUCCEEDED")
			t.Logf("%s ended well, and its client did not see its end: again, for what it prints", id)
			if err := os.RemoveAll(filepath.Join(client.Dir(), "out")); err != nil {
				t.Fatal(err)
			}
			return c.ran(t, client, class, args...)
		}
		t.Logf("containers of %s:\n%s", id, logs[max(0, len(logs)-60000):])
	}
	return r.OK(t)
}

// get reads a JSON document of the REST API. It retries if a ResourceManager killed meanwhile was to serve it.
func (c *Cluster) get(t *testing.T, path string) (v map[string]any) {
	t.Helper()
	try := func() error { return c.try(path, &v) }
	if c.Login != nil {
		try = func() error { return c.getByTicket(t, path, &v) }
	}
	err := try()
	if err != nil && c.Restarts {
		until(t, "GET "+path, func() bool {
			err = try()
			return err == nil
		})
	}
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return v
}

func (c *Cluster) try(path string, v *map[string]any) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+c.Web+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s\n%s", resp.Status, body)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w\n%s", err, body)
	}
	return nil
}

// at returns a value of a JSON document by its path. A missing step fails the test.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for i, step := range path {
		m, ok := v.(map[string]any)
		if ok {
			v, ok = m[step]
		}
		if !ok {
			t.Fatalf("no %s in %s", strings.Join(path[:i+1], "."), short(v))
		}
	}
	return v
}

func short(v any) string {
	s := fmt.Sprint(v)
	return s[:min(len(s), 500)]
}

// until checks cond until it holds. The deadline is process.Guard's.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if err := process.Poll(nil, cond); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
