// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/router/rest"
)

// An application whose AM runs and whose asks are not granted waits: page, command line, REST and metric count it so.
func TestWaitingCountIsTheSameEverywhere(t *testing.T) {
	fed := small(t)
	web := "http://" + fed.Routers[0].Address("web")
	s := cliClient{t, web}
	get := func(path string) string {
		resp, err := http.Get(web + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := func(m []string) string {
		if m == nil {
			return "none"
		}
		return m[1]
	}
	metric := func(text, name string) string {
		return first(regexp.MustCompile(regexp.QuoteMeta(name) + ` (\S+)`).FindStringSubmatch(text))
	}
	onPage := regexp.MustCompile(`id="pending">(?:<a [^>]*>)?(\d+)<`)
	// More containers than the nodes have room for: the AM and some containers run, the others wait.
	app := strings.TrimSpace(s.run(exitOK, "run", "--containers", "200", "--memory", "1g", "--detach", "-o", "name",
		"--", "sleep", "600"))
	var seen []string
	defer func() { t.Log(seen) }()
	eventually(t, "all surfaces count one that waits", func() bool {
		var doc rest.OverviewDoc
		if err := json.Unmarshal([]byte(get("/api/v1/overview")), &doc); err != nil || doc.Apps == nil {
			return false
		}
		figures := get("/metrics")
		seen = []string{
			fmt.Sprint(doc.Apps.Waiting), regexp.MustCompile(`\d+ waiting`).FindString(doc.Sentence),
			first(onPage.FindStringSubmatch(get("/"))),
			strings.TrimSpace(s.run(exitOK, "app", "list", "--state", "waiting", "-o", "name")),
			metric(figures, `creel_applications{queue="root.default",state="waiting"}`),
			metric(figures, `creel_applications{queue="root.default",state="running"}`),
			metric(figures, `creel_applications{queue="root.prod",state="waiting"}`),
		}
		oldest := metric(figures, `creel_applications_oldest_wait_seconds{queue="root.default"}`)
		want := []string{"1", "1 waiting", "1", app, "1", "0", "0"}
		return slices.Equal(seen, want) && oldest != "none" && oldest != "0"
	})
	eventually(t, "its AM runs", func() bool { // it waited before that, too
		return strings.Contains(s.run(exitOK, "app", "status", app), "RUNNING")
	})
}
