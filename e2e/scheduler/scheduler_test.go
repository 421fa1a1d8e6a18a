// SPDX-License-Identifier: Apache-2.0

// Package scheduler compares creel's reading of queue files, its placement
// rules and its scheduling with a real Hadoop ResourceManager's: both are given
// the same files, submissions, nodes and asks.
package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
)

const prefix = "yarn.scheduler.capacity."

// startRM starts a real ResourceManager whose capacity-scheduler.xml has just the given "key = value" lines; keys are
// below yarn.scheduler.capacity unless they begin with yarn. or hadoop.
func startRM(t *testing.T, lines string) *hadoop.ResourceManager {
	t.Helper()
	return hadoop.StartRM(t, hadoop.RM{Conf: queueConf(lines)})
}

func queueConf(lines string) hadoop.Conf {
	conf := hadoop.Conf{}
	for key := range hadoop.Queues() {
		conf[key] = "" // the kit's own queues
	}
	for line := range strings.Lines(lines) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		if !strings.HasPrefix(key, "yarn.") && !strings.HasPrefix(key, "hadoop.") {
			key = prefix + key
		}
		conf[key] = value
	}
	return conf
}

// ours reads the configuration directory of a real ResourceManager as `creel
// rm` would.
func ours(t *testing.T, confDir string) (*settings.Settings, queueconf.Config) {
	t.Helper()
	s, err := settings.Load(settings.Sources{ConfDir: confDir})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.CapacityScheduler()
	if err != nil {
		t.Fatal(err)
	}
	var props []queueconf.Property
	for _, p := range found {
		props = append(props, queueconf.Property{Name: p.Name, Value: p.Value, File: p.File, Line: p.Line})
	}
	c, err := queueconf.ReadCapacity(props, queueconf.Options{
		MaxAllocation: creel.NewResource(
			s.Long("yarn.scheduler.maximum-allocation-mb"),
			s.Long("yarn.scheduler.maximum-allocation-vcores"),
		),
		MaxClusterPriority: int32(s.Int("yarn.cluster.max-application-priority")),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// get reads a JSON document of the ResourceManager.
func get(t *testing.T, r *hadoop.ResourceManager, path string, into any) {
	t.Helper()
	res, err := http.Get("http://" + r.Web + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s\n%s", path, res.Status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, body)
	}
}

// submit submits an application without a live AM over REST and returns
// its report once the ResourceManager has decided, or the refusal.
func submit(t *testing.T, r *hadoop.ResourceManager, user, name, queue string) (string, string) {
	t.Helper()
	post := func(path, body string) (int, []byte) {
		res, err := http.Post(
			"http://"+r.Web+path+"?user.name="+user,
			"application/json",
			bytes.NewReader([]byte(body)),
		)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, out
	}
	var made struct {
		ID string `json:"application-id"`
	}
	if code, body := post(
		"/ws/v1/cluster/apps/new-application",
		"",
	); code != http.StatusOK ||
		json.Unmarshal(body, &made) != nil {
		t.Fatalf("new-application: %d %s", code, body)
	}
	code, body := post(
		"/ws/v1/cluster/apps",
		fmt.Sprintf(
			`{"application-id":%q,"application-name":%q,"queue":%q,"application-type":"TEST","unmanaged-AM":false,
		"max-app-attempts":1,"am-container-spec":{"commands":{"command":"true"}},"resource":{"memory":256,"vCores":1}}`,
			made.ID,
			name,
			queue,
		),
	)
	if code != http.StatusAccepted {
		return "", string(body)
	}
	var report struct {
		App struct{ Queue, State, FinalStatus, Diagnostics, User string } `json:"app"`
	}
	deadline := time.Now().Add(process.Guard)
	for {
		get(t, r, "/ws/v1/cluster/apps/"+made.ID, &report)
		switch report.App.State {
		case "FAILED", "KILLED":
			return "", report.App.Diagnostics
		case "ACCEPTED", "RUNNING":
			if report.App.User != user {
				t.Fatalf("submitted as %s, not %s", report.App.User, user)
			}
			return report.App.Queue, ""
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still %s", made.ID, report.App.State)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
