// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// soak is a federation of processes with faults drawn from a seed, while applications start and end. It has three
// ResourceManagers with journals, two routers, two proxies, and Redis with a replica and Sentinels.
type soak struct {
	*federation
	client  *hrpc.Client
	store   *redistest.Sentinels
	routers []*daemon
	proxies []*daemon

	healed   chan struct{} // closed when nothing happens any more
	repeated atomic.Int64  // calls that had to be repeated

	mu   sync.Mutex
	done []string // applications that their AM finished
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	store := redistest.StartSentinels(t)
	data := t.TempDir()
	f := foundAs(t, store.URL(), layout{members: 3, ofRM: func(id string) []string {
		return []string{"creel.rm.data=" + filepath.Join(data, id)}
	}})
	s := &soak{
		federation: f, store: store, healed: make(chan struct{}),
		client: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
	}
	t.Cleanup(func() { s.client.Close() })
	s.routers = []*daemon{f.router, f.startRouter("router-2", f.storeURL)}
	s.proxies = []*daemon{f.proxy, f.startProxy("proxy-2")}
	return s
}

// fault is one thing that can happen.
type fault struct {
	part, does string
	// happen makes it, and returns when it is over.
	happen func(rnd *rand.Rand)
	once   bool
}

const store = "the store"

// faults returns all possible faults of this federation.
func (s *soak) faults() (all []fault) {
	pause := func(name string, shortest, longest time.Duration, stop, run func()) {
		all = append(all, fault{part: name, does: "stands still", happen: func(rnd *rand.Rand) {
			stop()
			time.Sleep(shortest + time.Duration(rnd.Int64N(int64(longest-shortest))))
			run()
		}})
	}
	killed := func(d *daemon) {
		all = append(all, fault{part: d.Name, does: "dies", happen: func(rnd *rand.Rand) {
			d.Kill()
			time.Sleep(time.Duration(rnd.Int64N(int64(4 * time.Second))))
			d.again(s.t)
		}})
	}
	signals := func(d *daemon) (stop, run func()) {
		return func() { d.Signal(syscall.SIGSTOP) }, func() { d.Signal(syscall.SIGCONT) }
	}
	for _, m := range s.members {
		killed(m.rm)
		stop, run := signals(m.rm)
		pause(m.rm.Name, time.Second, stall, stop, run)
		stop, run = signals(m.nodes)
		pause(m.nodes.Name, time.Second, 5*time.Second, stop, run)
	}
	for _, d := range append(append([]*daemon(nil), s.routers...), s.proxies...) {
		killed(d)
		stop, run := signals(d)
		pause(d.Name, time.Second, stall, stop, run)
	}
	pause(store, time.Second, 6*time.Second, s.store.Primary.Pause, s.store.Primary.Resume)
	all = append(all,
		fault{part: store, does: "is slow", happen: func(rnd *rand.Rand) {
			s.store.Via.Delay(time.Duration(50+rnd.IntN(150)) * time.Millisecond)
			time.Sleep(4 * time.Second)
			s.store.Via.Delay(0)
		}},
		fault{part: store, does: "fails over", once: true, happen: func(*rand.Rand) {
			s.store.Via.Cut()
			s.store.AwaitFailover()
		}},
	)
	return all
}

// rage injects faults until the time is over. At most two run at once, and never two on the same part. Their order
// depends on the seed alone.
func (s *soak) rage(seed uint64, d time.Duration) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	all := s.faults()
	free := map[string]*sync.Mutex{}
	slots := make(chan struct{}, 2)
	failedOver := false
	var wg sync.WaitGroup
	for began := time.Now(); time.Since(began) < d; {
		f := all[rnd.IntN(len(all))]
		own := rand.New(rand.NewPCG(seed, rnd.Uint64()))
		gap := time.Duration(rnd.Int64N(int64(2 * time.Second)))
		if failedOver && f.part == store {
			continue // the former primary is out, and its path with it
		}
		failedOver = failedOver || f.once
		if free[f.part] == nil {
			free[f.part] = &sync.Mutex{}
		}
		part := free[f.part]
		slots <- struct{}{}
		part.Lock()
		s.t.Logf("%5.1fs %s %s", time.Since(began).Seconds(), f.part, f.does)
		wg.Go(func() {
			f.happen(own)
			part.Unlock()
			<-slots
		})
		time.Sleep(gap)
	}
	wg.Wait()
	close(s.healed)
}

