// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// behindPaths is a federation whose agents register the members, with client ports and web ports behind paths.
type behindPaths struct {
	*federation
	client *hrpc.Client
}

// farMember is a member behind paths, with its start and its fault.
type farMember struct {
	name  string
	start func(f *federation, name string) memberProcess
	fault func(memberProcess) // returns when the fault is over and all delayed data has arrived

	memberProcess
}

// memberProcess is a ResourceManager without federation settings.
type memberProcess struct {
	*process.Process
	client, web string // ports
	paths       []*path
}

// foundBehindPaths starts a federation of such members over a store. settings are additional settings of its router.
func foundBehindPaths(t *testing.T, url string, members []*farMember, settings ...string) *behindPaths {
	t.Helper()
	f := &federation{t: t, storeURL: url + "?timeout=300ms&max_wait=" + patience.String()}
	b := &behindPaths{federation: f, client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})}
	t.Cleanup(func() { b.client.Close() })
	for _, m := range members {
		m.memberProcess = m.start(f, m.name)
		m.paths = []*path{newPath(t, m.client), newPath(t, m.web)}
		f.members = append(f.members, &member{id: m.name, rm: &daemon{
			Process: m.Process, at: map[string]string{"client": m.client, "web": m.web},
		}})
		args := []string{rm.Binary(t), "agent", "--subcluster", m.name}
		for _, s := range []string{
			"creel.store.url=" + f.storeURL,
			"creel.membership.heartbeat-interval=300ms", // the lease is 30 s: no member is lost meanwhile
			"yarn.resourcemanager.address=" + m.paths[0].address,
			"yarn.resourcemanager.webapp.address=" + m.paths[1].address,
		} {
			args = append(args, "-D", s)
		}
		process.Start(t, process.Command{Name: "agent-" + m.name, Dir: t.TempDir(), Args: args})
	}
	f.router = f.start("router", "router", append([]string{
		"creel.store.url=" + f.storeURL,
		"creel.router.policy=uniform",
		"yarn.router.clientrm.address=127.0.0.1:0",
		"yarn.router.rmadmin.address=127.0.0.1:0",
		"yarn.router.webapp.address=127.0.0.1:0",
	}, settings...)...)
	f.await("the router sees all members and nodes", func() bool {
		return len(f.active()) == len(members) && f.nodes(f.router) == len(members)
	})
	f.submitSoon(f.newID()) // with a new store the first submissions find no home
	return b
}

// creelRM starts one of creel's ResourceManagers, with a node.
func creelRM(f *federation, name string) memberProcess {
	d := f.start("rm-"+name, "rm",
		"yarn.resourcemanager.address=127.0.0.1:0",
		"yarn.resourcemanager.scheduler.address=127.0.0.1:0",
		"yarn.resourcemanager.resource-tracker.address=127.0.0.1:0",
		"yarn.resourcemanager.admin.address=127.0.0.1:0",
		"yarn.resourcemanager.webapp.address=127.0.0.1:0",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms=100",
	)
	f.startNode("nm-"+name, d.at["tracker"])
	return memberProcess{Process: d.Process, client: d.at["client"], web: d.at["web"]}
}

func (f *federation) startNode(name, tracker string) *daemon {
	return f.start(name, "nm",
		"yarn.resourcemanager.resource-tracker.address="+tracker,
		"creel.nm.simulate=1",
		"creel.nm.simulate.memory-mb=65536",
		"creel.nm.simulate.vcores=64",
		"creel.nm.simulate.run-time=1h",
	)
}

// submitRPC sends a submission by Hadoop RPC.
func (b *behindPaths) submitRPC(id string, managed bool) error {
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		return err
	}
	router := yarnrpc.NewApplicationClientProtocolClient(
		b.client, b.router.at["client"], hrpc.Login{User: hadoop.OSUser(b.t)},
	)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = router.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId:   pb.FromApplicationID(app),
			ApplicationName: proto.String("story"),
			ApplicationType: proto.String("TEST"),
			Queue:           proto.String("default"),
			UnmanagedAm:     proto.Bool(!managed),
			Resource:        pb.FromResource(creel.NewResource(256, 1)),
			AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"true"}},
		},
	})
	return err
}

