// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/impersonation"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// submit submits one application through a router and returns its home.
func submit(
	t *testing.T,
	f *routertest.Federation,
	r *routertest.Router,
	name string,
) (creel.ApplicationID, *routertest.Member) {
	t.Helper()
	alice := f.As(r, "alice")
	id := pb.ToApplicationID(
		must(alice.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{}))(t).GetApplicationId(),
	)
	must(
		alice.SubmitApplication(
			t.Context(),
			&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: routertest.Context(id, name)},
		),
	)(
		t,
	)
	homes := f.Homes(id)
	if len(homes) != 1 {
		t.Fatalf("%s is at %v", id, homes)
	}
	return id, f.Member(homes[0])
}

func submitEverywhere(
	t *testing.T,
	f *routertest.Federation,
	r *routertest.Router,
) map[creel.SubclusterID]creel.ApplicationID {
	t.Helper()
	apps := map[creel.SubclusterID]creel.ApplicationID{}
	for i := 0; len(apps) < len(f.Members); i++ {
		if i > 200 {
			t.Fatalf("200 submissions went to %v alone", apps)
		}
		id, home := submit(t, f, r, fmt.Sprint("app ", i))
		apps[home.ID] = id
	}
	return apps
}

func list(
	t *testing.T,
	c yarnrpc.ApplicationClientProtocolClient,
	req *pb.GetApplicationsRequestProto,
) (ids []creel.ApplicationID) {
	t.Helper()
	for _, a := range must(c.GetApplications(t.Context(), req))(t).GetApplications() {
		ids = append(ids, pb.ToApplicationID(a.GetApplicationId()))
	}
	return ids
}

// A client sees one ResourceManager: applications submitted through one router can be found, listed, changed and
// killed through another.
func TestAnApplicationThroughTwoRouters(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3})
	ctx := t.Context()
	one, two := f.As(f.Routers[0], "alice"), f.As(f.Routers[1], "alice")
	id, home := submit(t, f, f.Routers[0], "story")
	report := func() *pb.ApplicationReportProto {
		return must(
			two.GetApplicationReport(
				ctx,
				&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)},
			),
		)(
			t,
		).GetApplicationReport()
	}
	f.Until(
		"it waits for its AM",
		func() bool { return report().GetYarnApplicationState() == pb.YarnApplicationStateProto_ACCEPTED },
	)
	if r := report(); r.GetName() != "story" || r.GetUser() != "alice" || r.GetQueue() != "root.default" {
		t.Errorf("report: %v", r)
	}
	if got := list(t, two, &pb.GetApplicationsRequestProto{}); !slices.Equal(got, []creel.ApplicationID{id}) {
		t.Errorf("listed: %v", got)
	}
	var attempt *pb.ApplicationAttemptReportProto
	f.Until("its attempt waits", func() bool {
		a := must(
			one.GetApplicationAttempts(
				ctx,
				&pb.GetApplicationAttemptsRequestProto{ApplicationId: pb.FromApplicationID(id)},
			),
		)(
			t,
		).GetApplicationAttempts()
		if len(a) == 1 {
			attempt = a[0]
		}
		return attempt.GetYarnApplicationAttemptState() == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED
	})
	if got := must(
		two.GetContainers(ctx, &pb.GetContainersRequestProto{ApplicationAttemptId: attempt.GetApplicationAttemptId()}),
	)(
		t,
	).GetContainers(); len(
		got,
	) != 0 {
		t.Errorf("containers of an unmanaged AM: %v", got)
	}
	must(
		two.MoveApplicationAcrossQueues(
			ctx,
			&pb.MoveApplicationAcrossQueuesRequestProto{
				ApplicationId: pb.FromApplicationID(id),
				TargetQueue:   new("other"),
			},
		),
	)(
		t,
	)
	p := must(
		one.UpdateApplicationPriority(
			ctx,
			&pb.UpdateApplicationPriorityRequestProto{
				ApplicationId:       pb.FromApplicationID(id),
				ApplicationPriority: pb.FromPriority(6),
			},
		),
	)(
		t,
	)
	if a, _ := home.App(
		ctx,
		id,
	); a.Queue != "root.other" || a.Priority != 6 ||
		p.GetApplicationPriority().GetPriority() != 6 {
		t.Errorf("at home: queue %s, priority %d", a.Queue, a.Priority)
	}
	f.Until("it is dead", func() bool {
		return must(
			two.ForceKillApplication(
				ctx,
				&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id), Diagnostics: new("enough")},
			),
		)(
			t,
		).GetIsKillCompleted()
	})
	if a, _ := home.App(
		ctx,
		id,
	); a.State != creel.AppKilled || !strings.Contains(a.Diagnostics, "killed by user alice") ||
		!strings.Contains(a.Diagnostics, "enough") {
		t.Errorf("at home: %s, %q", a.State, a.Diagnostics)
	}
	if r := report(); r.GetYarnApplicationState() != pb.YarnApplicationStateProto_KILLED {
		t.Errorf("report of the dead: %v", r.GetYarnApplicationState())
	}
}

