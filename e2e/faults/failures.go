// SPDX-License-Identifier: Apache-2.0

package faults

// root is the folder of the module.
const root = "../.."

// failure describes the fault that a test of this package injects and its expected effects.
type failure struct {
	in      string // the package of its test, "" for this one
	test    string // the function that proves it
	what    string // fails
	users   string // what users see
	log     string // words of the log line
	metric  string
	alert   string
	breach  bool   // the metric moves only when the promise is broken
	as      string // the test whose row describes the operators' view, if this one starts no daemon
	promise string
}

// failures are the rows of docs/operations/failures.md: one for each test of this
// package, and for each story of the faults of e2e/federation.
var failures = []failure{
	{
		test:    "TestPausedResourceManagerExpiresNothing",
		what:    "a ResourceManager is paused for longer than nodes and AMs may be silent",
		users:   "calls to it wait",
		log:     "this process was paused",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "every application and node continues",
	},
	{
		test:    "TestPausedRouterProxyOrStoreLosesNothing",
		what:    "the router, the proxy, the store, or all three are paused",
		users:   "calls wait",
		log:     "this process was paused",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "no member and no AM is lost; every application finishes",
	},
	{
		test:    "TestRandomFaultsLoseAndDoubleNothing",
		what:    "any two of these die or pause at once: ResourceManagers, routers, proxies, nodes, the store",
		users:   "calls wait, or get a hint to repeat",
		log:     "this process was paused",
		metric:  "creel_process_paused_seconds_total",
		alert:   "CreelProcessPaused",
		promise: "every accepted application finishes once, in its first attempt; nothing is left behind",
	},
	{
		test:    "TestLateSubmissionsDoubleNothing",
		what:    "a submission or a question arrives after its router timed out",
		users:   "503 with Retry-After; a repeat succeeds",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "each application runs in one subcluster",
	},
	{
		test:    "TestLostSubmissionLeavesHadoopHomeAfterWait",
		what:    "a submission to a Hadoop ResourceManager, or its answer, is lost",
		users:   "503 with Retry-After until its home knows it, or has not known it for creel.router.unclear-wait",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "each application runs in one subcluster",
	},
	{
		test:    "TestAPoisonedMemberOfRedisIsNotBelieved",
		what:    "an attacker writes a member into the store",
		users:   "nothing",
		metric:  "creel_members_refused",
		alert:   "CreelMembersRefused",
		promise: "no application goes there",
	},
	{
		test:    "TestWhenTheStoreIsIll",
		what:    "the state store is slow, silent, cut off, gone, read-only, out of memory, or comes back empty",
		users:   "new applications get 503 with Retry-After; known ones continue",
		log:     "state store: it does not answer",
		metric:  "creel_store_reachable",
		alert:   "CreelStoreUnreachable",
		promise: "members keep their state and epoch; no application has two homes",
	},
	{
		test:    "TestWhenTheStoreFailsOver",
		what:    "the primary of the state store dies, and Sentinels promote its replica",
		users:   "new applications get 503 with Retry-After until then",
		log:     "state store: it does not answer",
		metric:  "creel_store_reachable",
		alert:   "CreelStoreUnreachable",
		promise: "with wait=1 no acknowledged write is lost",
	},
	{
		test:    "TestStoreEmptiedWhileRoutersAreDownDoublesNothing",
		what:    "the state store is emptied while no router runs",
		users:   "503 with Retry-After until every member has reported its applications",
		log:     "state store rebuilt",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "every application keeps its one home",
	},
	{
		test:    "TestStoreGoesBackUnderAnAM",
		what:    "the state store goes back by some seconds: to a snapshot, or to a replica without the last writes",
		users:   "nothing",
		log:     "the state store went back",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "every AM continues, and finishes in its first attempt",
	},
	{
		test:    "TestOldBackupOfTheStoreIsRestored",
		what:    "an older backup of the state store is restored, or a failover loses its last writes",
		users:   "503 with Retry-After until every member has reported its applications",
		log:     "the state store went back to an earlier state; the ResourceManagers are asked what they run",
		metric:  "creel_router_reconcile_found_total",
		alert:   "CreelApplicationAwayFromHome",
		breach:  true,
		promise: "every application keeps its one home; drains and policies that a router knew are restored",
	},
	{
		test:    "TestKillInTheMiddleOfClaims",
		what:    "the state store is killed during claims",
		users:   "calls wait",
		as:      "TestWhenTheStoreIsIll",
		promise: "no acknowledged claim is lost; no application has two homes",
	},
	{
		test:    "TestFullDiskMakesResourceManagerReadOnly",
		what:    "the disk of a ResourceManager's journal is full",
		users:   "submissions to it get 507 or an IllegalStateException; routers send them elsewhere",
		log:     "journal disk full",
		metric:  "creel_rm_journal_full",
		alert:   "CreelJournalFull",
		promise: "running applications finish, kill -9 loses nothing; it recovers when the disk has space",
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
		test:    "TestRepeatAfterTheEndRunsNothing",
		what:    "a client repeats a submission after the application has ended and its ResourceManager forgot it",
		users:   "409, or a YarnException, with the end",
		promise: "the application runs once",
	},
	{
		test:    "TestARouterStartsWithoutTheStoresReplica",
		what:    "a router starts while the replicas that creel.store.wait-replicas asks for are away",
		users:   "new applications get 503 with Retry-After",
		log:     "the state store acknowledges no change: too few replicas",
		promise: "the router stays up, and is ready when a replica is there",
	},
	{
		test:    "TestACopiedDataDirectoryIsRefused",
		what:    "a copy of a member's data directory is started beside the living member",
		users:   "nothing",
		log:     "another process does, with the same data",
		promise: "the copy ends without becoming ready; the member goes on, unless the copy has --take-over",
	},
	{
		test:    "TestADuplicateMemberIsNotReady",
		what:    "a second ResourceManager is started under the name of a living member",
		users:   "nothing",
		log:     "no heartbeat",
		promise: "the second writes no ready file while the first lives",
	},
	{
		test:    "TestAnEmptyJournalIsNotServedUnasked",
		what:    "a member starts on an empty directory while the store has applications of it",
		users:   "the member is unavailable",
		log:     "living applications of",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "it does not serve without --accept-empty",
	},
	{
		test:    "TestTenThousandStrangersCostLittleMemory",
		what:    "10,000 idle and hostile connections hang on the ports of one process",
		users:   "nothing; calls of 1 MB succeed",
		log:     "closed slow connections",
		metric:  "creel_http_connections_slow_total",
		alert:   "CreelConnectionsSlow",
		promise: "at most 68 MB more are resident",
	},
	{
		test:    "TestSlowHeadersAndBodiesTimeOut",
		what:    "a client sends half of its headers or of a body",
		users:   "the connection ends after creel.http.read-header-timeout",
		log:     "closed slow connections",
		metric:  "creel_http_connections_slow_total",
		alert:   "CreelConnectionsSlow",
		promise: "no resource is held for longer",
	},
	{
		in:      "subcluster/rm/journal",
		test:    "TestAnEmptyFirstSegmentIsANewJournal",
		what:    "a ResourceManager dies in the middle of its very first start",
		users:   "nothing",
		promise: "the next start begins with a new journal",
	},
	{
		in:      "router/rest",
		test:    "TestAKeptKillNeedsNoProxyUser",
		what:    "the home of an application is away when its user kills it by REST, and allows the router no proxy user",
		users:   "202 with X-Kept",
		promise: "the application is killed when its home is back",
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
		users:   "nothing: the client uses the next router",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds",
	},
	{
		in:      "e2e/federation",
		test:    "TestFaults/proxies_killed",
		what:    "all AM-RM proxies die during a job, and are started again",
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
		what:    "another member with containers of a job dies, and stays down until the job has ended",
		users:   "nothing: its containers and asks are requested elsewhere",
		metric:  "up",
		alert:   "CreelDaemonDown",
		promise: "the job succeeds in its first attempt; when the member is back no UAM is left",
	},
}
