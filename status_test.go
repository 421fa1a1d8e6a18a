// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateStatus = flag.Bool("update", false, "rewrite docs/status.md and the table of README.md")

// The states of a feature.
const (
	works   = "works"
	partial = "in part"
	absent  = "not there"
)

// feature is something that users of YARN, or of its federation, would look for.
type feature struct {
	area, what, state string
	lacks             string   // of one that works in part
	proofs            []string // package.Test; a feature that works has one, and what is absent none
}

// features are the rows of docs/status.md.
var features = []feature{
	{"submission", "submit, report, list and kill by Hadoop RPC: `yarn`, MapReduce, Tez, Flink, Skein and Spark, unmodified", works, "",
		[]string{"e2e/federation.TestClients"}},
	{"submission", "the same by REST", works, "",
		[]string{"e2e/federation.TestClients", "e2e/rest.TestPublicClientLibrary", "e2e/rest.TestAFederationAnswersAsOneResourceManager",
			"e2e/rest.TestAFederationAnswersAsOneResourceManagerUnderLabels"}},
	{"submission", "an application over several members is one: its report, lists under every filter, containers", partial,
		"of UAMs at Hadoop's members a list with a filter counts those that the filter lets pass, and the figures of the cluster and of queues count them as applications",
		[]string{"router/rest.TestAnApplicationIsOneThing", "router/rest.TestAnApplicationDoesNotEndWithItsUAM", "e2e/federation.TestMixed"}},
	{"submission", "an application runs once, in one place, whatever dies, stalls or comes late", works, "",
		[]string{"e2e/faults.TestWhatArrivesLateDoublesNothing", "e2e/faults.TestRandomFaultsLoseAndDoubleNothing"}},
	{"submission", "a kill, a move, a priority, a lifetime, a signal while its home is away is kept, and made when it is back", works, "",
		[]string{"router/rest.TestAnApplicationIsKilledWhileItsHomeIsAway",
			"router/rest.TestAnApplicationIsChangedWhileItsHomeIsAway", "statestore/intents.TestAMoveReachesTheUAMs",
			"router/rest.TestASignalWaitsForTheSubclusterOfItsContainer"}},
	{"submission", "delegation tokens of the routers, by RPC and REST: what one gave out each takes, until one has cancelled it", works, "",
		[]string{"e2e/federation.TestDelegationTokensHoldAtEveryRouter", "router/rest.TestADelegationTokenHoldsAtEveryRouter"}},
	{"submission", "reservations at a home that the policy of their queue chooses", partial,
		"creel's ResourceManagers refuse them: a queue of plans has its members among Hadoop's",
		[]string{"e2e/federation.TestReservationsInThePlansOfHadoopsMembers", "router/rest.TestReservationsAreAnsweredByTheirHome"}},
	{"submission", "`creel run`: a command in containers, watched to its end", works, "",
		[]string{"e2e/federation.TestRun", "cmd/creel.TestRunWatchesACommandToItsEnd"}},
	{"submission", "`creel app why`: why it is where it is and what it waits for, in numbers, the same at every router", works, "",
		[]string{"router/rest.TestEveryRouterTellsHowAHomeWasChosen", "cmd/creel.TestEverySurfaceTellsOfTheLimitOfAMs", "e2e/newcomer.TestTheFirstHour"}},

	{"asks", "an AM's asks go to many subclusters, home first", works, "",
		[]string{"e2e/federation.TestClients", "policies.TestAnApplicationSpansToTheFewestMembersThatHoldIt"}},
	{"asks", "where its data is: hosts and racks of all members, Hadoop's too", works, "", []string{"e2e/federation.TestMixed"}},
	{"asks", "a proxy that dies is followed by another, and nothing is lost", works, "",
		[]string{"e2e/federation.TestFaults", "e2e/faults.TestRandomFaultsLoseAndDoubleNothing"}},
	{"asks", "idle members are given back; a UAM that died is made again, at Hadoop's under an id of its own", partial,
		"not for MapReduce and Tez at Hadoop's, whose containers find data on a node by the application's id",
		[]string{"e2e/federation.TestMixed", "amrmproxy.TestScenarios", "amrmproxy.TestTheAMGetsWhatItAskedForAndNoMore",
			"subcluster/rm/rpc.TestAnUnmanagedAMThatHasEndedIsBegunAgain"}},
	{"asks", "node labels and resource types over members: homes and asks go where they are, what nobody has is refused", works, "",
		[]string{"e2e/federation.TestLabelsAndConstraintsOverMembers", "policies.TestNoMemberIsAskedForALabelThatItLacks",
			"policies.TestHomesHaveTheLabel"}},
	{"asks", "placement constraints over members", partial, "they hold within the home, which gets the scheduling requests whole",
		[]string{"e2e/federation.TestLabelsAndConstraintsOverMembers", "amrmproxy.TestScenarios"}},

	{"policies", "homes and splits by document for each queue: try, preview, diff, apply, history, rollback", works, "",
		[]string{"e2e/newcomer.TestTheFirstHour", "cmd/creel.TestPolicyCommands"}},
	{"policies", "two policies, or two configurations of queues, side by side in `creel sim`, on your own members and queues", works, "",
		[]string{"cmd/creel.TestTwoRunsDecideByTheirOwnPolicies", "cmd/creel.TestTheQueuesOfADirectoryAreSimulated",
			"cmd/creel.TestAViewIsSimulated", "e2e/dash.TestTheReportOfTwoSimulatedRuns"}},

	{"members", "creel's ResourceManagers: join, restart, leave, signed records", works, "",
		[]string{"e2e/federation.TestFaults", "e2e/faults.TestAPoisonedMemberOfRedisIsNotBelieved"}},
	{"members", "Hadoop's ResourceManagers behind `creel agent`, HA pairs too", partial,
		"RPC protection by authentication alone for AMs that are at home there",
		[]string{"e2e/federation.TestClients", "e2e/federation.TestMixed", "e2e/federation.TestPairOfHadoop",
			"e2e/federation.TestPairThatElects", "e2e/federation.TestMembersOfTwoReleasesOfHadoop",
			"e2e/faults.TestWhatArrivesLateDoublesNothing"}},
	{"members", "AMs at home in Hadoop's ResourceManagers log in there through the proxy, or by the ResourceManager's key file", partial,
		"key files of FileSystemRMStateStore alone, on a file system that is mounted beside the proxy",
		[]string{"e2e/federation.TestMixed", "amrmproxy/rpc.TestAnAMLogsInByTheKeyFileOfItsHome"}},
	{"members", "drain, undrain, deregister, remove; `yarn routeradmin`", partial, "a drain moves what waits, not what runs, and not out of or into Hadoop's ResourceManagers",
		[]string{"e2e/federation.TestClients", "e2e/newcomer.TestTheFirstHour", "router/operator.TestADrainIsDoneWhenNothingIsLeft", "e2e/federation.TestAMapReduceThatWaitsIsMovedOutOfADrainedMember", "router/server.TestThirtyWaitingApplicationsLeaveADrainedMemberThoughARouterDies"}},

	{"ResourceManager", "Hadoop's clients, NodeManagers and AMs; restart from its journal", works, "",
		[]string{"e2e/rm.TestUsersDoWhatTheyDoWithHadoop", "e2e/rm.TestJobsOutliveTheResourceManager"}},
	{"ResourceManager", "CapacityScheduler and FairScheduler: shares, limits, placement rules as Hadoop's", partial,
		"of AMs that run elsewhere Hadoop counts one smallest container, ours nothing",
		[]string{"e2e/rest.TestDocumentsOfManyConfigurations", "e2e/rest.TestDocumentsOfManyFairTrees",
			"e2e/scheduler.TestCapacitySharesAreThoseOfARealResourceManager",
			"e2e/scheduler.TestFairSharesAreThoseOfARealResourceManager",
			"e2e/scheduler.TestPlacementIsThatOfARealResourceManager"}},
	{"ResourceManager", "queues that mix percent, weight and absolute, type by type (`legacy-queue-mode.enabled=false`)", works, "",
		[]string{"e2e/rm.TestMixedQueuesAreThoseOfARealResourceManager",
			"subcluster/rm/sched.TestEveryDivisionIsThatOfTheSlowRule"}},
	{"ResourceManager", "queues changed by calls: `scheduler-conf`, `yarn schedulerconf`, kept in the journal, undone", works, "",
		[]string{"e2e/rm.TestQueuesAreChangedByHadoopsTools", "subcluster/rm/rest.TestQueuesThatCallsChangedOutliveARestart"}},
	{"ResourceManager", "preemption, of both schedulers and within a queue", partial,
		"Hadoop's members with FairScheduler take no part in the federation's budgets",
		[]string{"e2e/rm.TestAQueueBelowItsGuaranteeTakesFromHadoopsJobs", "e2e/federation.TestSparkGivesWayBehindTheProxy",
			"internal/app/sim.TestPreemptionShortensTheWaitsOfShortJobs",
			"subcluster/rm.TestPreemptionKeepsItsPromises",
			"e2e/scheduler.TestVictimsOfCapacitySchedulerAreThoseOfARealResourceManager",
			"policies/rebalancer/server.TestHomeAndSecondaryDoNotTakeForTheSameCauseTwice",
			"e2e/federation.TestHadoopTakesBackWithinTheBudgetOfTheFederation"}},
	{"ResourceManager", "node labels: partitions, capacities, default expressions, by RPC, REST and nodes' reports", works, "",
		[]string{"subcluster/rm.TestLabelledInvariantsHoldAfterEveryEvent", "e2e/rest.TestDocumentsOfManyConfigurations",
			"subcluster/rm.TestPreemptionKeepsItsPromisesInEachPartition", "subcluster/rm/rest.TestLabelsOverREST"}},
	{"ResourceManager", "node attributes: nodes' own and administrators', by RPC, `yarn nodeattributes`, REST; durable", works, "",
		[]string{"e2e/rm.TestTheCommandLinePrintsTheSame", "e2e/rm.TestNodeLabelsByHadoopsTools"}},
	{"ResourceManager", "placement constraints: tags, cardinality, attributes, and, or, namespaces; requests placed or rejected", works, "",
		[]string{"e2e/rm.TestPlacementSpecificationsOfTheDistributedShell",
			"e2e/rest.TestPlacementConstraintsAreThoseOfARealResourceManager",
			"subcluster/rm/sched.TestConstraintsAreKeptAtEachGrantAndKeepNobodyElseOff"}},
	{"ResourceManager", "who may speak which protocol, from where (`hadoop-policy.xml`), and lists of what one may view alone", works, "",
		[]string{"e2e/rm.TestServiceAuthorizationIsThatOfARealResourceManager",
			"router/rpc.TestServiceACLsHoldAtRoutersAndMembers", "e2e/rest.TestListsHideWhatOneMayNotView"}},
	{"ResourceManager", "an HA pair, Kerberos, TLS: asked for, they stop the start", absent, "", nil},
	{"ResourceManager", "how far nodes are with the logs of an application (`logAggregationStatus`), as they report it", works, "",
		[]string{"e2e/rm.TestLogsAreGatheredAsWithARealResourceManager", "router/rest.TestLogsAreThoseOfTheNodesOfAllMembers",
			"subcluster/rm/rest.TestAnApplicationSaysHowFarItsLogsAre",
			"subcluster/rm/logaggregation.TestTheStatusIsThatOfAllNodes", "subcluster/rm.TestNodesTellAnewOfLogsAfterARestart"}},
	{"ResourceManager", "delegation tokens by REST: refused, as by Hadoop's without Kerberos; routers have their own", absent, "", nil},
	{"ResourceManager", "a full disk makes it read-only, not ended", works, "",
		[]string{"e2e/faults.TestAFullDiskMakesAResourceManagerReadOnly"}},

	{"rebalancer", "a queue's maximum for the whole federation, held exactly", partial,
		"of Hadoop's, a cluster that grows may go over until the agent's next look",
		[]string{"policies/rebalancer/escrow.TestEveryOrderOfMessages",
			"policies/rebalancer/escrow.TestEveryOrderWithSettings",
			"internal/app/sim.TestFederationWideLimitsHoldUnderFaults",
			"policies/rebalancer/server.TestAStoreThatComesBackWithNothingLiftsNoMaximum",
			"e2e/federation.TestAMaximumHoldsOverHadoopsResourceManagerToo"}},
	{"rebalancer", "what each user of a queue may use in the whole federation, held exactly", partial,
		"members with Hadoop's ResourceManager take no part, and are named",
		[]string{"e2e/federation.TestAUserIsHeldToTheLimitInAllMembersTogether",
			"policies/rebalancer/escrow.TestEveryOrderWithUsers",
			"policies/rebalancer/server.TestAUserLimitHoldsForAllMembersTogether",
			"subcluster/rm.TestUsersGrowToTheirCapsAndNoFurther"}},
	{"rebalancer", "guarantees and weights for the whole federation, followed by homes, splits and capacities", partial,
		"capacities in Hadoop's ResourceManagers that are amounts, and FairScheduler's, do not follow the plan",
		[]string{"e2e/federation.TestAQueueRecoversItsGuaranteeOfTheFederationInOneMember",
			"policies/rebalancer.TestCapacitiesBringQueuesToTheirEntitlementWhereTheyWait",
			"e2e/federation.TestHadoopTakesBackWithinTheBudgetOfTheFederation",
			"internal/app/sim.TestFollowingThePlanBringsQueuesNearerToTheirEntitlement",
			"e2e/federation.TestUseFollowsEntitlementThroughFailovers",
			"policies/rebalancer.TestEntitlementsOverATreeAreThoseOfTheExactAnswer"}},
	{"rebalancer", "a member that is new or back is filled slowly by homes and splits", works, "",
		[]string{"internal/app/sim.TestAMemberThatComesIsFilledSlowly"}},
	{"rebalancer", "drift of members' queues from the document, shown, mended and undone (`creel queue mend`)", works, "",
		[]string{"e2e/federation.TestDriftIsMendedInHadoopsResourceManagerToo", "cmd/creel.TestDriftIsMended",
			"cmd/creel.TestDriftOnNodesOfALabelIsMended", "policies/rebalancer.TestAMendEndsTheDrift",
			"policies/rebalancer.TestAMendEndsTheDriftOnNodesOfALabel"}},
	{"rebalancer", "the federation's invariants, held against what members report (`creel rebalancer audit`, metrics, alerts)", partial,
		"what AMs were told, what each user was granted and locality are not in reports",
		[]string{"policies/rebalancer/server.TestTheLeaderFindsWhatIsBroken",
			"policies/rebalancer/invariants.TestReportsTellWhichInvariantIsBroken"}},
	{"rebalancer", "limits, plans and capacities of queues on nodes of a label", partial,
		"maxima in Hadoop's ResourceManagers are what is configured",
		[]string{"policies.TestAnAskWithALabelIsDecidedByThePlanOfItsLabel",
			"e2e/federation.TestAMaximumOnNodesOfALabelHoldsOverTheFederation",
			"e2e/federation.TestAGuaranteeOnNodesOfALabelFollowsThePlan"}},
	{"rebalancer", "its queue tree as a document: apply, diff, history, rollback", works, "", []string{"cmd/creel.TestQueueTreeCommands"}},

	{"operation", "the store dies, stalls, fails over, comes back empty", works, "",
		[]string{"e2e/faults.TestWhenTheStoreIsIll", "e2e/faults.TestWhenTheStoreFailsOver",
			"e2e/faults.TestAStoreEmptiedWhileAllRoutersAreDownDoublesNothing"}},
	{"operation", "settings: in force, without effect, not yet, or they stop the start", works, "",
		[]string{"internal/settings.TestReferencePageIsUpToDate"}},
	{"operation", "a dashboard: pages for applications, queues, members, policies, the rebalancer and the routers, AM-RM proxies and rebalancers that live, and those of a ResourceManager", works, "",
		[]string{"e2e/dash.TestTheDashboardLives", "e2e/dash.TestTheResourceManagersPages", "e2e/dash.TestEveryPageSaysWhatTheAPISays",
			"e2e/dash.TestAHundredMembersFitOnTheFirstPage", "e2e/dash.TestPagesWithoutMembersAndInAFrozenView",
			"internal/app/daemon/federation.TestTheDaemonsOfTheFederationAreListed"}},
	{"operation", "pages of AMs through routers (`/proxy/ID`): redirects, web sockets, cookies, each AM's for itself", partial,
		"AMs at home in Hadoop's ResourceManagers are sent no cookies, which Hadoop's own web proxy keeps back; as there, nothing is posted",
		[]string{"e2e/dash.TestABrowserKeepsTheCookiesOfAMsApart", "router/rest.TestPagesOfAMsAreReachedThroughTheRouter",
			"router/rest.TestCookiesOfAMsPassTheRouter", "internal/amcookies.TestAnAMSeesNoCookiesOfOthers"}},
	{"operation", "`/conf`, `/jmx`, `/stacks`, `/logLevel`, `/prom`, `/isActive` of routers and ResourceManagers, as Hadoop's daemons have them", works, "",
		[]string{"e2e/federation.TestDaemonlogReadsAndSetsTheLevel", "internal/servlets.TestPagesAnswerGetHeadAndOptions"}},
	{"operation", "metrics, alert rules", works, "", []string{"e2e/deploy.TestAlertRulesHoldAgainstRecordedSeries"}},
	{"operation", "compose: the image, the services, Prometheus, a Hadoop ResourceManager beside them, on a container engine", works, "",
		[]string{"e2e/compose.TestComposeIsUp", "e2e/deploy.TestTheComposeFileFollowsItsSchema"}},
	{"operation", "systemd units", partial, "systemd's own tool takes them; they were not started by systemd yet",
		[]string{"e2e/deploy.TestSystemdTakesTheUnits", "internal/app/daemon.TestSystemdIsTold"}},
	{"operation", "releases: archives, a Debian package, a bill of materials; the same commit gives the same bytes", works, "",
		[]string{"e2e/deploy.TestARelease"}},
	{"operation", "the documents, also as a site: links are followed, commands are read, each alert has its section", works, "",
		[]string{".TestLinksLeadSomewhere", "cmd/creel.TestTheDocumentsCallCommandsThatThereAre", "e2e/deploy.TestTheSite", "e2e/deploy.TestEveryAlertHasARunbook"}},
	{"operation", "a Helm chart", partial, "rendered, and read strictly by Kubernetes' types; it was not on a cluster yet",
		[]string{"e2e/deploy.TestTheHelmChart", "e2e/deploy.TestTheHelmChartRefuses"}},
}

