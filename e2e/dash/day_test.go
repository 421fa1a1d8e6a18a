// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

var update = flag.Bool("update", false, "write docs/operations/day.md")

// hours has the daemons wait an hour for each read of the store that has no shorter bound of its own: while the store
// is away, a page that waits for a time-out never ends, on the slowest machine and on the fastest.
const hours = "?timeout=1h&max_wait=1h"

func TestDayPageMatchesTheDay(t *testing.T) {
	const path = "../../docs/operations/day.md"
	want := dayPage(operatorsDay)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != want {
		t.Errorf("%s is not what the day says, %v: run with -update", path, err)
	}
	if s := &operatorsDay[0]; s.clicked() > 4 || len(s.commands) > 3 {
		t.Errorf("%q takes %d clicks or %d commands", s.title, s.clicked(), len(s.commands))
	}
}

// operator plays the day.
type operator struct {
	*testing.T
	b        *browser
	dir, web string
	store    *redistest.Server
	gone     process.Command // the fourth member
	member   *process.Process
	typed    int
	took     []string // for the log
}

// TestOperatorsDay plays an operator's day over real processes and a real Redis. Each step is done by commands, and by
// clicks. What must be read is in operatorsDay.
func TestOperatorsDay(t *testing.T) {
	o := &operator{T: t, dir: t.TempDir(), store: redistest.Start(t, "--appendonly", "yes")}
	o.up()
	o.b = newBrowser(t)
	for i, play := range []func(*step){o.starve, o.lose, o.storeAway, o.drain, o.wrongPolicy} {
		s := &operatorsDay[i]
		play(s)
		if t.Failed() {
			t.Fatalf("%s: see above", s.title)
		}
		o.headline(s.after)
	}
	o.b.quiet("503", "ERR_")
	t.Logf("the day took:\n%s", strings.Join(o.took, "\n"))
}

// up starts the federation, and defines a fourth member without nodes.
func (o *operator) up() {
	ready := filepath.Join(o.dir, "ready.json")
	p := process.Start(o, process.Command{Name: "up", Dir: o.dir, Args: []string{
		rm.Binary(o), "up", "--any-port", "--nodes", "4", "--store", o.store.URL() + hours, "--data", filepath.Join(o.dir, "up"),
		"--ready-file", ready,
	}})
	var entries []struct {
		Role      string
		Addresses map[string]string
	}
	p.Await(o, "the ready file", func() bool {
		b, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(b, &entries) == nil
	})
	for _, e := range entries {
		if e.Role == "router" && o.web == "" {
			o.web = "http://" + e.Addresses["web"]
		}
	}
	o.gone = process.Command{Name: "rm-gone", Dir: o.dir, Args: []string{
		rm.Binary(o), "rm", "--conf", filepath.Join(o.dir, "up", "conf"), "--data", filepath.Join(o.dir, "gone"),
		"--subcluster", "gone", "--store", o.store.URL() + hours,
		"-D", "creel.membership.lease=5s", "-D", "creel.membership.heartbeat-interval=500ms",
		"-D", "hadoop.proxyuser.creel.hosts=*", "-D", "hadoop.proxyuser.creel.groups=*",
		"-D", "yarn.resourcemanager.epoch=9000", "-D", "yarn.resourcemanager.address=127.0.0.1:0",
		"-D", "yarn.resourcemanager.scheduler.address=127.0.0.1:0",
		"-D", "yarn.resourcemanager.resource-tracker.address=127.0.0.1:0",
		"-D", "yarn.resourcemanager.admin.address=127.0.0.1:0", "-D", "yarn.resourcemanager.webapp.address=127.0.0.1:0",
	}}
}

// types runs a command line to its end.
func (o *operator) types(line string, more ...string) (all string, code int) {
	o.Helper()
	o.typed++
	ctx, cancel := context.WithTimeout(o.Context(), 2*process.Guard)
	defer cancel()
	_, all, code = process.Run(ctx, o, process.Command{
		Name: fmt.Sprintf("typed-%d", o.typed), Dir: o.dir,
		Args: []string{"bash", "-c", `creel() { "$CREEL" "$@"; }; ` + line},
		Env: append(more, "CREEL="+rm.Binary(o), "CREEL_SERVER="+o.web,
			"CREEL_CONTEXTS="+filepath.Join(o.dir, "contexts.yaml")),
	})
	return all, code
}