// manners are the ways to submit an application.
var manners = []struct {
	name    string
	byRPC   bool
	managed bool // its AM is a container
}{{"REST", false, false}, {"RPC", true, false}, {"RPC, managed", true, true}}

// story is a series of submissions during a fault. Each is repeated, as its responses request, until it is accepted.
type story struct {
	*behindPaths
	ids      []string
	repeated atomic.Int32
}

// tell submits a quarter of n applications, starts fault, and then submits the others. So each member should receive
// some during its fault. It returns when all were accepted and the fault is over.
func (s *story) tell(n int, fault func()) {
	s.t.Helper()
	ids := s.newIDs(n)
	var wg sync.WaitGroup
	s.send(&wg, ids[:n/4], nil)
	wg.Go(fault)
	time.Sleep(20 * time.Millisecond)
	s.send(&wg, ids[n/4:], nil)
	wg.Wait()
}

// newIDs returns n application ids. The audit will check them.
func (s *story) newIDs(n int) []string {
	for range n {
		s.ids = append(s.ids, s.newID())
	}
	return s.ids[len(s.ids)-n:]
}

// send submits applications, in each of manners by turns, and repeats as the responses request. It calls taken for each
// accepted application.
func (s *story) send(wg *sync.WaitGroup, ids []string, taken func(id string)) {
	for i, id := range ids {
		wg.Go(func() {
			how := manners[i%len(manners)]
			for {
				err := s.once(id, how.byRPC, how.managed)
				if err == nil {
					if taken != nil {
						taken(id)
					}
					return
				}
				if !errors.Is(err, creel.ErrUnavailable) {
					s.t.Errorf("the submission of %s by %s was answered %v", id, how.name, err)
					return
				}
				s.repeated.Add(1)
				time.Sleep(500 * time.Millisecond)
			}
		})
	}
}

// once sends a submission; the error is of kind creel.ErrUnavailable if the client must repeat it.
func (b *behindPaths) once(id string, byRPC, managed bool) error {
	if byRPC {
		err := b.submitRPC(id, managed)
		if errors.Is(err, creel.ErrBusy) {
			return errors.Join(err, creel.ErrUnavailable)
		}
		return err
	}
	switch a := b.submit(id); {
	case a.code == http.StatusAccepted:
		return nil
	case a.code == http.StatusServiceUnavailable && a.retryAfter != "":
		return creel.ErrUnavailable
	default:
		return fmt.Errorf("%d %s", a.code, a.body)
	}
}

// audit checks every application at the ResourceManagers themselves. Each must be at exactly one member, alive, and in
// its first attempt.
func (s *story) audit() {
	s.t.Helper()
	s.await("all members are active again", func() bool { return len(s.active()) == len(s.members) })
	s.await("the router reports all applications, as breakers close", func() bool {
		return !slices.ContainsFunc(s.ids, func(id string) bool { return s.state(s.router, id) == "" })
	})
	doubled, lost := 0, 0
	places := map[string]int{}
	for _, id := range s.ids {
		homes := s.homes(id)
		switch len(homes) {
		case 0:
			lost++
			s.t.Errorf("%s is nowhere", id)
			continue
		case 1:
			places[homes[0]]++
		default:
			doubled++
			s.t.Errorf("%s runs in %v", id, homes)
		}
		if state := s.state(s.router, id); state != "ACCEPTED" && state != "RUNNING" {
			s.t.Errorf("%s at %s is %q", id, homes[0], state)
		}
		if n := s.attempts(homes[0], id); n != 1 {
			s.t.Errorf("%s is in attempt %d", id, n)
		}
	}
	s.t.Logf("%d applications, %d doubled, %d lost; clients were told %d times to repeat; %v",
		len(s.ids), doubled, lost, s.repeated.Load(), places)
}

// attempts returns the number of an application's attempts at a member.
func (f *federation) attempts(home, id string) int {
	var doc struct {
		AppAttempts struct{ AppAttempt []struct{ ID int } }
	}
	call(f.t, f.member(home).rm, http.MethodGet, "/ws/v1/cluster/apps/"+id+"/appattempts", nil, &doc)
	return len(doc.AppAttempts.AppAttempt)
}
