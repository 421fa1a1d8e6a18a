// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

func TestMain(m *testing.M) { rm.Main(m) }

// A request is one line of testdata/requests.txt: a name, a method, a path and
// perhaps a body. {running} and the like stand for ids of the played state.
type request struct{ name, method, path, body string }

// A rule is one line of testdata/known.txt: fields known to differ, and why.
type rule struct {
	pattern, kind, why string
	match              *regexp.Regexp
	used               bool
}

// The kinds of difference.
const (
	differs = "differs" // the values differ
	missing = "missing" // Hadoop has it and we do not
	extra   = "extra"   // we have it and Hadoop does not
	anyhow  = "any"     // all three
	may     = "may"     // all three, at one moment and not at another
	same    = "same"    // none of them, although another rule knows of the path
)

//go:embed testdata/requests.txt
var requestLines string

//go:embed testdata/known.txt
var knownLines string

//go:embed testdata/fair-requests.txt
var fairRequestLines string

//go:embed testdata/fair-known.txt
var fairKnownLines string

func lines(t *testing.T, text, separator string, fields int) (out [][]string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, separator, fields)
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if len(parts) < 3 {
			t.Fatalf("not understood: %s", line)
		}
		out = append(out, append(parts, "")[:fields])
	}
	return out
}

func requests(t *testing.T, text string) (out []request) {
	for _, p := range lines(t, text, " ", 4) {
		out = append(out, request{p[0], p[1], p[2], p[3]})
	}
	return out
}

func rules(t *testing.T, text string) (out []*rule) {
	for _, p := range lines(t, text, "|", 3) {
		if !slices.Contains([]string{differs, missing, extra, anyhow, may, same, refused, taken, read, fault}, p[1]) || p[2] == "" {
			t.Fatalf("not understood: %v", p)
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(p[0]), `\*`, ".*")
		out = append(out, &rule{pattern: p[0], kind: p[1], why: p[2], match: regexp.MustCompile("^" + pattern + "$")})
	}
	return out
}

// excused finds the rule that knows of a difference.
func excused(known []*rule, kind, path string) bool {
	ok := false
	for _, r := range known {
		if r.kind == same && r.match.MatchString(path) {
			return false
		}
		if (r.kind == kind || r.kind == anyhow || r.kind == may) && r.match.MatchString(path) {
			r.used, ok = true, true
		}
	}
	return ok
}

// vars are the ids of a played state, by the names that requests use.
func (s *system) vars() *strings.Replacer {
	pairs := []string{"{none}", "application_1_0001"}
	for name, id := range s.apps {
		attempt := strings.Replace(id.String(), "application", "appattempt", 1) + "_000001"
		container := strings.Replace(id.String(), "application", "container"+s.epochs[id], 1) + "_01_000001"
		pairs = append(
			pairs,
			"{"+name+"}",
			id.String(),
			"{"+name+".attempt}",
			attempt,
			"{"+name+".container}",
			container,
		)
	}
	return strings.NewReplacer(pairs...)
}