// Nodes, metrics, queues and lists of all members in the shape of one.
func TestOneCluster(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3})
	ctx := t.Context()
	c := f.As(f.Routers[1], "alice")
	apps := submitEverywhere(t, f, f.Routers[0])
	if m := must(
		c.GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{}),
	)(
		t,
	).GetClusterMetrics(); m.GetNumNodeManagers() != 6 ||
		m.GetNumActiveNms() != 6 {
		t.Errorf("metrics: %v", m)
	}
	nodes := must(
		c.GetClusterNodes(
			ctx,
			&pb.GetClusterNodesRequestProto{NodeStates: []pb.NodeStateProto{pb.NodeStateProto_NS_RUNNING}},
		),
	)(
		t,
	).GetNodeReports()
	seen := map[creel.NodeID]bool{}
	for _, n := range nodes {
		seen[pb.ToNodeID(n.GetNodeId())] = true
	}
	if len(nodes) != 6 || len(seen) != 6 {
		t.Errorf("%d nodes, %d of them different", len(nodes), len(seen))
	}
	ids := list(t, c, &pb.GetApplicationsRequestProto{})
	for home, id := range apps {
		if n := len(slices.DeleteFunc(slices.Clone(ids), func(x creel.ApplicationID) bool { return x != id })); n != 1 {
			t.Errorf("%s of %s is listed %d times", id, home, n)
		}
	}
	if got := list(t, c, &pb.GetApplicationsRequestProto{Limit: new(int64(2))}); len(got) != 2 {
		t.Errorf("a limit of 2 gives %d", len(got))
	}
	if got := list(t, c, &pb.GetApplicationsRequestProto{Users: []string{"nobody"}}); len(got) != 0 {
		t.Errorf("nobody has %v", got)
	}
	q := must(
		c.GetQueueInfo(
			ctx,
			&pb.GetQueueInfoRequestProto{QueueName: new("root"), IncludeChildQueues: new(true), Recursive: new(true)},
		),
	)(
		t,
	).GetQueueInfo()
	shares := map[string]float32{}
	for _, child := range q.GetChildQueues() {
		shares[child.GetQueueName()] = child.GetCapacity()
	}
	if len(shares) != 2 || shares["default"] != 0.7 || shares["other"] < 0.299 || shares["other"] > 0.301 {
		t.Errorf("queues of three members with 70%% and 30%% each: %v", shares)
	}
	// Memory adds up: 3 members of 2 nodes.
	one := must(
		yarnrpc.NewApplicationClientProtocolClient(f.RPC, f.Members[0].Client.Address, hrpc.Login{User: "alice"}).
			GetQueueInfo(ctx, &pb.GetQueueInfoRequestProto{QueueName: new("root")}),
	)(
		t,
	).GetQueueInfo()
	if got, want := q.GetQueueStatistics().
		GetAvailableMemoryMB(),
		3*one.GetQueueStatistics().
			GetAvailableMemoryMB(); got != want {
		t.Errorf("%d MB are free, and 3 times a member's is %d", got, want)
	}
	if acls := must(
		c.GetQueueUserAcls(ctx, &pb.GetQueueUserAclsInfoRequestProto{}),
	)(
		t,
	).GetQueueUserAcls(); len(
		acls,
	) != 3 {
		t.Errorf("ACLs of %d queues", len(acls))
	}
	if types := must(
		c.GetResourceTypeInfo(ctx, &pb.GetAllResourceTypeInfoRequestProto{}),
	)(
		t,
	).GetResourceTypeInfo(); len(
		types,
	) != 2 {
		t.Errorf("resource types: %v", types)
	}
	if r := must(c.GetClusterNodeLabels(ctx, &pb.GetClusterNodeLabelsRequestProto{}))(t); len(r.GetNodeLabels()) != 0 {
		t.Errorf("labels: %v", r)
	}
}

