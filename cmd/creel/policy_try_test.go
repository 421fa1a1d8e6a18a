// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// report of a member with so many MB and as many cores free as there are GB.
func report(total, free int64) string {
	b, err := json.Marshal(map[string]any{"clusterMetrics": map[string]int64{
		"totalMB": total, "availableMB": free, "totalVirtualCores": total / 1024, "availableVirtualCores": free / 1024,
		"activeNodes": 10, "totalNodes": 10,
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A policy is tried on a federation in a file, without any daemon, and on the
// live one: the decision and its reasons, and nothing done.
func TestAPolicyIsTriedWithoutDoingAnything(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"policy"}, args...))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != want {
			t.Fatalf("creel policy %v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
	view := file("view.json", `{"members":[
		{"id":"east","report":`+report(102400, 51200)+`},
		{"id":"south","state":"draining","report":`+report(102400, 102400)+`},
		{"id":"west","report":`+report(102400, 102400)+`}]}`)
	job := file("job.json", `{"queue":"root.prod","user":"ann","memory_mb":1024,"vcores":1}`)
	asks := file("asks.json", `[{"count":60,"memory_mb":1024,"vcores":1}]`)
	eastern := file("east.json", `{"home":{"policy":"weighted","weights":{"east":1}}}`)

	var d tryDoc
	text := run(exitOK, "try", "--view", view, "--policy", eastern, "--submission", job, "--asks", asks, "-o", "json")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if d.Home != "east" || len(d.Splits) != 1 || d.Splits[0].Shares["east"] != 50 || d.Splits[0].Shares["west"] != 10 {
		t.Errorf("home and what it has room for, then one member for the rest: %s", text)
	}
	text = run(exitOK, "try", "--view", view, "--policy", eastern, "--submission", job, "--asks", asks)
	for _, want := range []string{"home: weighted chose east", "50 at home; 10 span to west", "south: excluded, it is draining"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// A rebalancer's plan is followed as routers and proxies follow it, and preserved by readers of the view.
	planned := file("planned.json", `{"members":[
		{"id":"east","report":`+report(102400, 102400)+`},
		{"id":"west","report":`+report(102400, 102400)+`}],
		"plan":{"version":7,"at":"2026-01-02T03:04:05Z","document":{"total":{"memoryMB":204800,"vcores":200},
			"queues":[{"queue":"root.prod","wants":0.4,"entitled":0.2,"members":[{"member":"west","given":0.2,"weight":1}]}]}}}`)
	text = run(exitOK, "try", "--view", planned, "--submission", job, "--asks", asks)
	for _, want := range []string{"chose west", "entitled to more there", "within the queue's entitlement (20.0% of the federation)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	nobody := file("nobody.json", `{"members":[{"id":"east","state":"lost"}]}`)
	if text = run(
		exitOK,
		"try",
		"--view",
		nobody,
		"--policy",
		eastern,
		"--submission",
		job,
	); !strings.Contains(
		text,
		"no home: ",
	) {
		t.Errorf("nobody is alive: %s", text)
	}

	for what, args := range map[string][]string{
		"--submission FILE":    {"try", "--view", view, "--policy", eastern},
		"unknown field":        {"try", "--view", view, "--policy", eastern, "--submission", file("a", `{"que":"x"}`)},
		"is none of active":    {"try", "--policy", eastern, "--submission", job, "--view", file("b", `{"members":[{"id":"a","state":"odd"}]}`)},
		"no such file":         {"try", "--view", view, "--policy", "/nowhere/x", "--submission", job},
		"invalid subcluster":   {"try", "--policy", eastern, "--submission", job, "--view", file("c", `{"members":[{"id":"a b"}]}`)},
		"balanced, hash, load": {"try", "--view", view, "--policy", file("d", `{"home":{"policy":"odd"}}`), "--submission", job},
	} {
		if text := run(exitUsage, args...); !strings.Contains(text, what) {
			t.Errorf("no %q in\n%s", what, text)
		}
	}

	// The live federation, by the document that holds for the queue.
	url := "redis://" + redistest.Start(t).Addr
	defaults, err := settings.Load(settings.Sources{Defines: []string{"creel.store.url=" + url}})
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := role.OpenStore(t.Context(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []creel.SubclusterID{"east", "west"} {
		m := subcluster.Member{ID: id, Epoch: 1, Capability: report(102400, 102400), Lease: time.Hour}
		if err := store.Register(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.PutPolicy(t.Context(), statestore.PolicyWrite{
		Queue: "root", Document: []byte(`{"home":{"policy":"weighted","weights":{"west":1}}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if err := closeStore(); err != nil {
		t.Fatal(err)
	}
	if text := run(
		exitOK,
		"try",
		"--submission",
		job,
		"--store",
		url,
	); !strings.Contains(
		text,
		"policy of root\nhome: weighted chose west",
	) {
		t.Errorf("live: %s", text)
	}
	kept := file("kept.json", run(exitOK, "view", "--store", url))
	if text := run(
		exitOK,
		"try",
		"--view",
		kept,
		"--policy",
		eastern,
		"--submission",
		job,
	); !strings.Contains(
		text,
		"chose east",
	) {
		t.Errorf("a live view that was kept: %s", text)
	}
}
