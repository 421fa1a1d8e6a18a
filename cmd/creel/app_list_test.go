// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/router/rest"
)

func TestAppListShowsHomeAndWaitReason(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	id := strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "prod", "--env", "CREEL_SIM_MS=600000",
		"-o", "name", "--", "sleep", "600"))
	home := string(fetchWhy(t, s, id).Home)
	eventually(t, "its AM is started and has not registered", func() bool {
		out := s.run(exitOK, "app", "list", "--state", "waiting")
		return strings.Contains(out, "am_not_registered") && strings.Contains(out, " s ")
	})
	s.shows(exitOK, "app list --state waiting", "HOME", "WAITS-FOR", id, home)
	for _, state := range []string{"running", "RUNNING", "ended", "KILLED"} {
		if out := s.run(exitOK, "app", "list", "--state", state); strings.Contains(out, id) {
			t.Errorf("--state %s lists an application that waits for its AM:\n%s", state, out)
		}
	}
	s.shows(exitOK, "app list --state ACCEPTED", id)

	// A ResourceManager has no federation: its own list is shown.
	rm := fed.RMs[0]
	if home == "sc-2" {
		rm = fed.RMs[1]
	}
	at := cliClient{t, "http://" + rm.Address("web")}
	at.shows(exitOK, "app list --state waiting", id)
	at.shows(exitOK, "app list --queue prod --of nobody", "ID")
	if out := at.run(exitOK, "app", "list", "--state", "running,ended"); strings.Contains(out, id) {
		t.Errorf("a ResourceManager lists it as running:\n%s", out)
	}
}

// The same sentence and remedy head the status, the list of queues and the explanation of an application.
func TestHeadlineIsTheSameEverywhere(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	id := strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "prod", "--env", "CREEL_SIM_MS=600000",
		"-o", "name", "--", "sleep", "600"))
	if err := fed.RMs[1].Stop(); err != nil {
		t.Fatal(err)
	}
	var doc rest.OverviewDoc
	eventually(t, "the headline has a remedy", func() bool {
		f := clientFlags{server: s.server, user: "root", timeout: 1e10, printer: printer{"table"}}
		var err error
		doc, err = f.overview(t.Context())
		return err == nil && doc.Remedy != ""
	})
	for _, words := range [][]string{{"status"}, {"queue", "list"}, {"app", "why", id}} {
		_, out := ends(t, strings.Join(words, " ")+" --server "+s.server)
		lines := strings.Split(out, "\n")
		if len(lines) < 2 || !strings.HasPrefix(lines[0], string(doc.State)) || !strings.HasPrefix(lines[1], "remedy ") ||
			!strings.Contains(lines[1], doc.Remedy) {
			t.Errorf("creel %s begins with\n%s\nwant %s, remedy %s", words, out, doc.Sentence, doc.Remedy)
		}
	}
	if _, out := ends(t, "queue list -o name --server "+s.server); !strings.HasPrefix(out, "root") {
		t.Errorf("names alone: %s", out)
	}
}
