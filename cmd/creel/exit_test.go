// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

//go:embed testdata/exits.txt
var exitTable string

// exitRow is a command line of the table with its exit code.
type exitRow struct {
	code int
	line string
}

func exitRows(t *testing.T) (rows []exitRow) {
	for line := range strings.Lines(exitTable) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		code, rest, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(code)
		if err != nil {
			t.Fatalf("%q has no exit code", line)
		}
		rows = append(rows, exitRow{n, rest})
	}
	return rows
}

// verbs returns all commands that do something, by their names.
func verbs(c *cobra.Command, found map[string]*cobra.Command) map[string]*cobra.Command {
	for _, child := range c.Commands() {
		switch {
		case child.Hidden, child.Name() == "help", child.Name() == "completion":
			continue
		case !child.HasSubCommands(), child.Flags().Lookup("ready-file") != nil:
			found[strings.TrimPrefix(child.CommandPath(), "creel ")] = child
		}
		verbs(child, found)
	}
	return found
}

// verbOf returns the command of a line of the table.
func verbOf(t *testing.T, line string) string {
	c, _, err := rootCommand().Find(strings.Fields(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.TrimPrefix(c.CommandPath(), "creel ")
}

// Each verb runs in a federation, and ends with the exit code of the documented table.
func TestEveryVerbExitsByTable(t *testing.T) {
	dir := t.TempDir()
	fed := smallWith(t, []string{
		"yarn.acl.enable=true", "yarn.admin.acl=root", "yarn.node-labels.enabled=true",
		"yarn.scheduler.configuration.store.class=memory",
	}, 1)
	web := "http://" + fed.Routers[0].Address("web")
	s := cliClient{t, web}
	t.Setenv("HADOOP_USER_NAME", "root")
	t.Setenv("CREEL_SERVER", web)
	t.Setenv("CREEL_CONTEXTS", filepath.Join(dir, "contexts.yaml"))
	t.Setenv("EDITOR", "true")
	t.Setenv("VISUAL", "")
	for name, text := range map[string]string{
		"tree.yaml":   "queues: [{queue: root.prod, guarantee: 50%}]\n",
		"broken.yaml": "queues: [{queue: root.prod, guarantee: 500%}]\n",
		"label.yaml":  "queues: [{queue: root.prod, labels: {nosuch: {guarantee: 50%}}}]\n",
		"policy.json": `{"home":{"policy":"uniform"}}`, "broken.json": `{"home":{"policy":"nosuch"}}`,
		"policies.json": `{"root.prod":{"home":{"policy":"uniform"}}}`,
		"job.json":      `{"queue":"root.prod","user":"ann","memory_mb":1024,"vcores":1}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	submit := func() string {
		return strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "prod", "--memory", "256", "--env",
			"CREEL_SIM_MS=600000", "-o", "name", "--", "sleep", "600"))
	}
	app, other, third := submit(), submit(), submit()
	var container string
	eventually(t, "its AM runs", func() bool {
		container = strings.TrimSpace(s.run(exitOK, "app", "containers", app, "-o", "name"))
		return strings.HasPrefix(container, "container_")
	})
	eventually(t, "there is a plan", func() bool {
		code, _ := ends(t, "rebalancer plan")
		return code == exitOK
	})
	eventually(t, "members' sizes are known", func() bool {
		code, _ := ends(t, "queue diff -f "+filepath.Join(dir, "tree.yaml"))
		return code == exitOK
	})
	storeURL := "redis://" + redistest.Start(t).Addr
	named, err := settings.Load(settings.Sources{
		Defines: []string{"creel.store.url=" + storeURL, "creel.federation.name=north"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, closed, err := role.OpenStore(t.Context(), named)
	if err == nil {
		err = closed()
	}
	if err != nil {
		t.Fatal(err)
	}
	with := strings.NewReplacer(
		"$APP2", other, "$APP3", third, "$APP", app, "$GONE", "application_1_0001", "$CONTAINER", container, "$DIR", dir,
		"$NODE", strings.Fields(s.run(exitOK, "node", "list", "-o", "name"))[0],
		"$ADMIN", fed.Routers[0].Address("admin"), "$RM", "http://"+fed.RMs[0].Address("web"), "$WEB", web,
		"$HOME", string(fetchWhy(t, s, app).Home), "$STORE", storeURL,
	)
	there, done := verbs(rootCommand(), map[string]*cobra.Command{}), map[string]exitRow{}
	codes, heads := map[string][]int{}, map[string]bool{}
	for _, r := range exitRows(t) {
		verb := verbOf(t, r.line)
		codes[verb] = append(codes[verb], r.code)
		if r.code == exitOK {
			done[verb] = r
		}
		if code, out := ends(t, with.Replace(r.line)); code != r.code {
			t.Errorf("creel %s exits with %d, want %d:\n%s", r.line, code, r.code, out)
		} else if found := otherUnits.FindString(out); found != "" {
			t.Errorf("creel %s prints %q; package units has the forms:\n%s", r.line, found, out)
		} else {
			for _, head := range tableHead.FindAllString(out, -1) {
				heads[strings.Join(strings.Fields(head), " ")] = true
			}
		}
	}
	for verb, c := range there {
		if len(codes[verb]) == 0 {
			t.Errorf("creel %s is not in testdata/exits.txt", verb)
		}
		// Names in capitals before the flags are objects, which may be absent.
		named := regexp.MustCompile(`\b(ID|QUEUE|CONTAINER)\b`).MatchString(c.Use)
		if named && !slices.Contains(codes[verb], exitNotFound) && !strings.HasPrefix(verb, "policy ") &&
			c.Flags().Lookup("server") != nil {
			t.Errorf("creel %s names an object and has no line with exit code %d", verb, exitNotFound)
		}
		if code, out := ends(t, verb+" --nosuch"); code != exitUsage {
			t.Errorf("creel %s --nosuch exits with %d:\n%s", verb, code, out)
		}
		at := slices.IndexFunc([]string{"server", "admin"}, func(name string) bool { return c.Flags().Lookup(name) != nil })
		if r, ok := done[verb]; ok && at >= 0 && !fromFiles(r.line) {
			line := regexp.MustCompile(` --(server|admin) \S+`).ReplaceAllString(with.Replace(r.line), "")
			flag := " --" + []string{"server", "admin"}[at] + " 127.0.0.1:1"
			before, after, cut := strings.Cut(line, " -- ")
			if line = before + flag; cut {
				line += " -- " + after
			}
			if code, out := ends(t, line); code != exitUnreachable {
				t.Errorf("creel %s exits with %d, want %d:\n%s", line, code, exitUnreachable, out)
			}
		}
	}

	quotedHeads(t, heads)
	commandsOfPages(t, web, with)

	// The home of an application is lost: what is known is printed, and the rest is named.
	home := fetchWhy(t, s, app).Home
	rm := fed.RMs[0]
	if home == "sc-2" {
		rm = fed.RMs[1]
	}
	if err := rm.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"app why " + app, "app status " + app, "app attempts " + app, "app containers " + app, "app logs " + app,
		"app list", "node list", "queue list", "queue tree", "queue show root.prod", "status", "top",
	} {
		code, out := 0, ""
		for end := time.Now().Add(time.Minute); code != exitPartial && time.Now().Before(end); {
			code, out = ends(t, line)
			time.Sleep(100 * time.Millisecond)
		}
		if code != exitPartial {
			t.Errorf("creel %s without a member exits with %d, want %d:\n%s", line, code, exitPartial, out)
		}
	}
}

// tableHead matches the head of a printed table.
var tableHead = regexp.MustCompile(`(?m)^[A-Z][A-Z-]+ {2,}[A-Z].*$`)

// quotedHeads compares the tables that the guide to troubleshooting quotes with the printed ones.
func quotedHeads(t *testing.T, printed map[string]bool) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := tableHead.FindAllString(string(page), -1)
	if len(quoted) < 2 {
		t.Errorf("the guide quotes only the tables %q", quoted)
	}
	for text := range strings.SplitSeq(string(page), "\n```\n") {
		if found := otherUnits.FindString(text); found != "" {
			t.Errorf("the guide quotes %q, which no command prints", found)
		}
	}
	for _, head := range quoted {
		if !printed[strings.Join(strings.Fields(head), " ")] {
			t.Errorf("the guide quotes a table that no command prints: %s", head)
		}
	}
}

// commandsOfPages checks that the command below each page, with all of the page's filters, is one that exists.
func commandsOfPages(t *testing.T, web string, with *strings.Replacer) {
	t.Helper()
	line := regexp.MustCompile(`<code id="command">creel ([^<]+)</code>`)
	for _, path := range []string{
		"/", "/apps", "/apps?state=running&queue=root.prod&user=root&type=YARN&q=s&tag=a&sort=memory", "/apps?sort=-age",
		"/apps/$APP", "/apps/$APP/events", "/queues", "/queues?queue=root.prod", "/queues/root.prod/events", "/members",
		"/members/sc-1", "/members/sc-1?state=RUNNING&q=1&sort=used", "/members/sc-1/events", "/nodes",
		"/nodes?member=sc-1&state=RUNNING&q=127&sort=-used", "/nodes/$NODE", "/nodes/$NODE?member=sc-1&kind=queued",
		"/nodes/$NODE/logs/$CONTAINER?file=stdout", "/policies", "/policies/root.prod", "/rebalancer", "/operations",
		"/events", "/events?kind=kill&subject=$APP&user=root&since=1h",
	} {
		resp, err := http.Get(web + with.Replace(path))
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		found := line.FindSubmatch(page)
		if found == nil {
			t.Errorf("%s (%d) has no command", path, resp.StatusCode)
			continue
		}
		text := html.UnescapeString(string(found[1]))
		c, words, err := rootCommand().Find(strings.Fields(text))
		if err == nil {
			err = c.ParseFlags(words)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || c.RunE == nil && c.Run == nil {
			t.Errorf("%s says creel %s, which is no command: %v", path, text, err)
		}
	}
}

// otherUnits matches sizes that are not in powers of two, and times in Go's form.
var otherUnits = regexp.MustCompile(`[0-9] ?[kKMGT]B\b|[A-Z]-MB\b|\b[0-9.]+m?s (ago|old)\b|\b[0-9]+m[0-9.]+s\b`)

// fromFiles reports whether a line makes no request.
func fromFiles(line string) bool {
	return slices.Contains([]string{"policy schema", "queue schema"}, line) || strings.HasPrefix(line, "context ")
}