// A message cannot mark itself as partial: a list that lacks a member is an error that names it, and that clients do
// not retry, unless parts are allowed.
func TestListErrorNamesAbsentMember(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, OpenFor: 50 * time.Millisecond})
	ctx := t.Context()
	c := f.As(f.Routers[0], "alice")
	gone := f.Members[0]
	gone.Cut()
	for name, err := range map[string]error{
		"applications": second(c.GetApplications(ctx, &pb.GetApplicationsRequestProto{})),
		"nodes":        second(c.GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{})),
		"metrics":      second(c.GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{})),
		"a queue": second(c.GetQueueInfo(ctx,
			&pb.GetQueueInfoRequestProto{QueueName: new("root.default")})),
	} {
		var answered *hrpc.RemoteError
		if !errors.As(err, &answered) || answered.Class != yarnrpc.ClassYarn ||
			!strings.Contains(err.Error(), string(gone.ID)) || strings.Contains(err.Error(), string(f.Members[1].ID)) {
			t.Errorf("%s without %s: %v", name, gone.ID, err)
		}
	}
	gone.Mend()
	f.Until("all answer", func() bool {
		_, err := c.GetApplications(ctx, &pb.GetApplicationsRequestProto{})
		return err == nil
	})
}

// noProxies makes a member let no user act for another, like a cluster whose hadoop.proxyuser settings do not name
// the router's user.
func noProxies(c *rmserver.Config) { c.Proxies, c.ReloadProxies = impersonation.Rules{}, nil }

// A member that rejects the call contributes no part to a list either: the error names it, in its own words. If parts
// are allowed, the answer has the others'.
func TestListErrorNamesRefusingMember(t *testing.T) {
	start := func(parts bool) (*routertest.Federation, yarnrpc.ApplicationClientProtocolClient) {
		f := routertest.Start(t, routertest.Options{Routers: 1, GivesParts: parts,
			Change: func(i int, c *rmserver.Config) {
				if i == 1 {
					noProxies(c)
				}
			}})
		return f, f.As(f.Routers[0], "alice")
	}
	ctx := t.Context()
	_, c := start(false)
	for name, err := range map[string]error{
		"applications": second(c.GetApplications(ctx, &pb.GetApplicationsRequestProto{})),
		"nodes":        second(c.GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{})),
		"metrics":      second(c.GetClusterMetrics(ctx, &pb.GetClusterMetricsRequestProto{})),
		"a queue": second(c.GetQueueInfo(ctx,
			&pb.GetQueueInfoRequestProto{QueueName: new("root.default")})),
	} {
		var answered *hrpc.RemoteError
		if !errors.As(err, &answered) || answered.Class != yarnrpc.ClassYarn ||
			!strings.Contains(answered.Message, "missing: sc-b (it refuses: ") ||
			!strings.Contains(answered.Message, "is not allowed to impersonate alice") ||
			strings.Contains(answered.Message, "sc-a") || strings.Contains(answered.Message, "Exception") {
			t.Errorf("%s without sc-b, which refuses: %v", name, err)
		}
	}
	f, c := start(true)
	// The list of the pages, which each router reads once it serves, lacks sc-b, too.
	f.Until("the pages' list", func() bool { return f.Routers[0].Server.Counts().Partial.Load() > 0 })
	before := f.Routers[0].Server.Counts().Partial.Load()
	nodes := must(c.GetClusterNodes(ctx, &pb.GetClusterNodesRequestProto{}))(t).GetNodeReports()
	if counted := f.Routers[0].Server.Counts().Partial.Load() - before; len(nodes) != 2 || counted != 1 {
		t.Errorf("%d nodes where parts are allowed, %d partial answers counted", len(nodes), counted)
	}
}

