// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/sim/compare"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
)

// simulator runs creel sim as it is typed, over files in a directory of the test.
type simulator struct {
	t   *testing.T
	dir string
}

func (s simulator) file(name, text string) string {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

func (s simulator) run(want int, args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(io.Discard) // progress
	root.SetArgs(append([]string{"sim", "--hours", "9-9.1"}, args...))
	err := root.ExecuteContext(s.t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	if got := exitCode(err); got != want {
		s.t.Fatalf("creel sim %v: exit code %d, want %d\n%s", args, got, want, &out)
	}
	return out.String()
}

// ran is a document that creel sim prints, read as a script reads it.
type ran struct {
	Notes []string `json:"notes"`
	Runs  []struct {
		compare.Run
		Applications struct{ Submitted, Finished, Failed int } `json:"applications"`
		Containers   struct{ Granted int64 }                   `json:"containers"`
		Hash         string                                    `json:"hash"`
	} `json:"runs"`
}

func (s simulator) json(args ...string) (doc ran) {
	s.t.Helper()
	text := s.run(exitOK, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return doc
}

const (
	toOne    = `{"home":{"policy":"weighted","weights":{"sc-2":1}},"split":{"policy":"home"}}`
	balanced = `{"home":{"policy":"balanced"},"split":{"policy":"balanced"}}`
)

// A policy that sends everything to one member is compared with a balanced one: each run follows its own, and the
// numbers of members and queues show it.
func TestTwoRunsDecideByTheirOwnPolicies(t *testing.T) {
	s := simulator{t, t.TempDir()}
	one, all := s.file("one.json", toOne), s.file("all.json", balanced)
	size := []string{"--nodes", "10", "--cores", "4"}
	doc := s.json(append(size, "--policy", one, "--against", all)...)
	if len(doc.Runs) != 2 || doc.Runs[0].Name != one || doc.Runs[1].Name != all || !doc.Runs[0].Good || !doc.Runs[1].Good {
		t.Fatalf("%d runs, %v", len(doc.Runs), doc.Notes)
	}
	first, second := &doc.Runs[0], &doc.Runs[1]
	for i, m := range first.Members {
		if busy := m.Member == "sc-2"; busy != (m.Applications > 0) || busy != (m.Containers > 0) || busy != (m.Utilisation > 0) {
			t.Errorf("by the policy that names sc-2 alone, %s has %+v", m.Member, m)
		}
		if b := second.Members[i]; b.Applications < 10 || b.Utilisation < 0.03 {
			t.Errorf("by the balanced policy, %s has %+v", b.Member, b)
		}
	}
	for i, q := range first.Queues {
		b := second.Queues[i]
		if q.Queue != b.Queue || q.Applications != b.Applications || q.Applications == 0 {
			t.Fatalf("%+v beside %+v: they are not of one day", q, b)
		}
		if q.MembersOfApp != 1 || q.WaitS.P99 <= 2*b.WaitS.P99 || q.Used >= q.Entitled || b.Used < 0.95*b.Entitled {
			t.Errorf("%s waits for %v s and lacks %.2f on one member of three; %v s and %.2f on all",
				q.Queue, q.WaitS, q.Short, b.WaitS, b.Short)
		}
	}
	if first.Applications.Submitted != second.Applications.Submitted || first.Hash == second.Hash {
		t.Errorf("%+v, %s; %+v, %s", first.Applications, first.Hash, second.Applications, second.Hash)
	}

	// The document that names one queue leaves the others as they are.
	doc = s.json(append(size, "--against", s.file("prod.json", `{"root.prod":`+toOne+`}`))...)
	if doc.Runs[0].Name != "balanced" || !reflect.DeepEqual(doc.Runs[0].Members, second.Members) {
		t.Errorf("without --policy the first run is called %s, and is not the balanced one", doc.Runs[0].Name)
	}
	if q := doc.Runs[1].Queues[1]; q.Queue != "root.prod" || q.MembersOfApp != 1 {
		t.Errorf("root.prod has its own policy: %+v", q)
	}
	if m := doc.Runs[1].Members[0]; m.Applications < 10 {
		t.Errorf("and root.prod alone: %s has %+v", m.Member, m)
	}
}

// A file against itself: the same events, and so equal figures, in each form.
func TestAPolicyAgainstItselfIsEqual(t *testing.T) {
	s := simulator{t, t.TempDir()}
	p := s.file("p.json", balanced)
	doc := s.json("--nodes", "5", "--cores", "4", "--faults", "--policy", p, "--against", p)
	a, b := &doc.Runs[0], &doc.Runs[1]
	if a.Name != p+" (first)" || b.Name != p+" (second)" || a.Hash != b.Hash || a.Hash == "" {
		t.Fatalf("%s has the hash %s, %s the hash %s", a.Name, a.Hash, b.Name, b.Hash)
	}
	if b.Name = a.Name; !reflect.DeepEqual(a, b) || a.Containers.Granted < 100 {
		t.Errorf("%+v\n%+v", a, b)
	}
	table := s.run(exitOK, "--nodes", "5", "--cores", "4", "--faults", "--policy", p, "--against", p)
	lines := map[string][]string{}
	for line := range strings.Lines(table) {
		if w := strings.Fields(line); len(w) > 4 && (w[2] == "(first)" || w[2] == "(second)") {
			lines[w[0]] = append(lines[w[0]], strings.Join(w[3:], " "))
		}
	}
	for _, name := range []string{"root.default", "root.prod", "root.research", "sc-1", "sc-2", "sc-3"} {
		if l := lines[name]; len(l) != 2 || l[0] != l[1] {
			t.Errorf("%s: %q", name, l)
		}
	}
	for i, q := range a.Queues {
		if want := fmt.Sprintf("%d %d %s", q.Applications, q.Containers, compare.Seconds(q.WaitS.P50)); !strings.HasPrefix(
			lines[string(q.Queue)][0], want) {
			t.Errorf("line %d of the table is %q, and the document says %q", i, lines[string(q.Queue)], want)
		}
	}
}

// Queues of a directory: use is compared with their guarantees, and jobs go to them by user or by size.
func TestTheQueuesOfADirectoryAreSimulated(t *testing.T) {
	s := simulator{t, t.TempDir()}
	conf := filepath.Dir(s.file("conf/capacity-scheduler.xml", capacityFile(map[string]string{
		"root.queues": "short,long,closed", "root.short.capacity": "40", "root.long.capacity": "50", "root.closed.capacity": "10",
		"root.closed.state": "STOPPED", "root.short.user-limit-factor": "3", "root.long.user-limit-factor": "2",
	})))
	of := func(doc ran, run int) map[creel.QueuePath]compare.Queue {
		out := map[creel.QueuePath]compare.Queue{}
		for _, q := range doc.Runs[run].Queues {
			out[q.Queue] = q
		}
		return out
	}
	doc := s.json("--nodes", "3", "--cores", "2", "--conf", conf)
	q := of(doc, 0)
	if q["root.short"].Applications == 0 || q["root.long"].Applications == 0 || q["root.closed"].Applications != 0 ||
		!strings.Contains(strings.Join(doc.Notes, "\n"), "users submit to the 2 leaf queues, in turn") {
		t.Errorf("%v: %v", doc.Notes, q)
	}
	doc = s.json("--nodes", "3", "--cores", "2", "--conf", conf, "--by-size", "root.short=5,root.long")
	q = of(doc, 0)
	if short := q["root.short"]; short.Containers > 5*int64(short.Applications) || short.Containers == 0 {
		t.Errorf("jobs of five tasks at most: %+v", short)
	}
	if e := slices.Max(q["root.long"].EntitledOver); e != 0.5 {
		t.Errorf("root.long wants more than its half, and is entitled to %v", e)
	}

	// Against other queues, and against one setting of them.
	doc = s.json("--nodes", "3", "--cores", "2", "--conf", conf, "--by-size", "root.short=5,root.long",
		"--against-define", "yarn.scheduler.capacity.root.long.maximum-capacity=50")
	a, b := slices.Max(of(doc, 0)["root.long"].UsedOver), slices.Max(of(doc, 1)["root.long"].UsedOver)
	if a < 0.6 || b > 0.5 || b < 0.4 || doc.Runs[0].Name != "as it is" {
		t.Errorf("%s: root.long uses %v, and with a maximum of a half %v", doc.Runs[0].Name, a, b)
	}
	other := filepath.Dir(s.file("other/capacity-scheduler.xml", capacityFile(map[string]string{
		"root.queues": "all", "root.all.capacity": "100"})))
	doc = s.json("--nodes", "3", "--cores", "4", "--conf", conf, "--against-conf", other)
	if b := of(doc, 1); len(b) != 1 || b["root.all"].Applications != doc.Runs[0].Applications.Submitted {
		t.Errorf("the second run has the queues %v", b)
	}
}

func capacityFile(keys map[string]string) string {
	var b strings.Builder
	b.WriteString("<configuration>")
	for k, v := range keys {
		fmt.Fprintf(&b, "<property><name>yarn.scheduler.capacity.%s</name><value>%s</value></property>", k, v)
	}
	return b.String() + "</configuration>"
}

// The command of docs/bench/preemption.md, over an hour of its day: its configuration has the two queues, and
// preemption makes the difference that the page reports.
func TestTheFiguresOfPreemptionAreRepeated(t *testing.T) {
	page, err := os.ReadFile("../../docs/bench/preemption.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(page), "    creel sim ")
	command, _, _ = strings.Cut(command, "\n\n")
	args := strings.Fields(strings.ReplaceAll(command, "\\\n", " "))
	if i := slices.Index(args, "docs/bench/preemption"); i > 0 {
		args[i] = "../../docs/bench/preemption"
	}
	doc := simulator{t, t.TempDir()}.json(append(args, "--hours", "9-10")...)
	if len(doc.Runs) != 2 || len(doc.Runs[0].Queues) != 2 || len(doc.Runs[1].Members) != 3 || doc.Runs[1].Members[0].Nodes != 50 {
		t.Fatalf("creel sim %v: %v", args, doc.Notes)
	}
	off, on := doc.Runs[0], doc.Runs[1]
	short, sooner := off.Queues[1], on.Queues[1]
	if short.Queue != "root.short" || sooner.WaitS.P99 >= short.WaitS.P99 || sooner.StartS.P99 >= short.StartS.P99 {
		t.Errorf("short jobs wait for %+v and start after %+v; with preemption %+v and %+v",
			short.WaitS, short.StartS, sooner.WaitS, sooner.StartS)
	}
	if off.WorkLost != (compare.Lost{}) || on.WorkLost.Containers < 20 || on.WorkLost.CoreHours < 0.1 || on.WorkLost.MemoryGiBHours < 0.1 {
		t.Errorf("%+v is lost, %+v without preemption", on.WorkLost, off.WorkLost)
	}
}

// Refusals by policies and queues are counted and break no invariant.
func TestRefusalsAreCounted(t *testing.T) {
	s := simulator{t, t.TempDir()}
	closed := s.file("closed.json", `{"root":`+balanced+`,"root.prod":{"home":{"policy":"reject"}}}`)
	doc := s.json("--nodes", "4", "--policy", closed)
	for _, q := range doc.Runs[0].Queues {
		if prod := q.Queue == "root.prod"; prod != (q.Refused > 0) || prod && q.Refused != q.Applications || q.Failed > 0 {
			t.Errorf("%+v", q)
		}
	}
	if !doc.Runs[0].Good || !strings.Contains(strings.Join(doc.Notes, "\n"), "applications were refused") {
		t.Errorf("%v", doc.Notes)
	}
}

// A federation in a file, as creel policy view prints one, and a live one.
func TestAViewIsSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; ./test unit runs it")
	}
	s := simulator{t, t.TempDir()}
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1, Nodes: 3, Settings: []string{
		"yarn.scheduler.capacity.root.queues=a,b",
		"yarn.scheduler.capacity.root.a.capacity=75", "yarn.scheduler.capacity.root.b.capacity=25",
	}})
	if _, err := f.Store.PutPolicy(t.Context(), statestore.PolicyWrite{
		Queue: "root.a", Document: []byte(`{"home":{"policy":"weighted","weights":{"` + string(f.Members[1].ID) + `":1}},"split":{"policy":"home"}}`),
	}); err != nil {
		t.Fatal(err)
	}
	live := []string{"--view", "live", "--server", f.Routers[0].Web, "--user", "root"}
	f.Until("the router has the policy", func() bool {
		return len(f.Routers[0].Server.View().Policies.All()) > 0
	})
	doc := s.json(append(live, "--against", s.file("all.json", balanced))...)
	if doc.Runs[0].Name != "in force" || len(doc.Runs[0].Members) != 2 {
		t.Fatalf("%s: %v", doc.Runs[0].Name, doc.Notes)
	}
	for i, m := range doc.Runs[0].Members {
		if m.Member != f.Members[i].ID || m.Nodes != 3 {
			t.Errorf("%+v", m)
		}
	}
	a, b := doc.Runs[0].Queues[0], doc.Runs[1].Queues[0]
	if a.Queue != "root.a" || a.MembersOfApp != 1 || a.Applications == 0 || a.Applications != b.Applications {
		t.Errorf("by what is in force %+v, by the file %+v", a, b)
	}
	if x, y := doc.Runs[0].Members[0], doc.Runs[1].Members[0]; x.Applications >= y.Applications {
		t.Errorf("root.a is sent to the other member: %d at home in %s, by the file %d", x.Applications, x.Member, y.Applications)
	}

	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"policy", "view", "--server", f.Routers[0].Web, "--user", "root"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var view rest.ViewDoc
	if err := json.Unmarshal(out.Bytes(), &view); err != nil || len(view.Members) != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	file := s.json("--view", s.file("view.json", out.String()), "--policy", s.file("all.json", balanced))
	file.Runs[0].Name = doc.Runs[1].Name
	if !reflect.DeepEqual(file.Runs[0].Queues, doc.Runs[1].Queues) || file.Runs[0].Hash != doc.Runs[1].Hash {
		t.Errorf("the view in a file gives other figures than the live one it is of")
	}
}