// Every proof is a test that is there, and the pages say what the table says.
func TestTheStatusIsThatOfTheTests(t *testing.T) {
	for _, f := range features {
		if (f.state == absent) != (len(f.proofs) == 0) || (f.state == partial) != (f.lacks != "") {
			t.Errorf("%s: what is %s has %d proofs and lacks %q", f.what, f.state, len(f.proofs), f.lacks)
		}
		for _, p := range f.proofs {
			dir, test, _ := strings.Cut(p, ".")
			if !declares(t, dir, test) {
				t.Errorf("%s: there is no %s in %s", f.what, test, dir)
			}
		}
	}
	page("docs/status.md", statusPage)(t)
	page("README.md", func(was []byte) []byte {
		const begin, end = "<!-- status -->\n", "<!-- end of status -->\n"
		before, rest, ok := bytes.Cut(was, []byte(begin))
		_, after, closed := bytes.Cut(rest, []byte(end))
		if !ok || !closed {
			t.Fatalf("README.md has no place between %q and %q", begin, end)
		}
		return bytes.Join([][]byte{before, []byte(begin), statusTable(), []byte(end), after}, nil)
	})(t)
}

// page returns the check that a file is what it is made to.
func page(path string, made func(was []byte) []byte) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		was, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		want := made(was)
		if bytes.Equal(was, want) {
			return
		}
		if !*updateStatus {
			t.Errorf("%s is not what status_test.go says: go test . -run TestTheStatus -update", path)
		} else if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// declares reports whether the tests of a folder have a function.
