// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

// auditor stores the last audit line.
type auditor struct {
	mu   sync.Mutex
	last map[string]string
}

func (a *auditor) Enabled(context.Context, slog.Level) bool { return true }
func (a *auditor) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a *auditor) WithGroup(string) slog.Handler            { return a }

func (a *auditor) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "audit" {
		return nil
	}
	line := map[string]string{}
	r.Attrs(func(at slog.Attr) bool {
		line[at.Key] = at.Value.String()
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = line
	return nil
}

// take returns the last line, once.
func (a *auditor) take() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.last
	a.last = nil
	return line
}

// Each change through a router leaves a line that names the change and, if it was rejected, the reason. This also
// holds where the router reads only some fields of the message, and where the answer is a document of rejections.
func TestAuditLinesNameChange(t *testing.T) {
	log := &auditor{}
	f := routertest.Start(t, routertest.Options{Routers: 1, Log: slog.New(log)})
	ctx := t.Context()
	root, alice := f.AdminOf(f.Routers[0], "root"), f.As(f.Routers[0], "alice")
	id, home := submit(t, f, f.Routers[0], "audited")
	if line := log.take(); line["operation"] != "submitApplication" || line["target"] != id.String() {
		t.Errorf("of the submission: %v", line)
	}
	app := pb.FromApplicationID(id)
	member, nowhere, weights := "sc-a", "nowhere", "sc-a:1"
	weighted := func(queue string) *pb.FederationQueueWeightProto {
		manager := weightedLocality
		return &pb.FederationQueueWeightProto{
			Queue: &queue, RouterWeight: &weights, AmrmWeight: &weights, HeadRoomAlpha: proto.String("1.0"),
			PolicyManagerClassName: &manager,
		}
	}
	var held *pb.TokenProto
	for _, c := range []struct {
		operation, target, result, why string
		call                           func() error
	}{
		{"deregisterSubCluster", "sc-a", "failure", "last heartbeat", func() error {
			return second(root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{SubClusterId: &member}))
		}},
		{"deregisterSubCluster", "nowhere", "failure", "no subcluster", func() error {
			return second(root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{SubClusterId: &nowhere}))
		}},
		{"deregisterSubCluster", "", "success", "", func() error { // no member is silent
			return second(root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{}))
		}},
		{"saveFederationQueuePolicy", "root.other", "success", "", func() error {
			return second(root.SaveFederationQueuePolicy(ctx, &pb.SaveFederationQueuePolicyRequestProto{
				Queue: proto.String("root.other"), FederationQueueWeight: weighted("root.other"),
			}))
		}},
		{"batchSaveFederationQueuePolicies", "root.default,root.other", "success", "", func() error {
			return second(root.BatchSaveFederationQueuePolicies(ctx, &pb.BatchSaveFederationQueuePoliciesRequestProto{
				FederationQueueWeights: []*pb.FederationQueueWeightProto{weighted("root.default"), weighted("root.other")},
			}))
		}},
		{"deleteFederationPoliciesByQueues", "root.default,root.other", "success", "", func() error {
			return second(root.DeleteFederationPoliciesByQueues(ctx,
				&pb.DeleteFederationQueuePoliciesRequestProto{Queues: []string{"root.default", "root.other"}}))
		}},
		{"deleteFederationApplication", id.String(), "failure", string(home.ID), func() error {
			return second(root.DeleteFederationApplication(ctx,
				&pb.DeleteFederationApplicationRequestProto{Application: proto.String(id.String())}))
		}},
		{"refreshQueues", "sc-a", "success", "", func() error {
			return second(root.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{SubClusterId: &member}))
		}},
		{"refreshQueues", "nowhere", "failure", "no subcluster", func() error {
			return second(root.RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{SubClusterId: &nowhere}))
		}},
		{"refreshAdminAcls", "", "success", "", func() error { // at all
			return second(root.RefreshAdminAcls(ctx, &pb.RefreshAdminAclsRequestProto{}))
		}},
		{"failApplicationAttempt", creel.AttemptID{Application: id, Attempt: 7}.String(), "failure", "", func() error {
			return second(alice.FailApplicationAttempt(ctx, &pb.FailApplicationAttemptRequestProto{
				ApplicationAttemptId: pb.FromAttemptID(creel.AttemptID{Application: id, Attempt: 7}),
			}))
		}},
		{"moveApplicationAcrossQueues", id.String(), "failure", "nope", func() error {
			return second(alice.MoveApplicationAcrossQueues(ctx,
				&pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: app, TargetQueue: proto.String("nope")}))
		}},
		{"forceKillApplication", id.String(), "success", "", func() error {
			return second(alice.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: app}))
		}},
		{"getDelegationToken", "yarn", "success", "", func() error {
			answer, err := alice.GetDelegationToken(ctx, &pb.GetDelegationTokenRequestProto{Renewer: proto.String("yarn")})
			held = answer.GetToken()
			return err
		}},
		{"renewDelegationToken", "delegation token 1 of alice", "failure", "may not renew", func() error {
			return second(alice.RenewDelegationToken(ctx, &pb.RenewDelegationTokenRequestProto{Token: held}))
		}},
		{"cancelDelegationToken", "delegation token 1 of alice", "success", "", func() error {
			return second(alice.CancelDelegationToken(ctx, &pb.CancelDelegationTokenRequestProto{Token: held}))
		}},
	} {
		err := c.call()
		line := log.take()
		if line["operation"] != c.operation || line["target"] != c.target || line["result"] != c.result ||
			!strings.Contains(line["error"], c.why) || (line["error"] == "") != (c.result == "success") {
			t.Errorf("%s of %q was answered %v and left %v", c.operation, c.target, err, line)
		}
	}
}

// A client's caller context reaches the member's audit line, beside the login by which the router calls. A call without
// one has none, even on the connection of the other.
func TestMemberAuditsCallerContext(t *testing.T) {
	log := &auditor{}
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1, Change: func(_ int, c *rmserver.Config) {
		c.Logger = slog.New(log)
	}})
	id, _ := submit(t, f, f.Routers[0], "audited")
	alice := f.As(f.Routers[0], "alice")
	ctx := hrpc.WithOptions(t.Context(), hrpc.CallOptions{CallerContext: hrpc.CallerContext{Context: "nightly report"}})
	for _, c := range []struct {
		ctx     context.Context
		context string
	}{{ctx, "nightly report"}, {t.Context(), ""}} {
		log.take()
		if _, err := alice.UpdateApplicationPriority(c.ctx, &pb.UpdateApplicationPriorityRequestProto{
			ApplicationId: pb.FromApplicationID(id), ApplicationPriority: pb.FromPriority(0),
		}); err != nil {
			t.Fatal(err)
		}
		line := log.take()
		if line["operation"] != "updateApplicationPriority" || line["user"] != "alice" || line["auth"] != "SIMPLE" ||
			line["caller_context"] != c.context {
			t.Errorf("with the context %q: %v", c.context, line)
		}
	}
}
