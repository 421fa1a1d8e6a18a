// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"log/slog"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

const capacity = "yarn.scheduler.capacity."

// mutable lets calls change the queues of start's configuration.
func mutable(s *server.Config) {
	s.Mutable = &server.MutableQueues{
		History: 3,
		File: func() (map[string]string, error) {
			return map[string]string{
				capacity + "root.queues":                 "default,other",
				capacity + "root.default.capacity":       "70",
				capacity + "root.other.capacity":         "30",
				capacity + "root.other.maximum-capacity": "100",
				capacity + "maximum-am-resource-percent": "1",
				capacity + "root.acl_administer_queue":   " ",
			}, nil
		},
		Parse: func(values map[string]string) (server.Queues, error) {
			var props []queueconf.Property
			for _, name := range slices.Sorted(maps.Keys(values)) {
				props = append(props, queueconf.Property{Name: name, Value: values[name]})
			}
			q, err := queueconf.ReadCapacity(props, queueconf.Options{MaxAllocation: s.Machine.MaxAllocation})
			return server.Queues{Spec: q.Queues, Placement: q.Placement}, err
		},
	}
}

func update(queue, key, value string) string {
	return `{"update-queue":[{"queue-name":"` + queue + `","params":{"entry":[{"key":"` + key + `","value":"` + value + `"}]}}]}`
}

// try makes a call and checks the response.
func (c *cluster) try(method, path, body string, status int, says string) {
	c.t.Helper()
	if r := c.call(method, path, body); r.status != status || !strings.Contains(r.body, says) {
		c.t.Errorf("%s %s %s: %d %s, want %d with %q", method, path, body, r.status, r.body, status, says)
	}
}

