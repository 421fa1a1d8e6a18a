// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// policyAgent is an Open Policy Agent with the policy of docs/operations/security.md.
type policyAgent struct {
	*process.Process
	address string
	command process.Command
}

func startPolicyAgent(t *testing.T) *policyAgent {
	t.Helper()
	const program = "github.com/open-policy-agent/opa@v1.22.3"
	built := hadoop.Cached(t, "opa", []byte(program), func(dir string) error {
		t.Log("building Open Policy Agent, two minutes, once")
		cmd := exec.CommandContext(t.Context(), "go", "install", program)
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath")
		cmd.Stderr = os.Stderr
		return cmd.Run()
	})
	page, err := os.ReadFile("../../docs/operations/security.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := regexp.MustCompile("(?s)```rego\n(.*?)```").FindSubmatch(page)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.rego")
	if err := os.WriteFile(file, policy[1], 0o600); err != nil {
		t.Fatal(err)
	}
	a := &policyAgent{address: process.FreeAddress(t, "127.0.0.1")}
	a.command = process.Command{Name: "opa", Dir: dir, Args: []string{
		filepath.Join(built, "opa"), "run", "--server", "--disable-telemetry", "--addr", a.address, file,
	}}
	a.start(t)
	t.Cleanup(func() { a.End(t) })
	return a
}

// start starts it, or starts it again.
func (a *policyAgent) start(t *testing.T) {
	t.Helper()
	a.Process = process.Spawn(t, a.command)
	a.Await(t, "its health", func() bool {
		r, err := http.Get("http://" + a.address + "/health")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// An Open Policy Agent decides about submissions to a queue, and about applications of others in it, instead of the
// queue's lists. While it is away both are denied; administrators of the cluster and owners are not.
func TestOpenPolicyAgentDecidesAboutQueues(t *testing.T) {
	agent := startPolicyAgent(t)
	me := hadoop.OSUser(t)
	const queue = "yarn.scheduler.capacity.root.prod."
	rm := Start(t, Options{Volatile: true, Conf: hadoop.Conf{
		"yarn.acl.enable":                            "true",
		"yarn.admin.acl":                             me,
		"creel.authorizer.url":                       "http://" + agent.address + "/v1/data/yarn/allow",
		"creel.authorizer.cache-time":                "1s",
		"hadoop.user.group.static.mapping.overrides": "ann=staff;bob=guests;olga=operators",

		"yarn.scheduler.capacity.root.queues":           "default,prod",
		"yarn.scheduler.capacity.root.default.capacity": "50",
		queue + "capacity":                              "50",
		queue + "acl_submit_applications":               "bob",
	}})
	s := newStage(t, rm.Process, rm.Addresses)
	as := func(user string) yarnrpc.ApplicationClientProtocolClient {
		return yarnrpc.NewApplicationClientProtocolClient(s.client, s.Client, hrpc.Login{User: user})
	}
	submit := func(user string) (*pb.ApplicationIdProto, error) {
		n := ok(as(user).GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{}))(s)
		ask := unmanaged(n.GetApplicationId(), "of "+user)
		ask.Queue = new("root.prod")
		_, err := as(user).SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: ask,
		})
		return n.GetApplicationId(), err
	}
	kill := func(user string, id *pb.ApplicationIdProto) error {
		_, err := as(user).ForceKillApplication(t.Context(), &pb.KillApplicationRequestProto{ApplicationId: id})
		return err
	}
	denied := func(what string, err error, reason string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, not denied because %q", what, err, reason)
		}
	}
	allowed := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	one, err := submit("ann")
	allowed("the staff's submission", err)
	two, err := submit("ann")
	allowed("the staff's second submission", err)
	_, err = submit("bob")
	denied("a submission of a guest, whom the list allows", err, "the outside authoriser denies it")
	denied("a guest's kill", kill("bob", one), "")
	allowed("an operator's kill", kill("olga", one))

	agent.Kill()
	rm.Await(t, "denied submissions while the agent is away", func() bool {
		_, err := submit("ann")
		return err != nil && strings.Contains(err.Error(), "does not answer")
	})
	allowed("the kill of an administrator of the cluster", kill(me, two))
	agent.start(t)
	rm.Await(t, "submissions after it is back", func() bool { _, err := submit("ann"); return err == nil })
}