// A call that all members reject alike is rejected as by one ResourceManager.
func TestUnanimousRefusalIsReturned(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	ctx := t.Context()
	request := &pb.GetApplicationsRequestProto{Limit: new(int64(-1))}
	_, one := yarnrpc.NewApplicationClientProtocolClient(f.RPC, f.Members[0].Client.Address, hrpc.Login{User: "alice"}).
		GetApplications(ctx, request)
	_, all := f.As(f.Routers[0], "alice").GetApplications(ctx, request)
	var own, answered *hrpc.RemoteError
	if !errors.As(one, &own) || !errors.As(all, &answered) || answered.Class != own.Class ||
		!strings.HasSuffix(answered.Message, own.Message) {
		t.Errorf("one refuses with %v, the router with %v", one, all)
	}
}

// While a member is away other calls work; a call that only it can answer is an error that clients retry, never "not
// found".
func TestWhileAMemberIsAway(t *testing.T) {
	f := routertest.Start(t, routertest.Options{OpenFor: 50 * time.Millisecond, GivesParts: true})
	ctx := t.Context()
	c := f.As(f.Routers[0], "alice")
	apps := submitEverywhere(t, f, f.Routers[0])
	gone, there := f.Members[0], f.Members[1]
	gone.Cut()
	if ids := list(
		t,
		c,
		&pb.GetApplicationsRequestProto{},
	); !slices.Contains(ids, apps[there.ID]) ||
		slices.Contains(ids, apps[gone.ID]) {
		t.Errorf("listed: %v", ids)
	}
	if n := f.Routers[0].Server.Counts().Partial.Load(); n == 0 {
		t.Error("a partial answer was not counted")
	}
	for name, id := range map[string]creel.ApplicationID{"of the member that is away": apps[gone.ID], "of nobody": {ClusterTimestamp: 1, ID: 1}} {
		_, err := c.GetApplicationReport(
			ctx,
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)},
		)
		if err == nil || errors.Is(err, creel.ErrApplicationNotFound) ||
			!strings.Contains(err.Error(), string(gone.ID)) {
			t.Errorf("an application %s: %v", name, err)
		}
	}
	for range 5 { // breakers open; submissions go to members that answer
		id := there.NewApplicationID()
		must(
			c.SubmitApplication(
				ctx,
				&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: routertest.Context(id, "meanwhile")},
			),
		)(
			t,
		)
		if homes := f.Homes(id); !slices.Equal(homes, []creel.SubclusterID{there.ID}) {
			t.Errorf("%s is at %v", id, homes)
		}
	}
	gone.Mend()
	f.Until("it is found again", func() bool {
		_, err := c.GetApplicationReport(
			ctx,
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(apps[gone.ID])},
		)
		return err == nil
	})
	_, err := c.GetApplicationReport(
		ctx,
		&pb.GetApplicationReportRequestProto{
			ApplicationId: pb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: 1}),
		},
	)
	if !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Errorf("an application of nobody, when all answer: %v", err)
	}
}