// Queues are changed, validated, undone and formatted by calls, in the forms that clients
// of Hadoop know; a change is in force at once, and one that is wrong leaves everything as
// it was.
func TestQueuesAreChangedOverREST(t *testing.T) {
	var log bytes.Buffer
	c := start(t, func(s *server.Config) {
		mutable(s)
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	const conf, root = base + "/scheduler-conf", "?user.name=root"
	share := func(i int) float64 {
		return math.Round(c.get(base+"/scheduler", "scheduler", "schedulerInfo", "queues", "queue", i, "capacity").(float64))
	}
	value := func(name string) any {
		for _, p := range c.get(conf+root, "property").([]any) {
			if p := p.(map[string]any); p["name"] == capacity+name {
				return p["value"]
			}
		}
		return nil
	}
	version := func(want string) {
		t.Helper()
		if got := c.get(conf+"/version"+root, "versionID"); got != want {
			t.Errorf("version %v, want %s", got, want)
		}
	}
	const applied = "Configuration change successfully applied."
	version("1")
	if got := value("root.acl_administer_queue"); got != " " {
		t.Errorf("an ACL of nobody reads %q", got)
	}

	// Several forms of one document.
	c.try("PUT", conf+root, `{"update-queue":[{"queue-name":"root.default","params":{"entry":[{"key":"capacity","value":"60"}]}},
		{"queue-name":"root.other","params":{"entry":{"key":"capacity","value":40}}}],"add-queue":null,"remove-queue":null}`, 200, applied)
	if share(0) != 60 || share(1) != 40 || value("root.other.capacity") != "40" {
		t.Errorf("after a change: %v %v, %v", share(0), share(1), value("root.other.capacity"))
	}
	c.try("PUT", conf+root, `<sched-conf><add-queue><queue-name>root.new</queue-name><params><entry><key>capacity</key>`+
		`<value>10</value></entry></params></add-queue><update-queue><queue-name>root.other</queue-name><params><entry>`+
		`<key>capacity</key><value>30</value></entry></params></update-queue></sched-conf>`, 200, applied)
	version("3")
	if share(2) != 10 {
		t.Errorf("the new queue has %v percent", share(2))
	}

	// A change with any error is rejected as a whole.
	before := c.call("GET", conf+root, "").body
	c.try("PUT", conf+root, update("root.default", "capacity", "61"), 400, "Failed to re-init queues : ")
	c.try("PUT", conf+root, `{"remove-queue":"root.nope"}`, 400, "Queue root.nope not found")
	c.try("PUT", conf+root, `{"remove-queue":["root.new"],`+update("root.other", "capacity", "40")[1:], 400, "not stopped")
	c.try("PUT", conf+"?user.name=eve", update("root.default", "state", "STOPPED"), 400,
		"User is not admin of all modified queues.")
	c.try("GET", conf+"/format?user.name=eve", "", 400, "User is not admin")
	c.try("PUT", conf+root, "{", 400, "UnmarshalException")
	c.try("PUT", conf+root, `{"update-queue":{"queue-name":"root.default","params":{"entry":{"key":"x","value":{}}}}}`, 400, "where a text is expected")
	c.try("POST", conf+"/validate"+root, update("root.default", "capacity", "61"), 400,
		"CapacityScheduler configuration validation failed:java.io.IOException: Failed to re-init queues : ")
	c.try("POST", conf+"/validate"+root, update("root.default", "user-limit-factor", "2"), 200,
		`{"name":"yarn.scheduler.capacity.root.default.user-limit-factor","value":"2"}`)
	if after := c.call("GET", conf+root, "").body; after != before || share(0) != 60 {
		t.Errorf("after refusals: %s, was %s", after, before)
	}
	version("3")

	// Rules that choose a queue are taken over too.
	c.try("PUT", conf+root, `{"global-updates":{"entry":{"key":"yarn.scheduler.capacity.queue-mappings","value":"u:alice:other"}}}`, 200, applied)
	app := c.submit("alice", "mapped", "")
	if got := c.get(base+"/apps/"+app, "app", "queue"); got != "other" && got != "root.other" {
		t.Errorf("alice's application is in %v", got)
	}
	// A queue that is in use is not taken away, not even by going back to the files.
	c.try("PUT", conf+root, update("root.new", "state", "STOPPED"), 200, applied)
	c.try("PUT", conf+root, `{"remove-queue":"root.new",`+update("root.other", "capacity", "40")[1:], 200, applied)

	// The last three changes are remembered; a change whose keys have changed again is not undone.
	changes := at(t, c.call("GET", "/api/v1/scheduler-conf/changes"+root, "").body, "changes").([]any)
	if len(changes) != 3 || changes[0].(map[string]any)["version"].(float64) != 4 || changes[2].(map[string]any)["user"] != "root" {
		t.Errorf("changes: %v", changes)
	}
	undo := func(version string) string { return "/api/v1/scheduler-conf/changes/" + version + "/undo" + root }
	c.try("POST", undo("5"), "", 400, "has been changed again since")
	c.try("POST", undo("2"), "", 400, "no change has version 2")
	c.try("POST", undo("x"), "", 400, "is not a version")
	c.try("POST", undo("6"), "", 200, "undone")
	if share(2) != 10 {
		t.Errorf("the queue that was removed is back with %v percent", share(2))
	}
	version("7")

	c.try("GET", conf+"/format"+root, "", 200, "Configuration under store successfully formatted.")
	version("1")
	if share(0) != 70 || value("queue-mappings") != nil {
		t.Errorf("after a format: %v percent, mappings %v", share(0), value("queue-mappings"))
	}
	c.try("POST", undo("1"), "", 200, "undone")
	if share(0) != 60 {
		t.Errorf("a format that was undone: %v percent", share(0))
	}
	c.try("GET", conf+"/format"+root, "", 200, "formatted")

	if err := c.s.RefreshQueues(t.Context()); err == nil || !strings.Contains(err.Error(),
		"Scheduler configuration is mutable. refreshQueues is not allowed in this scenario.") {
		t.Errorf("refreshQueues: %v", err)
	}
	for _, line := range []string{
		`operation="scheduler-conf update" target="update root.default capacity=60; update root.other capacity=40" result=success`,
		`operation="scheduler-conf undo" target="version 6" result=success`,
		`user=eve from=127\.0\.0\.1:\d+ operation="scheduler-conf format" result=failure`,
	} {
		if !regexp.MustCompile(line).MatchString(log.String()) {
			t.Errorf("no audit line has %s", line)
		}
	}
}

// With the queue admin policy, administrators of a queue may change it and queues to be created below it, and no
// more.
func TestAdministratorsOfAQueueChangeIt(t *testing.T) {
	c := start(t, func(s *server.Config) {
		mutable(s)
		s.Mutable.QueueAdmins = true
		s.Machine.Queues.Root.Admin = queues.ACL{}
		s.Machine.Queues.Root.Children[1].Admin = queues.ACL{Users: []string{"bob"}}
	})
	const conf, applied, not = base + "/scheduler-conf?user.name=", "successfully applied", "User is not admin of all modified queues."
	add := `{"add-queue":[{"queue-name":"root.other.x","params":{"entry":{"key":"capacity","value":"100"}}}]}`
	for _, user := range []string{"carol", "dr.who"} {
		c.try("PUT", conf+user, update("root.other", "user-limit-factor", "2"), 400, not)
		c.try("PUT", conf+user, add, 400, not)
	}
	c.try("PUT", conf+"bob", update("root.default", "user-limit-factor", "2"), 400, not)
	c.try("PUT", conf+"bob", `{"global-updates":{"entry":{"key":"yarn.scheduler.capacity.maximum-applications","value":"9"}}}`, 400, not)
	c.try("GET", base+"/scheduler-conf/format?user.name=bob", "", 400, not)
	c.try("PUT", conf+"bob", `{"update-queue":{"queue-name":"root.other","params":{"entry":[{"key":"acl_administer_queue","value":"bob"}]}}}`, 200, applied)
	c.try("PUT", conf+"bob", add, 200, applied)
}

// With ACLs on only the cluster's administrators may read the configuration. If the queues come from files, the
// response says so.
func TestTheQueuesConfigurationIsForAdministrators(t *testing.T) {
	c := start(t, func(s *server.Config) { mutable(s); s.ACLs = true })
	files := start(t, func(s *server.Config) { s.ACLs = true })
	for _, call := range []struct{ method, path, body, off string }{
		{"GET", base + "/scheduler-conf", "", "is not an instance of MutableConfScheduler"},
		{"PUT", base + "/scheduler-conf", "{}", "Configuration change only supported by mutable configuration store."},
		{"POST", base + "/scheduler-conf/validate", "{}", "Configuration change validation only supported by MutableConfScheduler."},
		{"GET", base + "/scheduler-conf/version", "", "Configuration Version only supported by MutableConfScheduler."},
		{"GET", base + "/scheduler-conf/format", "", "Scheduler Configuration format only supported by MutableConfScheduler"},
		{"GET", "/api/v1/scheduler-conf/changes", "", "the queues come from files"},
		{"POST", "/api/v1/scheduler-conf/changes/1/undo", "", "there is nothing to undo"},
	} {
		c.try(call.method, call.path+"?user.name=eve", call.body, 403, "java.lang.Exception: Only admins can carry out this operation.")
		files.try(call.method, call.path+"?user.name=root", call.body, 400, call.off)
	}
}

// Changes by calls are in force after a restart, from the first moment, and can still be undone. They are not in
// force if another store is configured.
func TestQueuesThatCallsChangedOutliveARestart(t *testing.T) {
	dir := t.TempDir()
	const conf, root = base + "/scheduler-conf", "?user.name=root"
	share := func(c *cluster) float64 {
		return math.Round(c.get(base+"/scheduler", "scheduler", "schedulerInfo", "queues", "queue", 0, "capacity").(float64))
	}
	kept := func(s *server.Config) { mutable(s); s.Dir, s.Mutable.Kept = dir, true }
	both := func(a, b string) string {
		return `{"update-queue":[{"queue-name":"root.default","params":{"entry":{"key":"capacity","value":"` + a +
			`"}}},{"queue-name":"root.other","params":{"entry":{"key":"capacity","value":"` + b + `"}}}]}`
	}
	t.Run("first", func(t *testing.T) {
		c := start(t, kept)
		c.try("PUT", conf+root, both("60", "40"), 200, "applied")
		c.try("PUT", conf+root, update("root.default", "capacity", "61"), 400, "Failed to re-init")
		c.try("PUT", conf+root, update("root.default", "user-limit-factor", "3"), 200, "applied")
		c.try("PUT", conf+root, update("root.default", "user-limit-factor", ""), 200, "applied")
	})
	t.Run("again", func(t *testing.T) {
		c := start(t, kept)
		if got := share(c); got != 60 {
			t.Errorf("after a restart: %v percent", got)
		}
		if got := c.get(conf+"/version"+root, "versionID"); got != "4" {
			t.Errorf("version %v", got)
		}
		c.try("POST", "/api/v1/scheduler-conf/changes/2/undo"+root, "", 200, "undone")
		c.try("PUT", conf+root, both("50", "50"), 200, "applied")
		if got := len(at(t, c.call("GET", "/api/v1/scheduler-conf/changes"+root, "").body, "changes").([]any)); got != 3 {
			t.Errorf("%d changes are remembered", got)
		}
	})
	t.Run("by files", func(t *testing.T) {
		var log bytes.Buffer
		c := start(t, func(s *server.Config) { s.Dir, s.Logger = dir, slog.New(slog.NewTextHandler(&log, nil)) })
		if got := share(c); got != 70 || !strings.Contains(log.String(), "level=WARN") ||
			!strings.Contains(log.String(), "queue changes by calls are not in force") {
			t.Errorf("by the files: %v percent, told %s", got, log.String())
		}
	})
	t.Run("format", func(t *testing.T) {
		c := start(t, kept)
		if got := share(c); got != 50 {
			t.Errorf("back with the journal's: %v percent", got)
		}
		c.try("GET", conf+"/format"+root, "", 200, "formatted")
		c.try("GET", conf+"/format"+root, "", 200, "formatted")
	})
	t.Run("formatted", func(t *testing.T) {
		c := start(t, kept)
		if got := share(c); got != 70 || c.get(conf+"/version"+root, "versionID") != "1" {
			t.Errorf("after a format and a restart: %v percent", got)
		}
	})
	t.Run("what cannot be had any more", func(t *testing.T) {
		cfg := server.Config{Machine: rm.Defaults(), AdminACL: queues.ACL{All: true}}
		kept(&cfg)
		cfg.Mutable.Parse = func(map[string]string) (server.Queues, error) {
			_, err := queueconf.ReadCapacity([]queueconf.Property{{Name: capacity + "root.queues"}}, queueconf.Options{})
			return server.Queues{}, err
		}
		if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), "store.class=file") {
			t.Errorf("a start with queues that cannot be had: %v", err)
		}
	})
}
