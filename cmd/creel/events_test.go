// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
)

// Changes through one router are events at another one, with user, address, values and result; a rejected change is
// none. A stream continues after a cursor.
func TestEventsCommand(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != want {
			t.Fatalf("creel %v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
	at := func(router int, user string) []string {
		return []string{"--server", f.Routers[router].Web, "--user", user}
	}
	as := func(router int, user string, want int, args ...string) string {
		t.Helper()
		return run(want, append(args, at(router, user)...)...)
	}
	list := func(user string, args ...string) (out []statestore.Event) {
		t.Helper()
		text := as(1, user, exitOK, append([]string{"events", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	as(0, "root", exitOK, "policy", "set", "root.a", `{"home":{"policy":"hash"}}`, "--comment", "spread")
	as(0, "root", exitConflict, "policy", "set", "root.a", `{}`, "--expect", "0")
	as(0, "alice", exitNotPermitted, "policy", "set", "root.a", `{}`)
	as(0, "root", exitOK, "policy", "set", "root.a", `{"home":{"policy":"load"}}`)
	as(0, "root", exitOK, "subcluster", "drain", "sc-b", "--reason", "new disks")
	as(0, "root", exitOK, "subcluster", "undrain", "sc-b")
	found := list("root", "--kind", "policy", "--subject", "root.a")
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	e := found[1]
	if e.User != "root" || !strings.HasPrefix(e.From, "127.0.0.1:") || !strings.HasPrefix(e.By, "router 127.0.0.1:") ||
		!strings.Contains(e.Before, "hash") || !strings.Contains(e.After, "load") || e.Result != statestore.EventDone ||
		found[0].Before != "" || found[0].Detail != "spread" || e.Time.IsZero() {
		t.Errorf("%+v", found)
	}
	if drains := list("root", "--kind", "drain", "--since", "1h"); len(drains) != 2 || drains[0].Subject != "sc-b" ||
		drains[0].Detail != "new disks" || !strings.Contains(drains[1].Before, "new disks") {
		t.Errorf("%+v", drains)
	}
	if of := list("root", "--of", "root", "--kind", "drain"); len(of) != 2 || len(list("root", "--of", "bob")) != 0 {
		t.Errorf("by user: %+v", of)
	}
	if last := list("alice", "--limit", "1", "--kind", "drain"); len(last) != 1 || last[0].From != "" {
		t.Errorf("alice sees %+v", last)
	}
	if out := as(1, "root", exitOK, "events", "--subject", "root.a"); !strings.Contains(out, "SUBJECT") ||
		!strings.Contains(out, "policy") {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"--kind", "nonsense"}, {"--since", "soon"}, {"--since", "-1h"}, {"--limit", "0"},
	} {
		as(1, "root", exitUsage, append([]string{"events"}, args...)...)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+f.Routers[1].Web+"/api/v1/events?user.name=root&kind=policy", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Last-Event-ID", found[0].ID)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	next := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return rest
			}
		}
		t.Fatalf("the stream ended before %q: %v", prefix, lines.Err())
		return ""
	}
	if id := next("id: "); id != e.ID {
		t.Errorf("the stream begins with %s, want %s", id, e.ID)
	}
	as(0, "root", exitOK, "policy", "set", "root.a", "--remove")
	next("id: ")
	var removed statestore.Event
	if err := json.Unmarshal([]byte(next("data: ")), &removed); err != nil {
		t.Fatal(err)
	}
	if removed.After != "" || !strings.Contains(removed.Before, "load") {
		t.Errorf("a removed policy: %+v", removed)
	}
}
