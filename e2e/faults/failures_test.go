// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/operations/failures.md")

// failure is what a test of this package makes happen, and what it holds.
type failure struct {
	in      string // the package of its test, "" for this one
	test    string // the function that proves it
	what    string // fails
	users   string // what they see
	log     string // what the log says, word for word as far as it is given
	metric  string
	alert   string
	breach  bool // the metric moves only when the promise is broken
	promise string
}

// failures are the rows of docs/operations/failures.md: one for each test of this
// package, and for each story of the faults of e2e/federation.
var failures = []failure{
	{
		test:    "TestAPausedResourceManagerBlamesNobody",
		what:    "a ResourceManager stands still for longer than nodes and AMs may be silent",
		users:   "calls to it wait",
		log:     "this process did not run",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "every application and node goes on",
	},
	{
		test:    "TestAPausedRouterProxyOrStoreBlamesNobody",
		what:    "the router, the proxy, the store, or all three stand still",
		users:   "calls wait",
		log:     "this process did not run",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "no member is lost, no AM given up; every application finishes",
	},
	{
		test:    "TestRandomFaultsLoseAndDoubleNothing",
		what:    "any of these parts dies or stands still, two at once: ResourceManagers, routers, proxies, nodes, the store",
		users:   "calls wait, or are told to come again",
		log:     "this process did not run",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "every application that was taken finishes, once, in its first attempt; nothing is left behind",
	},
	{
		test:    "TestWhatArrivesLateDoublesNothing",
		what:    "a submission or a question arrives when its router has given it up",
		users:   "503 with Retry-After, and success when they repeat",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "each application runs in one subcluster",
	},
	{
		test:    "TestALostSubmissionLeavesAHadoopHomeAfterItsWait",
		what:    "a submission to a Hadoop ResourceManager, or its answer, is lost",
		users:   "503 with Retry-After until its home knows it, or has answered for creel.router.unclear-wait that it does not",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "each application runs in one subcluster",
	},
	{
		test:    "TestAPoisonedMemberOfRedisIsNotBelieved",
		what:    "somebody writes a member of his own into the store",
		users:   "nothing",
		metric:  "creel_members_refused",
		alert:   "CreelMembersRefused",
		promise: "no application goes there",
	},
	{
		test:    "TestWhenTheStoreIsIll",
		what:    "the state store is slow, silent, cut off, gone, read-only, out of memory, or comes back empty",
		users:   "new applications get 503 with Retry-After; known ones go on",
		log:     "state store: it does not answer",
		metric:  "creel_store_reachable",
		alert:   "CreelStoreUnreachable",
		promise: "members keep their state and epoch; afterwards no application has two homes",
	},
	{
		test:    "TestWhenTheStoreFailsOver",
		what:    "the primary of the state store dies, and Sentinels promote its replica",
		users:   "new applications get 503 with Retry-After until then",
		log:     "state store: it does not answer",
		metric:  "creel_store_reachable",
		alert:   "CreelStoreUnreachable",
		promise: "with wait=1 nothing that was acknowledged is lost",
	},
	{
		test:    "TestAStoreEmptiedWhileAllRoutersAreDownDoublesNothing",
		what:    "the state store is emptied while no router runs",
		users:   "503 with Retry-After until every member has said what it runs",
		log:     "state store rebuilt",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "every application is where it was, once",
	},
	{
		test:    "TestKillInTheMiddleOfClaims",
		what:    "the state store is killed amid claims",
		users:   "calls wait",
		metric:  "creel_store_reachable",
		alert:   "CreelStoreUnreachable",
		promise: "what was acknowledged is there; no application has two homes",
	},
	{
		test:    "TestAFullDiskMakesAResourceManagerReadOnly",
		what:    "the disk of a ResourceManager's journal is full",
		users:   "submissions to it get 507 or an IllegalStateException; through a router they go elsewhere",
		log:     "the disk of the journal is full",
		metric:  "creel_rm_journal_full",
		alert:   "CreelJournalFull",
		promise: "running applications go on and finish, kill -9 loses nothing; it recovers when there is room",
	},
	{
		test:    "TestAnEmptyJournalIsNotServedUnasked",
		what:    "a member starts on an empty directory though the store has applications of it",
		users:   "the member is away",
		log:     "living applications of",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "nothing is served until somebody says so by --accept-empty",
	},
	{
		test:    "TestTenThousandStrangersCostLittleMemory",
		what:    "10,000 idle and hostile connections hang on the ports of one process",
		users:   "nothing; calls of 1 MB succeed",
		promise: "at most 64 MB more are resident",
	},
	{
		test:    "TestSlowHeadersAndBodiesEndAsTheSettingSays",
		what:    "a client sends half of its headers or of a body",
		users:   "the connection ends after creel.http.read-header-timeout",
		promise: "nothing is held for longer",
	},
	{
		in:      "e2e/federation",
		test:    "TestRouterKilledBetweenAnyTwoSteps",
		what:    "a router dies at any moment of a submission",
		users:   "the connection breaks; the same submission to another router succeeds",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "there is one application with one home",
	},
	{
		in:      "e2e/federation",
		test:    "TestFaults/router_killed_under_a_hadoop_client",
		what:    "a router dies while Hadoop's client submits",
		users:   "nothing: the client goes on with the next router",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds",
	},
	{
		in:      "e2e/federation",
		test:    "TestFaults/proxies_killed",
		what:    "all AM-RM proxies die amid a job, and are started again",
		users:   "calls of AMs wait",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds in its first attempt; no UAM is left",
	},
	{
		in:      "e2e/federation",
		test:    "TestFaults/home_restarted",
		what:    "the home of a job is killed and started again with its journal",
		users:   "calls to it wait",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds in its first attempt; no UAM is left",
	},
	{
		in:      "e2e/federation",
		test:    "TestFaults/second_killed",
		what:    "another member in which a job has containers dies, and stays away until the job has ended",
		users:   "nothing: what it had and was asked for is asked for elsewhere",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds in its first attempt; when the member is back no UAM is left",
	},
}

