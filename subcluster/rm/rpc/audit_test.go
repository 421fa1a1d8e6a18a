// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/impersonation"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// auditor keeps the audit lines of a daemon's log.
type auditor struct {
	mu    sync.Mutex
	lines []map[string]string
}

func (a *auditor) Enabled(context.Context, slog.Level) bool { return true }
func (a *auditor) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a *auditor) WithGroup(string) slog.Handler            { return a }

func (a *auditor) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "audit" {
		return nil
	}
	line := map[string]string{"level": r.Level.String()}
	r.Attrs(func(at slog.Attr) bool {
		line[at.Key] = at.Value.String()
		return true
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, line)
	return nil
}

func (a *auditor) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.lines)
}

// of are the lines of one operation.
func (a *auditor) of(operation string) (found []map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		if l["operation"] == operation {
			found = append(found, l)
		}
	}
	return found
}

func TestEveryChangeLeavesALineOfAudit(t *testing.T) {
	log := &auditor{}
	cfg := config()
	cfg.Logger = slog.New(log)
	cfg.ACLs = true
	cfg.Machine.Queues.Root.Admin = queues.ACL{}
	cfg.Machine.Queues.Root.Children[0].Admin = queues.ACL{}
	cfg.Proxies = impersonation.Rules{"oozie": {Hosts: []string{"*"}, Users: []string{"bob"}}}
	c := start(t, cfg)
	c.nodes(1, nil)
	ctx, bob := t.Context(), c.as("bob")
	id, amrm := c.launchUnmanaged("bob", nil)
	am := c.amClient(amrm)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	app := pb.FromApplicationID(id)
	calls := []struct {
		operation, target string
		call              func(user yarnrpc.ApplicationClientProtocolClient) error
	}{
		{"updateApplicationPriority", id.String(), func(u yarnrpc.ApplicationClientProtocolClient) error {
			_, err := u.UpdateApplicationPriority(
				ctx,
				&pb.UpdateApplicationPriorityRequestProto{ApplicationId: app, ApplicationPriority: pb.FromPriority(0)},
			)
			return err
		}},
		{"updateApplicationTimeouts", id.String(), func(u yarnrpc.ApplicationClientProtocolClient) error {
			_, err := u.UpdateApplicationTimeouts(
				ctx,
				&pb.UpdateApplicationTimeoutsRequestProto{
					ApplicationId: app,
					ApplicationTimeouts: []*pb.ApplicationUpdateTimeoutMapProto{
						{
							ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
							ExpireTime:             new("UNLIMITED"),
						},
					},
				},
			)
			return err
		}},
		{"moveApplicationAcrossQueues", id.String(), func(u yarnrpc.ApplicationClientProtocolClient) error {
			_, err := u.MoveApplicationAcrossQueues(
				ctx,
				&pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: app, TargetQueue: new("default")},
			)
			return err
		}},
		{"forceKillApplication", id.String(), func(u yarnrpc.ApplicationClientProtocolClient) error {
			_, err := u.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: app})
			return err
		}},
	}
	for _, k := range calls {
		// A stranger is refused and written down; the owner is let and written down.
		if err := k.call(c.as("eve")); err == nil {
			t.Errorf("eve may do %s", k.operation)
		}
		if err := k.call(bob); err != nil {
			t.Errorf("bob: %s: %v", k.operation, err)
		}
		lines := log.of(k.operation)
		if len(lines) != 2 {
			t.Errorf("%s left %d lines, want 2: %v", k.operation, len(lines), lines)
			continue
		}
		for i, want := range []map[string]string{
			{"user": "eve", "target": k.target, "result": "failure", "level": "WARN"},
			{"user": "bob", "target": k.target, "result": "success", "level": "INFO"},
		} {
			for key, value := range want {
				if lines[i][key] != value {
					t.Errorf("%s: %s is %q, want %q: %v", k.operation, key, lines[i][key], value, lines[i])
				}
			}
		}
	}
	// Clients repeat a kill until it is done: a repetition without effect leaves no line.
	for range 50 {
		killed := must(bob.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: app}))
		if killed.GetIsKillCompleted() {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	must(bob.ForceKillApplication(ctx, &pb.KillApplicationRequestProto{ApplicationId: app}))
	if lines := log.of("forceKillApplication"); len(lines) != 2 {
		t.Errorf("a repeated kill left %d lines, with a stranger's 2 are wanted: %v", len(lines), lines)
	}
	for operation, user := range map[string]string{"submitApplication": "bob", "registerApplicationMaster": creel.AttemptID{Application: id, Attempt: 1}.String()} {
		if lines := log.of(operation); len(lines) != 1 || lines[0]["user"] != user || lines[0]["result"] != "success" {
			t.Errorf("%s left %v", operation, lines)
		}
	}
	// The line names a proxying user; administrators' orders are logged too.
	proxied := yarnrpc.NewApplicationClientProtocolClient(
		c.client,
		c.s.Addresses().Client,
		hrpc.Login{User: "bob", RealUser: "oozie"},
	)
	must(proxied.GetDelegationToken(ctx, &pb.GetDelegationTokenRequestProto{Renewer: new("yarn")}))
	if lines := log.of(
		"getDelegationToken",
	); len(lines) != 1 || lines[0]["user"] != "bob" || lines[0]["real_user"] != "oozie" ||
		lines[0]["target"] != "yarn" {
		t.Errorf("a token by proxy left %v", lines)
	}
	_, denied := c.admin("eve").RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{})
	must(c.admin("root").RefreshQueues(ctx, &pb.RefreshQueuesRequestProto{}))
	if lines := log.of(
		"refreshQueues",
	); denied == nil || len(lines) != 2 || lines[0]["result"] != "failure" || lines[1]["result"] != "success" ||
		lines[1]["user"] != "root" {
		t.Errorf("refreshes left %v; eve was answered %v", lines, denied)
	}
	// Reading leaves none.
	before := log.count()
	c.report("bob", id)
	if n := log.count(); n != before {
		t.Errorf("a report left %d lines", n-before)
	}
}