// patient repeats a call until it succeeds, and fails process.Guard after all faults are over.
func (s *soak) patient(what string, try func() (bool, error)) error {
	var end time.Time
	var last error
	for {
		ok, err := try()
		if ok {
			return nil
		}
		if errors.Is(err, errFinal) {
			return fmt.Errorf("%s: %w", what, err)
		}
		last = err
		s.repeated.Add(1)
		select {
		case <-s.healed:
			if end.IsZero() {
				end = time.Now().Add(process.Guard)
			} else if time.Now().After(end) {
				return fmt.Errorf("%s: not in %v after the last fault: %w", what, process.Guard, last)
			}
		default:
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// errFinal marks an answer that no repeat would change.
var errFinal = errors.New("for good")

// live runs the whole life of one application. A user submits it through a responding router. Its AM requests
// containers through a proxy, and finishes it.
func (s *soak) live(rnd *rand.Rand) (id string, err error) {
	router := func() *federation {
		through := *s.federation
		through.router = s.routers[rnd.IntN(len(s.routers))]
		return &through
	}
	err = s.patient("an application id", func() (bool, error) {
		var doc struct {
			ID string `json:"application-id"`
		}
		a := call(s.t, router().router, http.MethodPost, "/ws/v1/cluster/apps/new-application", nil, &doc)
		id = doc.ID
		return id != "", fmt.Errorf("%d %s", a.code, a.body)
	})
	if id == "" {
		return id, err
	}
	err = s.patient("the submission of "+id, func() (bool, error) {
		switch a := router().submit(id); {
		case a.code == http.StatusAccepted:
			return true, nil
		case a.code == 0 || a.code == http.StatusServiceUnavailable && a.retryAfter != "":
			return false, fmt.Errorf("%d %s", a.code, a.body)
		default:
			return false, fmt.Errorf("%w: %d %s", errFinal, a.code, a.body)
		}
	})
	if err != nil {
		return id, err
	}
	m := &soakAM{soak: s, id: id, want: 1 + rnd.IntN(6), has: map[string]bool{}}
	if err := m.login(s.proxies[rnd.IntN(len(s.proxies))]); err != nil {
		return id, err
	}
	if err := m.register(); err != nil {
		return id, err
	}
	for end := time.Now().Add(time.Duration(rnd.Int64N(int64(8 * time.Second)))); ; time.Sleep(300 * time.Millisecond) {
		if err := m.allocate(); err != nil {
			return id, err
		}
		if len(m.has) >= m.want && time.Now().After(end) {
			return id, m.finish()
		}
	}
}

// soakAM is an AM that handles failed calls as Hadoop's client library does.
type soakAM struct {
	*soak
	id     string
	am     yarnrpc.ApplicationMasterProtocolClient
	want   int
	has    map[string]bool
	lastID int32
	asked  bool
}

// call limits the time of an AM's call. It returns an error that a repeat may cure, or errFinal if the AM is not
// registered with the current ResourceManager.
func (m *soakAM) call(make func(ctx context.Context) error) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = make(ctx)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, creel.ErrAttemptNotFound), errors.Is(err, creel.ErrInvalidRequest), tokenUnknown(err):
		return false, fmt.Errorf("%w: %w", errFinal, err)
	}
	return false, err
}

// tokenUnknown reports whether err is a ResourceManager's response to the AM of a finished application.
func tokenUnknown(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not found in AMRMTokenSecretManager")
}

func (m *soakAM) login(proxy *daemon) error {
	app, err := creel.ParseApplicationID(m.id)
	if err != nil {
		return err
	}
	// The token comes from home itself, as a container's does.
	return m.patient("the token of "+m.id, func() (bool, error) {
		for _, at := range m.members {
			c := yarnrpc.NewApplicationClientProtocolClient(m.client, at.rm.at["client"], hrpc.Login{User: hadoop.OSUser(m.t)})
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			r, err := c.GetApplicationReport(ctx,
				&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
			cancel()
			if t := r.GetApplicationReport().GetAmRmToken(); err == nil && t != nil {
				m.am = yarnrpc.NewApplicationMasterProtocolClient(m.client, proxy.at["proxy"], hrpc.Login{
					Credential: &hrpc.Credential{
						Identifier: t.GetIdentifier(), Password: t.GetPassword(), Kind: t.GetKind(),
					},
				})
				return true, nil
			}
		}
		return false, errors.New("no ResourceManager gives it")
	})
}

func (m *soakAM) register() error {
	m.lastID, m.asked = 0, false
	return m.patient("the registration of "+m.id, func() (bool, error) {
		return m.call(func(ctx context.Context) error {
			_, err := m.am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{
				Host: proto.String("am"), RpcPort: proto.Int32(-1), TrackingUrl: proto.String(""),
			})
			if err != nil && strings.Contains(err.Error(), "already registered") {
				return nil // the answer to an earlier call was lost
			}
			return err
		})
	})
}

func (m *soakAM) allocate() error {
	again := false
	err := m.patient("an allocate of "+m.id, func() (bool, error) {
		return m.call(func(ctx context.Context) error {
			req := &pb.AllocateRequestProto{ResponseId: proto.Int32(m.lastID), Progress: proto.Float32(0.5)}
			if !m.asked {
				req.Ask = []*pb.ResourceRequestProto{{
					Priority: pb.FromPriority(1), ResourceName: proto.String("*"),
					NumContainers: proto.Int32(int32(m.want - len(m.has))),
					Capability:    pb.FromResource(creel.NewResource(256, 1)),
				}}
			}
			r, err := m.am.Allocate(ctx, req)
			if errors.Is(err, creel.ErrNotRegistered) {
				again = true
				return nil
			}
			if err != nil {
				return err
			}
			m.asked, m.lastID = true, r.GetResponseId()
			for _, c := range r.GetAllocatedContainers() {
				id := pb.ToContainerID(c.GetId()).String()
				if m.has[id] {
					return fmt.Errorf("%w: %s was granted twice", errFinal, id)
				}
				m.has[id] = true
			}
			return nil
		})
	})
	if err == nil && again {
		return m.register()
	}
	return err
}

func (m *soakAM) finish() error {
	again := true
	for again {
		again = false
		err := m.patient("the end of "+m.id, func() (bool, error) {
			return m.call(func(ctx context.Context) error {
				r, err := m.am.FinishApplicationMaster(ctx, &pb.FinishApplicationMasterRequestProto{
					FinalApplicationStatus: pb.FinalApplicationStatusProto_APP_SUCCEEDED.Enum(),
				})
				if errors.Is(err, creel.ErrNotRegistered) {
					again = true
					return nil
				}
				if err == nil && !r.GetIsUnregistered() {
					return creel.ErrBusy
				}
				return err
			})
		})
		if err == nil && again {
			if err = m.register(); tokenUnknown(err) {
				break // home accepted the unregistration but its answer was lost; the audit checks that
			}
		}
		if err != nil {
			return err
		}
	}
	m.mu.Lock()
	m.soak.done = append(m.soak.done, m.id)
	m.mu.Unlock()
	return nil
}