const root = "../.."

// The page says what the tests hold, every test of this package is on it, and what
// it names exists: the alert in deploy/prometheus/alerts.yml with the metric in its
// rule, the metric and the words of the log in the code.
func TestTheFailuresPageIsWhatTheTestsHold(t *testing.T) {
	var tests []string
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(b, -1) {
			if name := string(m[1]); name != t.Name() {
				tests = append(tests, name)
			}
		}
	}
	told, err := os.ReadFile("../federation/faults_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests = append(tests, "TestRouterKilledBetweenAnyTwoSteps")
	for _, m := range regexp.MustCompile(`(?m)^\t\t\{"(\w+)", \w+\},$`).FindAllSubmatch(told, -1) {
		tests = append(tests, "TestFaults/"+string(m[1]))
	}
	alerts, err := os.ReadFile(root + "/deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, rule := range strings.Split(string(alerts), "- alert: ")[1:] {
		name, body, _ := strings.Cut(rule, "\n")
		rules[name] = body
	}
	code := sources(t)
	for _, f := range failures {
		if !slices.Contains(tests, f.test) {
			t.Errorf("there is no test %s", f.test)
		}
		if f.alert != "" && !regexp.MustCompile(`\b`+f.metric+`\b`).MatchString(rules[f.alert]) {
			t.Errorf("%s: there is no alert %s, or its rule does not ask for %s", f.test, f.alert, f.metric)
		}
		if f.metric != "" && f.metric != "up" && !named(code, f.metric) {
			t.Errorf("%s: no code has the metric %s", f.test, f.metric)
		}
		if !strings.Contains(code, f.log) {
			t.Errorf("%s: no code says %q", f.test, f.log)
		}
	}
	for _, name := range tests {
		if !slices.ContainsFunc(failures, func(f failure) bool { return f.test == name }) {
			t.Errorf("%s has no row", name)
		}
	}
	const page = root + "/docs/operations/failures.md"
	want := failuresPage()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tests say: go test ./e2e/faults -run TestTheFailuresPage -update (%v)", page, err)
	}
}

// named reports whether code has a metric's name, or the beginning that names of
// its kind share: up to its third underscore.
func named(code, metric string) bool {
	parts := strings.SplitAfterN(metric, "_", 4)
	return strings.Contains(code, `"`+metric+`"`) || len(parts) == 4 && strings.Contains(code, `"`+strings.Join(parts[:3], "")+`"`)
}

// sources is all the code that ships.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "e2e" || d.Name() == ".git" || d.Name() == "yarnpb"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func failuresPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Failures

Made from the tests of e2e/faults, which with those of e2e/federation make each of these happen to real processes:
` + "`go test ./e2e/faults -run TestTheFailuresPage -update`" + `.

| what fails | what users see | what operators see | what is promised | the test |
| --- | --- | --- | --- | --- |
`)
	for _, f := range failures {
		var see []string
		if f.log != "" {
			see = append(see, fmt.Sprintf("log: %q", f.log))
		}
		if f.breach {
			see = append(see, "only if the promise is broken:")
		}
		if f.metric != "" {
			see = append(see, "`"+f.metric+"`")
		}
		if f.alert != "" {
			see = append(see, "alert "+f.alert)
		}
		if see == nil {
			see = []string{"nothing"}
		}
		test := "`" + f.test + "`"
		if f.in != "" {
			test += " of " + f.in
		}
		operators := strings.ReplaceAll(strings.Join(see, "; "), ":; ", ": ")
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.what, f.users, operators, f.promise, test)
	}
	return b.Bytes()
}