// Invalid input is reported at once, with what to try.
func TestComparisonRefusesInvalidInput(t *testing.T) {
	s := simulator{t, t.TempDir()}
	good, dir := s.file("good.json", balanced), s.dir
	broken := s.file("broken.json", `{"home":`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"--policy " + dir + "/nix.json", "--policy: open"},
		{"--policy " + broken, "has unexpected JSON"},
		{"--policy " + s.file("a.json", `{"home":{"policy":"nonsense"}}`), "balanced, hash"},
		{"--policy " + s.file("b.json", `{"home":{"policy":"weighted","weights":{"east":1}}}`), "east"},
		{"--policy " + s.file("c.json", `{"root.a":{},"home":{}}`), "neither one document nor one for each queue"},
		{"--policy " + good + " --against " + s.file("d.json", `{"hom":{}}`), "hom"},
		{"--conf " + dir + "/nix", "not a directory with a Hadoop configuration"},
		{"--against-conf " + dir + "/nix", "not a directory with a Hadoop configuration"},
		{"--conf " + filepath.Dir(s.file("bad/capacity-scheduler.xml", "<configuration><property>")), "capacity-scheduler.xml"},
		{"-D yarn.scheduler.capacity.root.queues=a", "sum to 0 percent, not to 100"},
		{"-D creel.nix=1", "creel.nix"},
		{"-D yarn.scheduler.capacity.root.queues=prod -D yarn.scheduler.capacity.root.prod.capacity=100 " +
			"-D yarn.scheduler.capacity.root.prod.state=STOPPED", "no queue of the configuration takes applications"},
		{"--view " + broken, "has unexpected JSON"},
		{"--view " + s.file("e.json", `{"members":[]}`), "no member is active and has nodes"},
		{"--view " + s.file("f.json", `{"members":[{"id":"a","report":`+report(4096, 4096)+`}]}`), "give --conf DIR"},
		{"--view " + s.file("g.json", `{"members":[{"id":"a","state":"ill"}]}`), "none of active"},
		{"--view live --nodes 4", "leave out --nodes"},
		{"--against-define x=1 --view " + viewOfOne(s), "give --conf DIR"},
		{"--policy " + good + " --seeds 3", "--seeds does not go with"},
		{"--policy " + good + " --log " + dir + "/log", "--log does not go with"},
		{"-o nonsense", "unknown output"},
		{"--html " + dir + "/nix/a.html", "--html"},
		{"--by-size root.nix", "no queue \"root.nix\""},
		{"--by-size root.prod=5,root.default=3", "as large jobs"},
		{"--by-size root.prod=5", "the last queue has no bound"},
		{"--by-size root.prod=x,root.default", "no number of tasks"},
	} {
		text := s.run(exitUsage, strings.Fields(c.args)...)
		if !strings.Contains(text, c.want) {
			t.Errorf("creel sim %s says %q, want %q", c.args, text, c.want)
		}
	}
}

// viewOfOne is a view of a member with a queue.
func viewOfOne(s simulator) string {
	r := strings.TrimSuffix(report(40960, 40960), "}") +
		`,"creel":{"queues":[{"queue":"root.a","capacity":{"memory":40960,"vCores":40}}]}}`
	return s.file("one-view.json", `{"members":[{"id":"a","report":`+r+`}]}`)
}