// Rejections by members are returned unchanged; unreadable input is rejected by the router.
func TestBadInput(t *testing.T) {
	f := routertest.Start(
		t,
		routertest.Options{
			Routers: 1,
			Change:  func(_ int, c *rmserver.Config) { c.ACLs = true; c.Machine.Queues.Root.Admin = queues.ACL{} },
		},
	)
	ctx := t.Context()
	alice, mallory := f.As(f.Routers[0], "alice"), f.As(f.Routers[0], "mallory")
	id, home := submit(t, f, f.Routers[0], "story")
	if _, err := alice.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{}); err == nil {
		t.Error("a submission of nothing was taken")
	}
	big := routertest.Context(home.NewApplicationID(), "big")
	big.Resource, big.UnmanagedAm = pb.FromResource(creel.NewResource(9000, 1)), new(false)
	_, err := alice.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: big})
	if !errors.Is(err, creel.ErrInvalidResource) {
		t.Errorf("an AM larger than any container: %v", err)
	}
	if homes := f.Homes(pb.ToApplicationID(big.GetApplicationId())); len(homes) != 0 {
		t.Errorf("and it is at %v", homes)
	}
	for name, err := range map[string]error{
		"kill": second(mallory.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})),
		"move": second(mallory.MoveApplicationAcrossQueues(ctx, &pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: pb.FromApplicationID(id), TargetQueue: new("other")})),
	} {
		if !errors.Is(err, creel.ErrNotPermitted) &&
			(err == nil || !strings.Contains(err.Error(), "AccessControlException")) {
			t.Errorf("mallory's %s: %v", name, err)
		}
	}
	if a, _ := home.App(ctx, id); a.State.Ended() || a.Queue != "root.default" {
		t.Errorf("mallory had a hand in it: %s in %s", a.State, a.Queue)
	}
	if _, err := alice.MoveApplicationAcrossQueues(
		ctx,
		&pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: pb.FromApplicationID(id), TargetQueue: new("nope")},
	); err == nil ||
		!strings.Contains(err.Error(), "nope") {
		t.Errorf("moved to nowhere: %v", err)
	}
	garbage := []byte{0xff, 0xff, 0xff, 0xff, 0xff}
	raw := f.RPC.Peer(
		hrpc.Target{
			Address:  f.Routers[0].Client,
			Protocol: yarnrpc.ApplicationClientProtocolService(nil).Protocol,
			Login:    hrpc.Login{User: "alice"},
		},
	)
	for _, method := range []string{"submitApplication", "getApplicationReport", "forceKillApplication", "getApplications", "getQueueInfo"} {
		if _, err := raw.CallRaw(ctx, method, garbage); err == nil {
			t.Errorf("%s of garbage is answered", method)
		}
	}
	if got := list(t, alice, &pb.GetApplicationsRequestProto{}); !slices.Equal(got, []creel.ApplicationID{id}) {
		t.Errorf("listed afterwards: %v", got)
	}
}

func second[T any](_ T, err error) error { return err }

// An administrator's orders reach every member, in his name; one that a member
// missed is an error that names it.
func TestAdministration(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	ctx := t.Context()
	root, alice := f.AdminOf(f.Routers[0], "root"), f.AdminOf(f.Routers[0], "alice")
	for name, err := range map[string]error{
		"refreshQueues":    second(root.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{})),
		"refreshNodes":     second(root.RefreshNodes(ctx, &pb.RefreshNodesRequestProto{DecommissionType: pb.DecommissionTypeProto_DECOMMISSION_NORMAL.Enum()})),
		"refreshAdminAcls": second(root.RefreshAdminAcls(ctx, &pb.RefreshAdminAclsRequestProto{})),
		"refreshUsers":     second(root.RefreshUserToGroupsMappings(ctx, &pb.RefreshUserToGroupsMappingsRequestProto{})),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := alice.RefreshQueues(
		ctx,
		&pb.RefreshQueuesRequestProto{},
	); err == nil ||
		!strings.Contains(err.Error(), "alice") {
		t.Errorf("alice refreshes queues: %v", err)
	}
	if _, err := root.RefreshQueues(
		ctx,
		&pb.RefreshQueuesRequestProto{SubClusterId: new("nowhere")},
	); err == nil ||
		!strings.Contains(err.Error(), "nowhere") {
		t.Errorf("queues of a member that is not there: %v", err)
	}
	if g := must(
		root.GetGroupsForUser(ctx, &pb.GetGroupsForUserRequestProto{User: new("bob")}),
	)(
		t,
	).GetGroups(); !slices.Equal(
		g,
		[]string{"bob"},
	) {
		t.Errorf("bob's groups: %v", g)
	}
	f.Members[1].Cut()
	_, err := root.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{})
	if err == nil || !strings.Contains(err.Error(), "1 of 2") ||
		!strings.Contains(err.Error(), string(f.Members[1].ID)) {
		t.Errorf("while %s is away: %v", f.Members[1].ID, err)
	}
	if _, err := root.RefreshQueues(
		ctx,
		&pb.RefreshQueuesRequestProto{SubClusterId: proto.String(string(f.Members[0].ID))},
	); err != nil {
		t.Errorf("of the one that is there: %v", err)
	}
}