// answer sends one request and returns the answer as facts. It replaces what differs between any two
// ResourceManagers: start time and address.
func (s *system) answer(t *testing.T, q request, accept string) facts {
	t.Helper()
	vars := s.vars()
	req, err := http.NewRequestWithContext(
		t.Context(),
		q.method,
		"http://"+s.Web+vars.Replace(q.path),
		strings.NewReader(vars.Replace(q.body)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	switch {
	case strings.HasPrefix(q.body, "<"):
		req.Header.Set("Content-Type", "application/xml")
		req.Header.Set("Accept", "application/xml")
		accept = "application/xml"
	case q.body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", s.name, q.method, q.path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("CREEL_REST_DUMP"); dir != "" { // to inspect the answers
		os.WriteFile(filepath.Join(dir, s.name+"."+q.name+strings.ReplaceAll(accept, "/", ".")), b, 0o600)
	}
	text := s.same(string(b))
	kind := res.Header.Get("Content-Type")
	f := facts{}
	switch {
	case strings.Contains(kind, "html"): // pages are not compared
	case strings.HasPrefix(text, "{"):
		f, err = readJSON([]byte(text))
	case strings.HasPrefix(text, "<"):
		f, err = readXML([]byte(text))
	default:
		f.add("TEXT", strconv.Quote(text))
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, q.name, err)
	}
	f["STATUS"] = strconv.Itoa(res.StatusCode)
	if l := res.Header.Get("Location"); l != "" {
		f["LOCATION"] = s.same(l)
	}
	if accept != "" && len(b) > 0 {
		f["TYPE"], _, _ = strings.Cut(kind, ";")
	}
	return f
}

// equal compares values; floats may differ in their last digit, which Java's
// and our order of operations leave open.
func equal(a, b string) bool {
	if a == b {
		return true
	}
	number := func(s string) (float64, bool) {
		if s = strings.Trim(s, `"`); !strings.Contains(s, ".") {
			return 0, false
		}
		v, err := strconv.ParseFloat(s, 64)
		return v, err == nil
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	return ok1 && ok2 && (a[0] == '"') == (b[0] == '"') && math.Abs(x-y) <= 1e-5*math.Max(math.Abs(x), math.Abs(y))
}

// differences returns the differences between two answers that no rule excuses.
func differences(known []*rule, where string, theirs, ours facts) (found []string) {
	for _, path := range slices.Sorted(maps.Keys(theirs)) {
		got, ok := ours[path]
		switch {
		case !ok && !excused(known, missing, where+path):
			found = append(found, fmt.Sprintf("missing  %s%s = %s", where, path, theirs[path]))
		case ok && !equal(theirs[path], got) && !excused(known, differs, where+path):
			found = append(found, fmt.Sprintf("differs  %s%s = %s, not %s", where, path, got, theirs[path]))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		if _, ok := theirs[path]; !ok && !excused(known, extra, where+path) {
			found = append(found, fmt.Sprintf("extra    %s%s = %s", where, path, ours[path]))
		}
	}
	return found
}

func compare(t *testing.T, where, file string, known []*rule, name string, theirs, ours facts) {
	t.Helper()
	if found := differences(known, where, theirs, ours); len(found) > 0 {
		t.Errorf("%d differences from %s that %s does not know:\n%s", len(found), name, file, strings.Join(found, "\n"))
	}
}

// patient makes an AM's start retry on a node without a listener, for longer than any machine takes to read the
// documents.
var patient = hadoop.Conf{"yarn.client.nodemanager-connect.max-wait-ms": "3600000"}

// played starts both ResourceManagers with a configuration and brings them into
// the state that is compared.
func played(t *testing.T, conf hadoop.Conf) (theirs, ours *system) {
	t.Helper()
	conf = conf.With(patient)
	theirRM := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	theirs = newSystem(t, "Hadoop", theirRM.Process, theirRM.Addresses)
	ourRM := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	ours = newSystem(t, "creel", ourRM.Process, ourRM.Addresses)
	theirs.play()
	ours.play()
	return theirs, ours
}

// Every document and every change, asked of both in the same state.
func TestDocuments(t *testing.T) {
	theirs, ours := played(t, nil)
	// Hadoop's beans are copies that it refreshes every ten seconds.
	theirs.until("its beans have caught up", func() bool {
		const bean = ".beans[Hadoop:service=ResourceManager,name="
		queue := theirs.answer(
			t,
			request{
				name:   "beans",
				method: "GET",
				path:   "/jmx?qry=Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1=default",
			},
			"",
		)
		nodes := theirs.answer(
			t,
			request{name: "beans", method: "GET", path: "/jmx?qry=Hadoop:service=ResourceManager,name=ClusterMetrics"},
			"",
		)
		return queue[bean+"QueueMetrics,q0=root,q1=default].PendingContainers"] == "5" &&
			nodes[bean+"ClusterMetrics].NumActiveNMs"] == "2"
	})
	compareAll(t, theirs, ours, requests(t, requestLines), "testdata/known.txt", rules(t, knownLines))
	compareActivities(t, theirs, ours)
}

// Recorded activities of a node have the fields of Hadoop's, wherever both have something to record.
func compareActivities(t *testing.T, theirs, ours *system) {
	t.Helper()
	const path = "/ws/v1/cluster/scheduler/activities?nodeId=127.0.0.2:1"
	shape := func(s *system) map[string]bool {
		fields := map[string]bool{}
		s.until("activities are recorded", func() bool {
			var doc map[string]any
			if err := json.Unmarshal(s.get(t, path), &doc); err != nil {
				t.Fatal(err)
			}
			shapeOf("", doc, fields)
			return fields["activities.allocations"]
		})
		return fields
	}
	a, b := shape(theirs), shape(ours)
	for _, field := range []string{
		"activities.nodeId", "activities.timestamp", "activities.dateTime", "allocations.partition",
		"allocations.finalAllocationState", "allocations.root", "root.name", "root.allocationState", "root.children",
		"children.name", "children.allocationState", "children.diagnostic",
	} {
		if !a[field] || !b[field] {
			t.Errorf("activities: %s is at Hadoop's %v, at ours %v", field, a[field], b[field])
		}
	}
	for field := range b {
		// The diagnostic of the whole is there while the next recording is awaited.
		if !a[field] && !strings.HasPrefix(field, "children.") && field != "activities.diagnostic" {
			t.Errorf("activities: Hadoop's has no %s", field)
		}
	}
}

// shapeOf collects the names of a document's fields with the name of the object that has them.
func shapeOf(of string, v any, fields map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			fields[of+"."+name] = true
			shapeOf(name, below, fields)
		}
	case []any:
		for _, one := range v {
			shapeOf(of, one, fields)
		}
	}
}

// get returns the body of a document.
func (s *system) get(t *testing.T, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Web+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.name, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The documents about queues, under FairScheduler's file. The file declares the queues of the users whose
// applications end: an undeclared queue is removed when it is empty, when Hadoop next reads the file, at most 10 s
// later.
func TestFairSchedulerDocuments(t *testing.T) {
	const file = `<?xml version="1.0"?>
<allocations>
  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
  <queue name="default"><schedulingPolicy>fair</schedulingPolicy><weight>3</weight><minResources>1024 mb,1 vcores</minResources><maxResources>12288 mb,12 vcores</maxResources><maxRunningApps>9</maxRunningApps></queue>
  <queue name="other"><schedulingPolicy>fifo</schedulingPolicy><maxAMShare>0.8</maxAMShare></queue>
  <queue name="dept" type="parent"><queue name="a"><weight>2</weight></queue><queue name="b"><allowPreemptionFrom>false</allowPreemptionFrom></queue></queue>
  <queue name="bob"/><queue name="carol"/>
</allocations>`
	allocations := filepath.Join(t.TempDir(), "fair-scheduler.xml")
	if err := os.WriteFile(allocations, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := hadoop.Conf{
		"yarn.resourcemanager.scheduler.class":   "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
		"yarn.scheduler.fair.allocation.file":    allocations,
		"yarn.scheduler.fair.update-interval-ms": "50",
	}
	theirs, ours := played(t, conf)
	theirs.until("its shares have caught up", func() bool {
		f := theirs.answer(
			t,
			request{name: "shares", method: "GET", path: "/ws/v1/cluster/scheduler"},
			"application/json",
		)
		return f[".scheduler.schedulerInfo.rootQueue.fairResources.memory"] == "16384"
	})
	compareAll(t, theirs, ours, requests(t, fairRequestLines), "testdata/fair-known.txt", rules(t, fairKnownLines))
}

// compareAll asks both for everything, in JSON and in XML. A rule that excuses
// nothing any more is reported.
func compareAll(t *testing.T, theirs, ours *system, all []request, file string, known []*rule) {
	t.Helper()
	fields := 0
	for _, q := range all {
		accepts := []string{"application/json"}
		switch {
		case !strings.HasPrefix(q.path, "/ws/"):
			accepts = []string{""}
		case q.method == http.MethodGet:
			accepts = append(accepts, "application/xml")
		}
		for _, accept := range accepts {
			where := q.name
			a := theirs.answer(t, q, accept)
			if strings.HasSuffix(accept, "xml") {
				if a["STATUS"] == "500" {
					continue // Hadoop cannot write its own errors as XML
				}
				where += ":xml"
			}
			compare(t, where, file, known, theirs.name, a, ours.answer(t, q, accept))
			fields += len(a)
		}
	}
	unused(t, file, known)
	t.Logf("%d fields compared, %d rules", fields, len(known))
}

// unused reports rules that excuse nothing.
func unused(t *testing.T, file string, known []*rule) {
	t.Helper()
	for _, r := range known {
		if !r.used && r.kind != may && r.kind != same {
			t.Errorf("%s: %s | %s is no difference any more", file, r.pattern, r.kind)
		}
	}
}