// prepares runs a command line that is not the operator's.
func (o *operator) prepares(line string) string {
	o.Helper()
	all, code := o.types(line)
	if code != 0 {
		o.Fatalf("%s exits with %d:\n%s", line, code, all)
	}
	return strings.TrimSpace(all)
}

// headline waits until the first sentence begins so, and no part of the federation is missing.
func (o *operator) headline(begins string) {
	o.Helper()
	var all string
	for end := time.Now().Add(process.Guard); time.Now().Before(end); time.Sleep(time.Second) {
		all, _ = o.types("creel status")
		if strings.Contains(all, begins) {
			return
		}
	}
	o.Fatalf("the first sentence does not become %q:\n%s", begins, all)
}

var anyID = regexp.MustCompile(`application_\d+_\d+`)

// commands types the step's commands.
func (o *operator) commands(s *step) {
	o.Helper()
	id := ""
	for _, c := range s.commands {
		began := time.Now()
		all, code := o.types(c.line, "id="+id)
		o.note(s, "$ "+c.line, began)
		if code != c.exit {
			o.Errorf("%s: %s exits with %d, not %d:\n%s", s.title, c.line, code, c.exit, all)
		}
		for _, text := range c.reads {
			if !slices.ContainsFunc(strings.Split(all, "\n"), func(line string) bool { return has(line, text) }) {
				o.Errorf("%s: %s does not say %q:\n%s", s.title, c.line, text, all)
			}
		}
		if found := anyID.FindString(all); found != "" {
			id = found
		}
	}
}

// clicks opens the step's pages.
func (o *operator) clicks(s *step) {
	o.Helper()
	for _, c := range s.clicks {
		began := time.Now()
		if c.on == "" {
			o.b.open(o.web + "/?user.name=" + hadoop.OSUser(o))
		} else {
			// A form of a change is not shown before the page's script listens to it.
			o.b.until(c.what+" is there", func() bool { return o.b.count("html.changes "+c.on) > 0 })
			// The live page may replace the element at any time, so the click is made in one step.
			o.b.eval(`document.querySelector(` + strconv.Quote(c.on) + `).click(); ""`)
		}
		for _, text := range c.reads {
			o.b.until(fmt.Sprintf("%s: after %s the page says %q", s.title, c.what, text),
				func() bool { return has(o.b.text("body"), text) })
		}
		if strings.HasPrefix(c.on, "dialog") { // the page is loaded again after a change; a click before that is lost
			o.b.until("the page is loaded again", func() bool {
				return o.b.eval(`String(document.readyState === "complete" && !document.querySelector("dialog"))`) == "true"
			})
		}
		o.note(s, "click on "+c.what, began)
	}
}

func (o *operator) note(s *step, what string, began time.Time) {
	o.took = append(o.took, fmt.Sprintf("%8.3f s  %s: %s", time.Since(began).Seconds(), s.title, what))
}

// has reports whether a text contains the parts of a pattern, between which … stands for any text, in order.
func has(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		_, after, found := strings.Cut(text, strings.TrimSpace(part))
		if !found {
			return false
		}
		text = after
	}
	return true
}

// starve lets three applications of one queue hold all nodes. Killing one of them still leaves root.prod short.
func (o *operator) starve(s *step) {
	var all []string
	o.containers(0)
	for i := range 3 { // each fills a member, and the next home is chosen when that is reported
		all = append(all, o.prepares("creel run --detach --queue research --containers 31 --memory 1g --name hog -- sleep 6000"))
		o.containers(int64(32 * (i + 1)))
	}
	o.logs(all[0])
	for range 4 {
		all = append(all, o.prepares("creel run --detach --queue prod --containers 12 --memory 1g --name report -- sleep 6000"))
	}
	o.headline("bad       root.prod has 0.0 % of its guaranteed 50.0 % for ")
	o.commands(s)
	o.clicks(s)
	o.headline(s.after)
	o.types("creel app kill " + strings.Join(all, " ")) // what still waits for a full home would be short in a minute
	o.containers(0)
}