// Access to routers and members is controlled by hadoop-policy.xml; a refresh through a router reloads the file in
// all of them, by an administrator's call alone.
func TestServiceACLsHoldAtRoutersAndMembers(t *testing.T) {
	dir := t.TempDir()
	allow := func(users string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "hadoop-policy.xml"), []byte("<configuration><property>"+
			"<name>security.applicationclient.protocol.acl</name><value>"+users+"</value></property></configuration>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	allow("alice,bob")
	f := routertest.Start(t, routertest.Options{
		ConfDir:  dir,
		Settings: []string{"hadoop.security.authorization=true", "yarn.admin.acl=root"},
	})
	ctx := t.Context()
	speaks := func(user string) error {
		_, err := f.As(f.Routers[0], user).GetApplications(ctx, &pb.GetApplicationsRequestProto{})
		return err
	}
	refused := func(user string) {
		t.Helper()
		var remote *hrpc.RemoteError
		if err := speaks(user); !errors.As(err, &remote) || remote.Class != hrpc.ClassAuthorization ||
			!strings.HasPrefix(remote.Message, "User "+user+" (auth:SIMPLE) is not authorized for protocol interface ") {
			t.Errorf("%s: %v", user, err)
		}
	}
	if err := speaks("alice"); err != nil {
		t.Error(err)
	}
	refused("eve")
	allow("eve,dan")
	refresh := func(user string) error {
		return second(f.AdminOf(f.Routers[0], user).RefreshServiceAcls(ctx, &pb.RefreshServiceAclsRequestProto{}))
	}
	if err := refresh("mallory"); err == nil {
		t.Error("a stranger has the lists read anew")
	}
	refused("eve")
	if err := refresh("root"); err != nil {
		t.Fatal(err)
	}
	if err := speaks("dan"); err != nil { // eve's refused connection may be about to end
		t.Error(err)
	}
	refused("bob")
}

// A router reloads its list of administrators though a member is away, by an administrator's call alone: a user taken
// off the list loses the permissions.
func TestAdministratorsReloadWhileMemberIsAway(t *testing.T) {
	dir := t.TempDir()
	administer := func(users string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "yarn-site.xml"), []byte("<configuration><property><name>admins</name>"+
			"<value>"+users+"</value></property></configuration>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	administer("root,bob")
	f := routertest.Start(t, routertest.Options{ConfDir: dir, Routers: 1, Settings: []string{"yarn.admin.acl=${admins}"}})
	ctx := t.Context()
	away := f.Members[1]
	away.Cut()
	refresh := func(user, only string) error {
		r := &pb.RefreshAdminAclsRequestProto{}
		if only != "" {
			r.SubClusterId = &only
		}
		return second(f.AdminOf(f.Routers[0], user).RefreshAdminAcls(ctx, r))
	}
	administers := func(user string) bool {
		t.Helper()
		_, err := f.AdminOf(f.Routers[0], user).DeleteFederationPoliciesByQueues(ctx,
			&pb.DeleteFederationQueuePoliciesRequestProto{Queues: []string{"root.other"}})
		return err == nil || !strings.Contains(err.Error(), "yarn.admin.acl")
	}
	if !administers("bob") || administers("carol") {
		t.Fatal("at the start not root and bob administer the router")
	}
	administer("root,carol")
	if err := refresh("carol", ""); err == nil || administers("carol") {
		t.Errorf("who does not administer the router has its list read anew: %v", err)
	}
	if err := refresh("root", string(f.Members[0].ID)); err != nil || administers("carol") {
		t.Errorf("a refresh of one member's list is of the router's, too: %v", err)
	}
	if err := refresh("root", ""); err == nil || !strings.Contains(err.Error(), string(away.ID)) {
		t.Errorf("while %s is away: %v", away.ID, err)
	}
	if administers("bob") || !administers("carol") {
		t.Error("the router's list is as it was while a member is away")
	}
}
