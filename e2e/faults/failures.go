// SPDX-License-Identifier: Apache-2.0

package faults

// root is the folder of the module.
const root = "../.."

// failure is what a test of this package makes happen, and what it holds.
type failure struct {
	in      string // the package of its test, "" for this one
	test    string // the function that proves it
	what    string // fails
	users   string // what they see
	log     string // what the log says, word for word as far as it is given
	metric  string
	alert   string
	breach  bool   // the metric moves only when the promise is broken
	as      string // the test whose row tells what operators see, where this one starts no daemon
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
		as:      "TestWhenTheStoreIsIll",
		promise: "what was acknowledged is there; no application has two homes",
	},
	{
		test:    "TestAFullDiskMakesAResourceManagerReadOnly",
		what:    "the disk of a ResourceManager's journal is full",
		users:   "submissions to it get 507 or an IllegalStateException; through a router they go elsewhere",
		log:     "journal disk full",
		metric:  "creel_rm_journal_full",
		alert:   "CreelJournalFull",
		promise: "running applications go on and finish, kill -9 loses nothing; it recovers when there is room",
	},
	{
		test:    "TestAFailedSyncDoublesNothing",
		what:    "the disk of a ResourceManager's journal fails a sync",
		users:   "submissions under way get 503 with Retry-After, and success when they repeat",
		log:     "journal: failed to write",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the ResourceManager ends, and resumes when it is started again; each application runs in one subcluster",
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
		log:     "connections were ended that did not send in time what they began",
		metric:  "creel_http_connections_slow_total",
		alert:   "CreelConnectionsSlow",
		promise: "at most 64 MB more are resident",
	},
	{
		test:    "TestSlowHeadersAndBodiesEndAsTheSettingSays",
		what:    "a client sends half of its headers or of a body",
		users:   "the connection ends after creel.http.read-header-timeout",
		log:     "connections were ended that did not send in time what they began",
		metric:  "creel_http_connections_slow_total",
		alert:   "CreelConnectionsSlow",
		promise: "nothing is held for longer",
	},
	{
		in:      "amrmproxy",
		test:    "TestManyPrioritiesCostLinearWork",
		what:    "an AM asks at 100,000 priorities in one allocate",
		users:   "the answer takes seconds",
		promise: "the work of its proxy grows as their number, not as its square",
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