// logs follows a node to one of its containers and to its logs, and reads them by the command.
func (o *operator) logs(id string) {
	o.Helper()
	const says = "creel simulates this node"
	o.b.open(o.web + "/nodes?sort=containers&user.name=" + hadoop.OSUser(o))
	for _, on := range []string{"#nodes tbody th a", "#containers tbody tr:first-child td:last-child a"} {
		o.b.until(on+" is there", func() bool { return o.b.count(on) > 0 })
		o.b.eval(`document.querySelector(` + strconv.Quote(on) + `).click(); ""`)
	}
	o.b.until("the log is there", func() bool { return strings.Contains(o.b.text("#log"), says) })
	o.b.axe("logs")
	var out string // an allocated container has logs once it has started
	err := process.Poll(nil, func() bool {
		var code int
		out, code = o.types("creel app logs " + id + " --file stdout")
		return code == 0 && strings.Count(out, says) >= 30
	})
	if err != nil {
		o.Errorf("the logs of %s: %v\n%s", id, err, out)
	}
}

// containers waits until so many containers run on the twelve nodes.
func (o *operator) containers(n int64) {
	o.Helper()
	err := process.Poll(nil, func() bool {
		sum := api[rest.OverviewDoc](o.T, strings.TrimPrefix(o.web, "http://"), "/api/v1/overview").Sum
		return sum.ActiveNodes == 12 && sum.ContainersAllocated == n
	})
	if err != nil {
		all, _ := o.types("creel top --once")
		o.Fatalf("%d containers do not run on 12 nodes: %v\n%s", n, err, all)
	}
}

func (o *operator) lose(s *step) {
	o.member = process.Start(o, o.gone)
	o.headline("All 4 members are well.")
	o.member.Kill()
	o.headline("gone is lost")
	o.commands(s)
	o.clicks(s)
	o.gone.Name = "rm-gone-again"
	o.member = process.Start(o, o.gone)
}

// storeAway stops the store, and opens each page of the navigation besides. None may wait for the store's time-outs.
func (o *operator) storeAway(s *step) {
	o.store.Pause()
	o.headline("The view is frozen")
	o.commands(s)
	o.clicks(s)
	for path := range strings.FieldsSeq(
		"/ /apps /queues /members /members/sc-1 /nodes /policies /rebalancer /events /operations",
	) {
		o.soon(s, "page "+path, func() { o.b.open(o.web + path) })
	}
	for _, line := range []string{
		"creel status", "creel app list --limit 5", "creel queue list", "creel subcluster list", "creel policy list",
		"creel top --once",
	} {
		o.soon(s, "$ "+line, func() { o.types(line) })
	}
	o.store.Resume()
}

// soon does something that must not wait for the store; see hours.
func (o *operator) soon(s *step, what string, do func()) {
	o.Helper()
	began := time.Now()
	do()
	o.note(s, what, began)
}

func (o *operator) drain(s *step) {
	o.commands(s)
	o.headline("All 4 members are well.")
	o.clicks(s)
}

func (o *operator) wrongPolicy(s *step) {
	o.file("first.json", `{"home":{"policy":"balanced"}}`)
	o.file("wrong.json", `{"home":{"policy":"weighted","weights":{"gone":1}},"split":{"policy":"home"}}`)
	o.prepares("creel policy set root.default --file first.json --comment 'balanced first'")
	wrong := func() {
		o.prepares("creel policy set root.default --file wrong.json --comment 'all to gone'")
		for id := ""; !strings.Contains(o.prepares("creel app why "+id+" || true"), "home gone"); {
			id = o.prepares("creel run --detach -- sleep 1")
		}
	}
	wrong()
	o.commands(s)
	wrong()
	o.clicks(s)
}

func (o *operator) file(name, text string) {
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
}
