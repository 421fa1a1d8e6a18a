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

var updateStatus = flag.Bool("update", false, "rewrite docs/status.md")

// The states of a feature.
const (
	works   = "works"
	partial = "in part"
	absent  = "not there"
)

// feature is a capability that users of YARN, or of its federation, look for.
type feature struct {
	area, what, state string
	lacks             string   // if it works in part
	proofs            []string // package.Test; an absent feature has none
}

// features are the rows of docs/status.md.
var features = []feature{
	{"submission", "submit, report, list and kill by Hadoop RPC, with unmodified `yarn`, MapReduce, Tez, Flink, Skein and Spark", works, "",
		[]string{"e2e/federation.TestClients"}},
	{"submission", "the same by REST", works, "",
		[]string{"e2e/federation.TestClients", "e2e/rest.TestPublicClientLibrary", "e2e/rest.TestAFederationAnswersAsOneResourceManager",
			"e2e/rest.TestFederationWithLabelsAnswersAsOneResourceManager"}},
	{"submission", "an application on several members is one application in reports, lists, filters and container lists", partial,
		"at members running Hadoop's ResourceManager, cluster and queue metrics count UAMs as applications; so do lists with a filter that UAMs match",
		[]string{"router/rest.TestAnApplicationIsOneThing", "router/rest.TestAnApplicationDoesNotEndWithItsUAM", "e2e/federation.TestMixed"}},
	{"submission", "an application runs once, in one place, under crashes, pauses and late messages", partial,
		"at a member running Hadoop's ResourceManager that was restarted, an ended application runs again if the member forgot it before routers read its end (every 10 minutes)",
		[]string{"e2e/faults.TestLateSubmissionsDoubleNothing", "e2e/faults.TestRandomFaultsLoseAndDoubleNothing",
			"e2e/faults.TestRepeatAfterTheEndRunsNothing", "e2e/faults.TestRepeatForgottenByHadoopRunsNothing"}},
	{"submission", "a kill, move, priority, lifetime or signal sent while the home is unavailable is stored and applied when it is back", works, "",
		[]string{"router/rest.TestKillWhileHomeIsAway",
			"router/rest.TestChangeWhileHomeIsAway", "statestore/intents.TestAMoveReachesTheUAMs",
			"router/rest.TestSignalWaitsForContainersSubcluster"}},
	{"submission", "a delegation token issued by one router, by RPC or REST, is valid at all routers until it is cancelled", works, "",
		[]string{"e2e/federation.TestDelegationTokensHoldAtEveryRouter", "router/rest.TestADelegationTokenHoldsAtEveryRouter"}},
	{"submission", "reservations, at a home that the queue's policy chooses", partial,
		"creel's ResourceManager rejects them; only members running Hadoop's ResourceManager accept them",
		[]string{"e2e/federation.TestReservationsInThePlansOfHadoopsMembers", "router/rest.TestReservationsAreAnsweredByTheirHome"}},
	{"submission", "`creel run` runs a command in containers and follows it until it ends", works, "",
		[]string{"e2e/federation.TestRun", "cmd/creel.TestRunWatchesACommandToItsEnd"}},
	{"submission", "`creel app why` explains the home and the wait in numbers, the same at every router", works, "",
		[]string{"router/rest.TestEveryRouterExplainsHomeChoice", "cmd/creel.TestAMLimitIsExplainedOnEverySurface", "e2e/newcomer.TestTheFirstHour"}},

	{"asks", "an AM's asks go to many subclusters, to its home first", works, "",
		[]string{"e2e/federation.TestClients", "policies.TestApplicationSpansFewestMembers"}},
	{"asks", "asks follow data: hosts and racks of all members, Hadoop's included", works, "", []string{"e2e/federation.TestMixed"}},
	{"asks", "a restarted proxy continues all sessions without loss", works, "",
		[]string{"e2e/federation.TestFaults", "e2e/faults.TestRandomFaultsLoseAndDoubleNothing"}},
	{"asks", "idle UAMs are released, and lost UAMs are registered again; at Hadoop's ResourceManager under a new id", partial,
		"not for MapReduce and Tez at Hadoop's ResourceManager: their containers find local data by the application id",
		[]string{"e2e/federation.TestMixed", "amrmproxy.TestScenarios", "amrmproxy.TestAMGetsExactlyItsAsks",
			"subcluster/rm/rpc.TestEndedUnmanagedAMRestarts"}},
	{"asks", "node labels and resource types across members: requests go to clusters that have them, unknown ones are rejected", works, "",
		[]string{"e2e/federation.TestLabelsAndConstraintsOverMembers", "policies.TestMembersWithoutLabelAreNotAsked",
			"policies.TestHomesHaveTheLabel"}},
	{"asks", "placement constraints across members", partial, "they apply within the home only, which gets all scheduling requests",
		[]string{"e2e/federation.TestLabelsAndConstraintsOverMembers", "amrmproxy.TestScenarios"}},

	{"policies", "a policy document for each queue (homes and splits): try, preview, diff, apply, history, rollback", works, "",
		[]string{"e2e/newcomer.TestTheFirstHour", "cmd/creel.TestPolicyCommands"}},
	{"policies", "`creel sim` compares two policies or two queue configurations, on your own members and queues", works, "",
		[]string{"cmd/creel.TestTwoRunsDecideByTheirOwnPolicies", "cmd/creel.TestTheQueuesOfADirectoryAreSimulated",
			"cmd/creel.TestAViewIsSimulated", "e2e/dash.TestTheReportOfTwoSimulatedRuns"}},

	{"members", "creel's ResourceManager joins, restarts and leaves; its records are signed", works, "",
		[]string{"e2e/federation.TestFaults", "e2e/faults.TestAPoisonedMemberOfRedisIsNotBelieved"}},
	{"members", "Hadoop's ResourceManagers join through `creel agent`, HA pairs included", partial,
		"AMs at home there need `hadoop.rpc.protection=authentication`",
		[]string{"e2e/federation.TestClients", "e2e/federation.TestMixed", "e2e/federation.TestPairOfHadoop",
			"e2e/federation.TestPairThatElects", "e2e/federation.TestMembersOfTwoReleasesOfHadoop",
			"e2e/faults.TestLateSubmissionsDoubleNothing"}},
	{"members", "AMs at home at Hadoop's ResourceManager log in through the proxy, or by the ResourceManager's key file", partial,
		"only key files of FileSystemRMStateStore, on a file system mounted on the proxy's host",
		[]string{"e2e/federation.TestMixed", "amrmproxy/rpc.TestAMLogsInByKeyFileOfHome"}},
	{"members", "drain, undrain, deregister, remove; `yarn routeradmin`", partial, "a drain moves waiting applications only, and not from or to Hadoop's ResourceManagers",
		[]string{"e2e/federation.TestClients", "e2e/newcomer.TestTheFirstHour", "router/operator.TestADrainIsDoneWhenNothingIsLeft", "e2e/federation.TestWaitingMapReduceLeavesDrainedMember", "router/server.TestDrainMovesSurviveRouterDeath"}},

	{"state store", "shares Hadoop's store in ZooKeeper with Hadoop's Routers, AMRMProxies, policy generator and ResourceManagers: members, homes, policies", partial,
		"tokens are not shared; changes by Hadoop's programs are seen at the next poll; one change has at most 1 MB",
		[]string{"e2e/federation.TestHadoopsRouterSharesTheStore", "e2e/federation.TestHadoopFederationMovesToCreelAndBack",
			"e2e/federation.TestHadoopsServicesUseCreelsResourceManagers",
			"e2e/zookeeper.TestStoreKeepsTheContract",
			"e2e/zookeeper.TestStoreAnswersAsTheMemoryStateDoes", "e2e/zookeeper.TestFaultsOfTheServerLoseNoClaim"}},
	{"state store", "shares Hadoop's store in SQL (MariaDB) with Hadoop's Routers, AMRMProxies and ResourceManagers: members, homes, policies", partial,
		"two procedures of Hadoop's must be replaced; not tested on MySQL; no SQL Server; tokens are not shared; changes are seen by polls",
		[]string{"e2e/federation.TestHadoopsRouterSharesStoreInMariaDB",
			"e2e/federation.TestHadoopsAMRMProxySharesStoreInMariaDB",
			"e2e/mariadb.TestStoreKeepsTheContract", "e2e/mariadb.TestStoreAnswersAsTheMemoryStateDoes",
			"e2e/mariadb.TestFaultsOfTheServerLoseNoClaim", "e2e/mariadb.TestHadoopsProceduresShareTheStore"}},

	{"ResourceManager", "serves Hadoop's clients, NodeManagers and AMs, and restarts from its journal", works, "",
		[]string{"e2e/rm.TestClientCasesOnCreel", "e2e/rm.TestJobsOutliveTheResourceManager"}},
	{"ResourceManager", "moves its state between a journal and Redis (`creel rm export`, `creel rm import`)", works, "",
		[]string{"e2e/rm.TestStateMovesBetweenJournalAndRedis"}},
	{"ResourceManager", "keeps its state in Redis, from which another host continues", works, "",
		[]string{"e2e/rm.TestAnotherHostContinuesFromRedis", "subcluster/rm/redisstate.TestHolderThatWasCutOffIsFenced"}},
	{"ResourceManager", "keeps its state in ZooKeeper (`ZKRMStateStore`), from which another host continues", works, "",
		[]string{"e2e/rm.TestAnotherHostContinuesFromZooKeeper", "e2e/rm.TestForeignStateInZooKeeperIsRefused",
			"e2e/zookeeper.TestServerKeepsTheContract", "e2e/zookeeper.TestFaultsOfTheServerLoseNothing",
			"e2e/secure.TestZooKeeperIsUsedOverTLS", "e2e/secure.TestZooKeeperAcceptsKerberos"}},
	{"ResourceManager", "takes over applications from Hadoop's ResourceManager, and back (`creel rm import --from`, `creel rm export --to`)", partial,
		"a stopped ResourceManager with `ZKRMStateStore` only; no reservations",
		[]string{"e2e/rm.TestJobsMoveFromHadoopToCreelAndBack", "e2e/zookeeper.TestServerHasHadoopsState", "subcluster/rm/hadoopstate.TestReadFindsEachHierarchy",
			"subcluster/rm/server.TestImportedStateContinues"}},
	{"ResourceManager", "HA pairs of creel's ResourceManagers, by ZooKeeper or a lease in Redis: takeover, `yarn rmadmin`, redirects", works, "",
		[]string{"e2e/rm.TestShellOutlivesTheActiveOverZooKeeper", "e2e/rm.TestPausedActiveIsFencedOverZooKeeper",
			"e2e/rm.TestKilledZooKeeperLosesNoSubmission", "e2e/rm.TestElectsAgainstHadoopsResourceManager",
			"e2e/rm.TestShellOutlivesTheActiveResourceManager", "e2e/rm.TestPausedActiveResumesAsStandby",
			"e2e/rm.TestAdministratorSwitchesThePair", "e2e/rm.TestPairOverRedisFailsOverUnderLoad",
			"e2e/rm.TestPairOverZooKeeperFailsOverUnderLoad", "e2e/federation.TestPairOfCreelIsOneMember",
			"subcluster/rm/pair.TestTwoNeverLeadTogether"}},
	{"ResourceManager", "HA pairs of a creel and a Hadoop ResourceManager over one ZooKeeper: each takes over running applications from the other", partial,
		"no reservations, labels or attributes of the other one",
		[]string{"e2e/rm.TestMixedPairTakesOverBothWays", "subcluster/rm/zkstate.TestRecordsFollowTheLog",
			"subcluster/rm/zkstate.TestRecordsOfHadoopsLeadAreTakenOver", "subcluster/rm/hadoopstate.TestAdoptedRecordsReplaceTheLog"}},
	{"ResourceManager", "CapacityScheduler and FairScheduler, with Hadoop's shares, limits and placement rules", partial,
		"a UAM counts as nothing against the AM share; Hadoop counts one minimum allocation",
		[]string{"e2e/rest.TestDocumentsOfManyConfigurations", "e2e/rest.TestDocumentsOfManyFairTrees",
			"e2e/scheduler.TestCapacitySharesMatchHadoop",
			"e2e/scheduler.TestFairSharesMatchHadoop",
			"e2e/scheduler.TestPlacementMatchesHadoop"}},
	{"ResourceManager", "queues that mix percent, weight and absolute, type by type (`legacy-queue-mode.enabled=false`)", works, "",
		[]string{"e2e/rm.TestMixedQueuesMatchHadoop",
			"subcluster/rm/sched/shares.TestDivisionMatchesSlowRule"}},
	{"ResourceManager", "queues can be changed at run time by `scheduler-conf` and `yarn schedulerconf`; changes are durable and can be undone", works, "",
		[]string{"e2e/rm.TestQueuesAreChangedByHadoopsTools", "subcluster/rm/rest.TestQueuesThatCallsChangedOutliveARestart"}},
	{"ResourceManager", "preemption, in both schedulers and within a queue", partial,
		"members running Hadoop's FairScheduler ignore the federation's budgets",
		[]string{"e2e/rm.TestQueueBelowGuaranteePreemptsHadoopJobs", "e2e/federation.TestSparkIsPreemptedBehindProxy",
			"app/sim.TestPreemptionShortensTheWaitsOfShortJobs",
			"subcluster/rm.TestPreemptionKeepsItsPromises",
			"e2e/scheduler.TestCapacitySchedulerVictimsMatchHadoop",
			"subcluster/member.TestHomeAndSecondaryPreemptOncePerCause",
			"e2e/federation.TestHadoopPreemptsWithinFederationBudget"}},
	{"ResourceManager", "node labels: partitions, capacities and default expressions, by RPC, REST and node reports", works, "",
		[]string{"subcluster/rm.TestLabelledInvariantsHoldAfterEveryEvent", "e2e/rest.TestDocumentsOfManyConfigurations",
			"subcluster/rm.TestPreemptionKeepsItsPromisesInEachPartition", "subcluster/rm/rest.TestLabelsOverREST"}},
	{"ResourceManager", "node attributes, set by nodes or administrators, by RPC, `yarn nodeattributes` and REST; durable", works, "",
		[]string{"e2e/rm.TestTheCommandLinePrintsTheSame", "e2e/rm.TestNodeLabelsByHadoopsTools"}},
	{"ResourceManager", "placement constraints: tags, cardinality, attributes, and, or, namespaces; requests placed or rejected", works, "",
		[]string{"e2e/rm.TestPlacementSpecificationsOfTheDistributedShell",
			"e2e/rest.TestPlacementConstraintsMatchHadoop",
			"subcluster/rm/sched.TestConstraintsHoldAndBlockNoOthers"}},
	{"ResourceManager", "opportunistic containers, placed by it, by AM-RM proxies or by Hadoop's NodeManagers with distributed scheduling", partial,
		"members running Hadoop's ResourceManager place all of theirs, and report no lengths of queues for splits",
		[]string{"e2e/rm.TestClientCasesOnCreel", "e2e/rest.TestOpportunisticDocuments",
			"e2e/rm.TestHadoopNodePlacesOpportunisticContainers",
			"e2e/federation.TestProxyPlacesContainersOfHadoopsShell", "subcluster/rm/rpc.TestDistributedSchedulingOnTheWire",
			"amrmproxy/rpc.TestProxyPlacesOpportunisticContainers", "app/sim.TestSeedsWithPlacingProxies",
			"policies.TestOpportunisticAsksGoToShortQueues", "app/sim.TestOpportunisticUserLimitHoldsUnderFaults"}},
	{"ResourceManager", "overcommitment: nodes lend unused resources, by thresholds and a predicted peak, to asks in the order of the queues", partial,
		"Hadoop's NodeManagers do not lend",
		[]string{"subcluster/rm.TestFullNodeLendsUnusedResources", "subcluster/rm.TestLendingKeepsGuarantees",
			"subcluster/rm.TestLabelledNodeLendsToAsksOfItsLabel",
			"subcluster/rm/rpc.TestFullNodeLendsOverTheWire", "subcluster/nm/overallocate.TestLooksKeepThresholds",
			"subcluster/nm/server.TestFarmLendsWhatContainersDoNotUse"}},
	{"ResourceManager", "service authorization by protocol and host (`hadoop-policy.xml`), and lists limited to viewable applications", works, "",
		[]string{"e2e/rm.TestServiceAuthorizationMatchesHadoop",
			"router/rpc.TestServiceACLsHoldAtRoutersAndMembers", "e2e/rest.TestListsHideInvisibleApplications"}},
	{"ResourceManager", "Kerberos with `hadoop.rpc.protection`: Hadoop's clients, NodeManagers and AMs, also of an HA pair", partial,
		"of applications' tokens only those of HDFS, YARN and MapReduce's history server are renewed",
		[]string{"e2e/secure.TestSecureClusterRunsJobsAtEachProtection", "e2e/secure.TestSecureResourceManagerRejectsHostileCallers",
			"e2e/secure.TestTokenOfHDFSLivesAsLongAsItsJob", "e2e/secure.TestJobOutlivesMaximumOfItsToken",
			"e2e/secure.TestTokenOfHistoryServerLivesAsLongAsItsJob", "e2e/secure.TestTokenOfOtherClusterLivesAsLongAsItsJob",
			"e2e/secure.TestSecurePairTakesOver",
			"subcluster/rm/server.TestOwnTokensLiveAsLongAsTheirApplication", "internal/kerberos.TestValidTicketServesWithoutKDC",
			"e2e/secure.TestDelegationTokensNeedTickets", "app/daemon/role.TestIncompleteKerberosStopsTheStart"}},
	{"ResourceManager", "web clients log in by ticket (SPNEGO, `curl --negotiate`, `creel` commands), then by Hadoop's signed cookie; `doAs` of proxy users", works, "",
		[]string{"e2e/secure.TestWebClientLogsInByTicketThenCookie", "e2e/secure.TestWebClientsWithoutRightAreRejected",
			"e2e/secure.TestWebProxyUsersActForAllowedUsersAlone", "e2e/secure.TestHadoopsClientChangesQueuesByTicket",
			"e2e/secure.TestCommandsLogInByTicket",
			"app/daemon/role.TestIncompleteWebLoginStopsTheStart"}},
	{"federation", "Kerberos: clients, routers, members, AM-RM proxies and AMs log in; web ports by ticket; the routers' delegation tokens", partial,
		"members that are Hadoop's HA pairs are not tested",
		[]string{"e2e/secure.TestSecureFederationRunsJobsAtEachProtection", "e2e/secure.TestSecureRouterActsForItsCallersAlone",
			"e2e/secure.TestSecureRouterShowsPagesOfAMs", "e2e/secure.TestClientCasesOnSecureFederation",
			"e2e/secure.TestSecureHadoopMemberRunsJobsAtEachProtection", "e2e/secure.TestSecureMemberIsAPair",
			"e2e/secure.TestClientCasesThroughHadoopsSecureRouter",
			"app/daemon/role.TestIncompleteSecureFederationStopsTheStart", "subcluster/login.TestUserOfACallBecomesDoAs"}},
	{"operation", "`creel doctor --role ROLE` logs in as a daemon, reads the store, and calls each peer by RPC and REST", works, "",
		[]string{"e2e/secure.TestDoctorTriesLoginsAndCalls", "app/daemon/role.TestExaminationNamesWhatFails"}},
	{"ResourceManager", "groups of users by LDAP (`LdapGroupsMapping`), over TLS, with nested and posix groups", partial,
		"one bind user; no `CompositeGroupsMapping` and no `RuleBasedLdapGroupsMapping`",
		[]string{"e2e/ldap.TestQueueAdmitsGroupOfDirectory", "e2e/ldap.TestGroupsOfUsersInOpenLDAP", "e2e/ldap.TestDirectoryFailuresAreErrors",
			"internal/groups.TestFailedLookupsKeepLastGroupsForBoundedTime", "app/daemon/role.TestIncompleteLDAPStopsTheStart"}},
	{"ResourceManager", "an outside authoriser decides about rights at queues (`creel.authorizer.url`), by the data API of Open Policy Agent", partial,
		"routers' lists do not know its administrators of queues",
		[]string{"e2e/rm.TestOpenPolicyAgentDecidesAboutQueues", "subcluster/rm/server.TestOutsideAuthoriserDecidesInsteadOfLists",
			"subcluster/rm/server.TestOwnerDoesNotWaitForOutsideAuthoriser"}},
	{"operation", "HTTPS at all web ports (`HTTPS_ONLY`), Hadoop's keystores and truststores or PEM, read again when they change", partial,
		"simulated nodes use HTTP",
		[]string{"e2e/secure.TestClientsLogInOverTLS", "e2e/secure.TestTLSProbes", "e2e/secure.TestChangedKeystoreIsReadAgain",
			"e2e/secure.TestSecureHadoopMemberRunsJobsAtEachProtection", "internal/certs.TestClientTrustsSignersOfTruststore",
			"app/daemon/role.TestDaemonsOfFederationServeTLS", "app/daemon/role.TestPairTakesOver",
			"app/daemon/role.TestIncompleteTLSStopsTheStart"}},
	{"operation", "certificates of web clients (`hadoop.ssl.require.client.cert`), which routers and agents show at members", works, "",
		[]string{"e2e/secure.TestWebPortsNeedCertificates", "internal/certs.TestServerVerifiesClients", "app/daemon/role.TestPortsMayNeedCertificates"}},
	{"ResourceManager", "log aggregation status (`logAggregationStatus`), as nodes report it", works, "",
		[]string{"e2e/rm.TestLogAggregationMatchesHadoop", "router/rest.TestLogsCoverNodesOfAllMembers",
			"subcluster/rm/rest.TestApplicationReportsLogProgress",
			"subcluster/rm/logaggregation.TestStatusCoversAllNodes", "subcluster/rm.TestNodesReportLogsAfterRestart"}},
	{"ResourceManager", "delegation tokens by REST, for callers with a ticket: issued, renewed, cancelled; a login by RPC and at the web port", works, "",
		[]string{"e2e/secure.TestTokensFetchedOverWebServeRPC", "e2e/secure.TestExpiredTokenIsNoLogin",
			"subcluster/rm/rest.TestDelegationTokensByRESTNeedTicket"}},
	{"ResourceManager", "a full disk makes it read-only; it keeps running", works, "",
		[]string{"e2e/faults.TestFullDiskMakesResourceManagerReadOnly"}},

	{"rebalancer", "a queue's maximum across all members, enforced exactly", partial,
		"a growing cluster running Hadoop's ResourceManager may exceed it until the agent's next poll",
		[]string{"policies/rebalancer/escrow.TestEveryOrderOfMessages",
			"policies/rebalancer/escrow.TestEveryOrderWithSettings",
			"app/sim.TestFederationWideLimitsHoldUnderFaults",
			"subcluster/member.TestEmptiedStoreLiftsNoMaximum",
			"e2e/federation.TestAMaximumHoldsOverHadoopsResourceManagerToo"}},
	{"rebalancer", "a user limit across all members, enforced exactly", partial,
		"members running Hadoop's ResourceManager do not enforce it; creel lists them",
		[]string{"e2e/federation.TestUserLimitHoldsOverAllMembers",
			"policies/rebalancer/escrow.TestEveryOrderWithUsers",
			"subcluster/member.TestAUserLimitHoldsForAllMembersTogether",
			"subcluster/rm.TestUsersGrowToTheirCapsAndNoFurther"}},
	{"rebalancer", "guarantees and weights across all members; homes, splits and capacities follow them", partial,
		"absolute capacities in Hadoop's ResourceManager, and its FairScheduler, do not follow the plan",
		[]string{"e2e/federation.TestQueueRecoversFederationGuaranteeInOneMember",
			"policies/rebalancer.TestCapacitiesBringWaitingQueuesToEntitlement",
			"e2e/federation.TestHadoopPreemptsWithinFederationBudget",
			"app/sim.TestPlanBringsQueuesNearerToEntitlement",
			"e2e/federation.TestUseFollowsEntitlementThroughFailovers",
			"policies/rebalancer.TestTreeEntitlementsMatchExactSolution"}},
	{"rebalancer", "slow start: homes and splits fill a new or returning member gradually", works, "",
		[]string{"app/sim.TestAMemberThatComesIsFilledSlowly"}},
	{"rebalancer", "drift between members' queues and the document is shown, repaired and undone (`creel queue mend`)", works, "",
		[]string{"e2e/federation.TestDriftIsMendedInHadoopsResourceManagerToo", "cmd/creel.TestDriftIsMended",
			"cmd/creel.TestDriftOnNodesOfALabelIsMended", "policies/rebalancer.TestAMendEndsTheDrift",
			"policies/rebalancer.TestMendEndsLabelDrift"}},
	{"rebalancer", "the federation's invariants are checked against member reports (`creel rebalancer audit`, metrics, alerts)", partial,
		"reports do not contain headroom sent to AMs, grants by user, or locality",
		[]string{"policies/rebalancer/server.TestLeaderFindsBrokenInvariants",
			"policies/rebalancer/invariants.TestReportsTellWhichInvariantIsBroken"}},
	{"rebalancer", "limits, plans and capacities of queues by node label", partial,
		"Hadoop's ResourceManager keeps its configured maxima",
		[]string{"policies.TestLabelledAskFollowsLabelPlan",
			"e2e/federation.TestLabelMaximumHoldsOverFederation",
			"e2e/federation.TestLabelGuaranteeFollowsPlan"}},
	{"rebalancer", "the queue tree of the federation is a document: apply, diff, history, rollback", works, "", []string{"cmd/creel.TestQueueTreeCommands"}},

	{"operation", "the store may crash, stall, fail over or come back empty", works, "",
		[]string{"e2e/faults.TestWhenTheStoreIsIll", "e2e/faults.TestWhenTheStoreFailsOver",
			"e2e/faults.TestStoreEmptiedWhileRoutersAreDownDoublesNothing"}},
	{"operation", "each setting is in force, without effect, not yet supported, or stops the start", works, "",
		[]string{"internal/settings.TestReferencePageIsUpToDate"}},
	{"operation", "a dashboard: applications, queues, members, policies, rebalancer, live daemons, and the ResourceManager's own pages", works, "",
		[]string{"e2e/dash.TestTheDashboardLives", "e2e/dash.TestTheResourceManagersPages", "e2e/dash.TestEveryPageMatchesTheAPI",
			"e2e/dash.TestAHundredMembersFitOnTheFirstPage", "e2e/dash.TestPagesWithoutMembersAndInAFrozenView",
			"e2e/dash.TestChartsHaveValuesUnderTheCursor", "app/daemon/role.TestRestartedRouterCopiesHistory",
			"app/daemon/federation.TestTheDaemonsOfTheFederationAreListed"}},
	{"operation", "AM pages through routers (`/proxy/ID`), with redirects, web sockets and separate cookies for each AM", partial,
		"no cookies for AMs at home at Hadoop's ResourceManager, whose web proxy drops them; no POST, as in Hadoop",
		[]string{"e2e/dash.TestBrowserSeparatesAMCookies", "router/rest.TestAMPagesAreReachedThroughRouter",
			"router/rest.TestCookiesOfAMsPassTheRouter", "internal/amcookies.TestAnAMSeesNoCookiesOfOthers"}},
	{"operation", "`/conf`, `/jmx`, `/stacks`, `/logLevel`, `/prom` and `/isActive` at routers and ResourceManagers, as in Hadoop", works, "",
		[]string{"e2e/federation.TestDaemonlogReadsAndSetsTheLevel", "internal/servlets.TestPagesAnswerGetHeadAndOptions"}},
	{"operation", "metrics and alert rules", works, "", []string{"e2e/deploy.TestAlertRulesHoldAgainstRecordedSeries"}},
	{"operation", "Docker Compose: image, services, Prometheus, and a Hadoop ResourceManager as a member", works, "",
		[]string{"e2e/compose.TestComposeIsUp", "e2e/deploy.TestTheComposeFileFollowsItsSchema"}},
	{"operation", "systemd units", partial, "`systemd-analyze` accepts them; they have not been started by systemd yet",
		[]string{"e2e/deploy.TestSystemdTakesTheUnits", "app/daemon.TestSystemdIsNotified"}},
	{"operation", "reproducible releases: archives, a Debian package, a bill of materials", works, "",
		[]string{"e2e/deploy.TestARelease"}},
	{"operation", "documentation as a site; tests check links, commands and a section for each alert", works, "",
		[]string{".TestLinksLeadSomewhere", "cmd/creel.TestTheDocumentsCallCommandsThatThereAre", "e2e/deploy.TestTheSite", "e2e/deploy.TestEveryAlertHasARunbook"}},
	{"operation", "a Helm chart", partial, "tested by rendering and strict decoding; it has not run on a cluster yet",
		[]string{"e2e/deploy.TestTheHelmChart", "e2e/deploy.TestTheHelmChartRefuses"}},
}

// Every proof is an existing test, and docs/status.md is the table.
func TestStatusNamesExistingTests(t *testing.T) {
	for _, f := range features {
		if (f.state == absent) != (len(f.proofs) == 0) || (f.state == partial) != (f.lacks != "") {
			t.Errorf("%s: state %q with %d proofs and lacks %q", f.what, f.state, len(f.proofs), f.lacks)
		}
		for _, p := range f.proofs {
			dir, test, _ := strings.Cut(p, ".")
			if !declares(t, dir, test) {
				t.Errorf("%s: no %s in %s", f.what, test, dir)
			}
		}
	}
	page("docs/status.md", statusPage)(t)
}

// page returns a test that a file equals its generated text.
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
			t.Errorf("%s is stale: go test . -run TestStatus -update", path)
		} else if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// declares reports whether a test file of the directory declares the function.
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
	b.WriteString("# What works\n\nEach row is a feature, its limits, and the tests that prove it. A test generates this page and checks that " +
		"the named tests exist: `go test . -run TestStatus -update`.\n\n| part | feature | state | limit | tests |\n| --- | --- | --- | --- | --- |\n")
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
