// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/router/operator"
)

// A queue with demand gets an entitlement, the change is printed with its reason, and the metrics have the same
// numbers. While the rebalancer is paused it makes no plan, and the last plan's lease expires.
func TestARebalancerIsSeenAtWork(t *testing.T) {
	fed := small(t, 1)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	get := func(path string) string {
		resp, err := http.Get("http://" + fed.Rebalancers[0].Address("web") + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	metric := func(name string) float64 {
		for line := range strings.Lines(get("/metrics")) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(line)
				}
				return v
			}
		}
		return -1
	}
	eventually(t, "a plan", func() bool { return metric("creel_rebalancer_plans_total") > 0 })
	s.shows(0, "rebalancer why root.default", "root.default is entitled to 0.0% of the federation: it has no demand")
	s.shows(exitNotFound, "rebalancer why root.nowhere", "the plan has no leaf queue root.nowhere")
	s.shows(exitUsage, "rebalancer history --limit 0", "at least 1")
	if n := metric("creel_rebalancer_leads"); n != 1 {
		t.Errorf("creel_rebalancer_leads is %v", n)
	}
	for _, id := range []string{"sc-1", "sc-2"} {
		eventually(t, id+" counting with all of its size, in a federation that has just started", func() bool {
			return metric(`creel_rebalancer_member_counts_ratio{subcluster="`+id+`"}`) == 1
		})
	}

	s.run(0, "app", "submit", "--queue", "default", "--env", "CREEL_SIM_MS=600000", "--", "sleep", "600")
	const used, entitled = `creel_rebalancer_queue_used_ratio{queue="root.default"}`,
		`creel_rebalancer_queue_entitled_ratio{queue="root.default"}`
	eventually(t, "a plan that sees what runs", func() bool { return metric(used) > 0.01 })
	if u, e, w := metric(used), metric(entitled), metric(strings.Replace(used, "used", "wanted", 1)); e < u || w < u {
		t.Errorf("the queue uses %v, wants %v and is entitled to %v", u, w, e)
	}
	eventually(t, "its line in the history", func() bool {
		return strings.Contains(s.run(0, "rebalancer", "history"), "all it wants")
	})
	out := s.shows(0, "rebalancer history --limit 1", "root.default", "0.0%", "all it wants")
	if n := strings.Count(out, "\n"); n != 2 {
		t.Errorf("--limit 1 shows %d lines:\n%s", n, out)
	}
	s.shows(0, "rebalancer why default", "of the federation: all it wants", "it wants ", " in sc-", "0.0% to ")

	// The shares of a maximum are read from the router: a store in memory cannot be reached.
	tree := filepath.Join(t.TempDir(), "tree.yaml")
	if err := os.WriteFile(tree, []byte("queues:\n- queue: root.default\n  maximum: 60%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "queue", "apply", "-f", tree, "--user", "root")
	eventually(t, "both members' parts of the maximum", func() bool {
		out := s.run(0, "rebalancer", "escrow")
		return strings.Contains(out, "sc-1") && strings.Contains(out, "sc-2")
	})

	s.shows(exitNotFound, "rebalancer rollback application_1_0001", "no move of it is known")
	s.shows(0, "rebalancer rollback", "RESULT") // of nothing

	s.run(0, "rebalancer", "pause", "--reason", "new racks")
	eventually(t, "the last plan's lease to end", func() bool {
		resp, err := http.Get(s.server + "/api/v1/rebalancer")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var state operator.Rebalancer
		if err := json.NewDecoder(resp.Body).Decode(&state); err != nil {
			t.Fatal(err)
		}
		return state.Paused != nil && !state.InForce
	})
	was := metric("creel_rebalancer_plans_total")
	time.Sleep(500 * time.Millisecond)
	if is := metric("creel_rebalancer_plans_total"); is != was {
		t.Errorf("%v plans were published while plans are paused", is-was)
	}
	s.shows(0, "rebalancer plan", "paused by", "new racks")
	s.shows(0, "rebalancer resume -o json", `"paused": false`)
	eventually(t, "plans again", func() bool { return metric("creel_rebalancer_plans_total") > was })
}
