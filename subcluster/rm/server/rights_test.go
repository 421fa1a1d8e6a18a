// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/authorizer"
	"github.com/creelrm/creel/internal/groups"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// policy is an outside authoriser: it allows what its set contains, as "USER ACTION QUEUE".
type policy struct {
	*httptest.Server
	mu      sync.Mutex
	allowed map[string]bool
	asked   map[string]int
}

func newPolicy(t *testing.T, allowed ...string) *policy {
	p := &policy{allowed: map[string]bool{}, asked: map[string]int{}}
	for _, text := range allowed {
		p.allowed[text] = true
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Input struct{ User, Action, Queue string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		text := q.Input.User + " " + q.Input.Action + " " + q.Input.Queue
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.asked[text]++; p.allowed[text] {
			io.WriteString(w, `{"result": true}`)
			return
		}
		io.WriteString(w, `{"result": {"allow": false, "reason": "not in the policy"}}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// startUnder runs a server whose rights the policy decides. The lists of its queue admit lea.
func startUnder(t *testing.T, p *policy, lists Lists, change func(*Config)) *Server {
	c := Config{
		ClusterID: "test", Machine: rm.Defaults(), ACLs: true, AdminACL: queues.ACL{Users: []string{"root"}},
		Groups: groups.New(func(user string) []string { return []string{user} }, time.Minute),
		Outside: &Outside{Lists: lists, Authorizer: authorizer.Open(authorizer.Config{
			URL: p.URL, Client: authorizer.NewClient(nil), Groups: func(string) []string { return nil },
			Timeout: 5 * time.Second, Keep: time.Minute, Most: 100, Logger: slog.New(slog.DiscardHandler),
		})},
	}
	c.Machine.Queues = queues.Default()
	c.Machine.Queues.Root.Submit = queues.ACL{Users: []string{"lea"}}
	c.Machine.Queues.Root.Admin = queues.ACL{}
	for i := range c.Machine.Queues.Root.Children {
		q := &c.Machine.Queues.Root.Children[i]
		q.Submit, q.Admin = queues.ACL{}, queues.ACL{}
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s
}

// submits submits an application as a user.
func submits(t *testing.T, s *Server, user string) (creel.ApplicationID, error) {
	id, err := s.NewApplicationIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	who := Caller{User: user}
	_, err = Do(t.Context(), s, who, s.Submit(who, &pb.ApplicationSubmissionContextProto{
		ApplicationId: pb.FromApplicationID(id), Queue: new("default"),
		AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: pb.FromResource(creel.NewResource(512, 1)),
	}, Forwarding{}))
	return id, err
}

// The policy decides instead of the queue's lists, before the call changes anything.
func TestOutsideAuthoriserDecidesInsteadOfLists(t *testing.T) {
	p := newPolicy(t, "ann submit-app root.default", "ada admin-queue root.default")
	s := startUnder(t, p, ListsNever, nil)
	id, err := submits(t, s, "ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"lea", "eve"} {
		if _, err := submits(t, s, user); err == nil || !strings.Contains(err.Error(),
			"to queue root.default: the outside authoriser denies it: not in the policy") {
			t.Errorf("%s: %v", user, err)
		}
	}
	sees := func(user string) (seen bool) {
		if err := s.Query(t.Context(), func(m *rm.Machine, _ time.Time) {
			_, err := s.Viewable(m, Caller{User: user}, id)
			seen = err == nil
		}); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	for user, want := range map[string]bool{"ann": true, "ada": true, "root": true, "eve": false, "lea": false} {
		if sees(user) != want {
			t.Errorf("%s sees the application: %v", user, !want)
		}
	}
	kill := func(user string) error {
		_, err := Do(t.Context(), s, Caller{User: user}, s.Kill(Caller{User: user}, id, ""))
		return err
	}
	if err := kill("eve"); err == nil || !strings.Contains(err.Error(), "not in the policy") {
		t.Errorf("%v", err)
	}
	if err := kill("ada"); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for text, n := range p.asked {
		if n != 1 {
			t.Errorf("%q was asked %d times", text, n)
		}
		if strings.HasPrefix(text, "root ") || text == "ann admin-queue root.default" {
			t.Errorf("%q was asked: owners and administrators need no right at the queue", text)
		}
	}
}

// While the authoriser is away, or denies, the lists count as configured.
func TestListsCountBesideOutsideAuthoriserAsConfigured(t *testing.T) {
	for _, c := range []struct {
		lists Lists
		away  bool
		ann   bool // named by the policy
		lea   bool // named by the list
	}{
		{ListsNever, false, true, false},
		{ListsNever, true, false, false},
		{ListsWhenAway, false, true, false},
		{ListsWhenAway, true, false, true},
		{ListsAlso, false, true, true},
		{ListsAlso, true, false, true},
	} {
		p := newPolicy(t, "ann submit-app root.default")
		s := startUnder(t, p, c.lists, nil)
		if c.away {
			p.Close()
		}
		for user, want := range map[string]bool{"ann": c.ann, "lea": c.lea, "eve": false} {
			_, err := submits(t, s, user)
			if (err == nil) != want {
				t.Errorf("%s, away %v: %s: %v", c.lists, c.away, user, err)
			}
			if c.away && c.lists == ListsNever && !strings.Contains(err.Error(), "the outside authoriser does not answer: ") {
				t.Errorf("%v", err)
			}
		}
	}
}

// As in Hadoop, lists of CapacityScheduler's queues admit everybody while yarn.acl.enable is false.
func TestListsOfQueuesNeedACLs(t *testing.T) {
	for _, acls := range []bool{true, false} {
		s := startUnder(t, newPolicy(t), ListsNever, func(c *Config) { c.ACLs, c.Outside = acls, nil })
		if _, err := submits(t, s, "eve"); (err == nil) == acls {
			t.Errorf("yarn.acl.enable %v: %v", acls, err)
		}
	}
}

// A stalled authoriser delays its caller alone.
func TestOwnerDoesNotWaitForOutsideAuthoriser(t *testing.T) {
	p := newPolicy(t, "ann submit-app root.default")
	s := startUnder(t, p, ListsNever, nil)
	p.mu.Lock() // it stalls
	submitted := make(chan error, 1)
	go func() {
		_, err := submits(t, s, "ann")
		submitted <- err
	}()
	for range 100 {
		if err := s.Query(t.Context(), func(*rm.Machine, time.Time) {}); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-submitted:
		t.Errorf("submitted without an answer: %v", err)
	default:
	}
	p.mu.Unlock()
	if err := <-submitted; err != nil {
		t.Error(err)
	}
}