func declares(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if function.Match(b) {
			return true
		}
	}
	return false
}

func statusPage([]byte) []byte {
	var b bytes.Buffer
	b.WriteString("# What works\n\nMade from the table in status_test.go, which checks that each test is there: " +
		"`go test . -run TestTheStatus -update`.\n\n| part | what | state | what it lacks | tests |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range features {
		tests := make([]string, len(f.proofs))
		for i, p := range f.proofs {
			dir, test, _ := strings.Cut(p, ".")
			tests[i] = fmt.Sprintf("[%s](../%s)", test, dir)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.area, f.what, f.state, f.lacks, strings.Join(tests, ", "))
	}
	return b.Bytes()
}

// statusTable is the short form: for each part what works, what works in part, and
// what is not there.
func statusTable() []byte {
	var areas []string
	of := map[string]map[string][]string{}
	for _, f := range features {
		if of[f.area] == nil {
			areas, of[f.area] = append(areas, f.area), map[string][]string{}
		}
		what := "• " + f.what
		if f.lacks != "" {
			what += " – *lacks: " + f.lacks + "*"
		}
		of[f.area][f.state] = append(of[f.area][f.state], what)
	}
	// A line for each thing: a cell of twelve of them in one paragraph is not read.
	lines := func(of []string) string { return strings.Join(of, "<br>") }
	var b bytes.Buffer
	b.WriteString("| part | works | works in part | not there |\n| --- | --- | --- | --- |\n")
	for _, a := range areas {
		row := of[a]
		fmt.Fprintf(&b, "| **%s** | %s | %s | %s |\n", a, lines(row[works]), lines(row[partial]), lines(row[absent]))
	}
	return b.Bytes()
}
