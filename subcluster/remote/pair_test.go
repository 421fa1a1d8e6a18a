// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// haRM is a ResourceManager of a pair as it looks from outside. While it is standby its
// ports of RPC refuse, and its web server sends everybody to the active one.
type haRM struct {
	client, admin, web string

	mu     sync.Mutex
	active bool
	peer   *haRM
	hang   chan struct{} // not nil: calls wait until it is closed

	calls atomic.Int64 // of all ports
}

// newPair starts two of them, the first of which is active.
func newPair(t *testing.T) (first, second *haRM, addresses subcluster.Addresses) {
	first, second = &haRM{}, &haRM{}
	for _, rm := range []*haRM{first, second} {
		rm.client, _ = rpcServer(t, "127.0.0.1:0", clientProtocol, "getClusterMetrics", rm.serve)
		rm.admin, _ = rpcServer(t, "127.0.0.1:0", adminProtocol, "refreshQueues", rm.serve)
		server := httptest.NewServer(rm)
		t.Cleanup(server.Close)
		rm.web = server.Listener.Addr().String()
	}
	first.peer, second.peer = second, first
	first.become(true)
	return first, second, subcluster.Addresses{
		Client: first.client + "," + second.client,
		Admin:  first.admin + "," + second.admin,
		Web:    first.web + "," + second.web,
	}
}

// become makes it active, or standby.
func (rm *haRM) become(active bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.active = active
}

// hangs has all calls wait until the test is over.
func (rm *haRM) hangs(t *testing.T) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	hang := make(chan struct{})
	rm.hang = hang
	t.Cleanup(func() { close(hang) })
}

// take counts a call and holds it while the ResourceManager hangs.
func (rm *haRM) take() {
	rm.calls.Add(1)
	rm.mu.Lock()
	hang := rm.hang
	rm.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

func (rm *haRM) isActive() bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return rm.active
}

// serve serves RPC.
func (rm *haRM) serve(context.Context, []byte) ([]byte, error) {
	rm.take()
	if !rm.isActive() {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassStandby, Message: "ResourceManager is not Active!"}
	}
	return nil, nil
}

// ServeHTTP is its web server.
func (rm *haRM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rm.take()
	body, _ := io.ReadAll(r.Body)
	switch {
	case rm.isActive():
		w.Write([]byte(r.Method + " " + string(body)))
	case rm.peer.isActive():
		w.Header().Set("Location", "http://"+rm.peer.web+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		w.Header().Set("Refresh", "3;url=http://"+rm.web+r.URL.RequestURI()+"?next-refresh-interval=1")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// every calls all ports once.
func every(m *Member) error {
	_, err := m.Client(context.Background(), Read, "ann", "getClusterMetrics", nil)
	_, adminErr := m.Admin(context.Background(), "ann", "refreshQueues", nil)
	answer, _, webErr := m.Web(context.Background(), Write, http.MethodPut, "/ws/v1/x?y=z", "", nil, []byte("order"))
	if webErr == nil && string(answer) != "PUT order" {
		webErr = errors.New("the web server answers " + string(answer))
	}
	at, activeErr := m.ActiveWeb(context.Background())
	if activeErr == nil && at.Host != m.pair.First(m.web.hosts) {
		activeErr = errors.New("its pages are at " + at.Host)
	}
	return errors.Join(err, adminErr, webErr, activeErr)
}

// All ports of a pair follow the active host that one of them found; the other is not asked while that one answers.
func TestPairPortsFollowActiveOne(t *testing.T) {
	first, second, addresses := newPair(t)
	m := member(pool(t, Config{Trips: 1000}), addresses)
	for range 3 {
		if err := every(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := second.calls.Load(); n != 0 {
		t.Errorf("the standby got %d calls while the active one answered", n)
	}
	first.become(false)
	for range 2 {
		if err := every(m); !errors.Is(err, creel.ErrUnavailable) || errors.Is(err, creel.ErrStandby) {
			t.Errorf("with no active one: %v", err)
		}
	}
	second.become(true)
	asked := first.calls.Load()
	for range 3 {
		if err := every(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := first.calls.Load() - asked; n > 1 {
		t.Errorf("the standby got %d calls of 12, want the first alone", n)
	}
	if at, err := m.ActiveWeb(context.Background()); err != nil || at.Host != second.web {
		t.Errorf("its pages are at %s, %v", at.Host, err)
	}
}

// Calls to a standby go to the active host that it names, also where the record names the standby alone; and each
// port finds the active one by itself.
func TestEachPortFindsTheActiveOneByItself(t *testing.T) {
	first, second, addresses := newPair(t)
	first.become(false)
	second.become(true)
	p := pool(t, Config{})
	for name, call := range map[string]func(m *Member) error{
		"client": func(m *Member) error {
			_, err := m.Client(context.Background(), Write, "ann", "getClusterMetrics", nil)
			return err
		},
		"admin": func(m *Member) error {
			_, err := m.Admin(context.Background(), "ann", "refreshQueues", nil)
			return err
		},
		"web": func(m *Member) error {
			_, _, err := m.Web(context.Background(), Write, http.MethodPost, "/ws/v1/apps", "", nil, []byte("x"))
			return err
		},
		"pages": func(m *Member) error {
			at, err := m.ActiveWeb(context.Background())
			if err == nil && at.Host != second.web {
				err = errors.New("they are at " + at.Host)
			}
			return err
		},
	} {
		s := &subcluster.Status{}
		s.ID, s.Addresses = creel.SubclusterID(name), addresses
		if err := call(p.Member(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	alone := member(p, subcluster.Addresses{Web: first.web})
	if answer, _, err := alone.Web(
		context.Background(), Read, http.MethodGet, "/ws/v1/x", "", nil, nil,
	); err != nil || string(answer) != "GET " {
		t.Errorf("a standby alone: %q, %v", answer, err)
	}
	// An agent reads the pair as a member does.
	port := NewWebPort(addresses, login.Login{}, nil)
	if code, answer, err := port.call(
		context.Background(), http.MethodPut, SchedulerConfPath, nil, []byte("conf"),
	); err != nil || code != http.StatusOK || string(answer) != "PUT conf" {
		t.Errorf("an agent: %d %q, %v", code, answer, err)
	}
	second.become(false)
	if _, err := port.get(context.Background(), "/ws/v1/cluster/metrics", 1000); !errors.Is(err, creel.ErrStandby) {
		t.Errorf("an agent, with none active: %v", err)
	}
}

// A hanging active host costs one call its time at each port; later calls find its successor.
func TestSilentActiveDelaysOneCall(t *testing.T) {
	for name, call := range map[string]func(m *Member) error{
		"client": func(m *Member) error {
			_, err := m.Client(context.Background(), Write, "ann", "getClusterMetrics", nil)
			return err
		},
		"admin": func(m *Member) error {
			_, err := m.Admin(context.Background(), "ann", "refreshQueues", nil)
			return err
		},
		"web": func(m *Member) error {
			_, _, err := m.Web(context.Background(), Write, http.MethodPost, "/ws/v1/apps", "", nil, []byte("x"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, addresses := newPair(t)
			first.hangs(t)
			second.become(true) // elected, since the first one is silent
			m := member(pool(t, Config{Deadlines: [kinds]time.Duration{Write: 200 * time.Millisecond}}), addresses)
			var u *Unavailable
			if err := call(m); !errors.As(err, &u) || !u.Sent {
				t.Errorf("the first call: %v", err)
			}
			for range 3 {
				if err := call(m); err != nil {
					t.Errorf("a later call: %v", err)
				}
			}
			if a, b := first.calls.Load(), second.calls.Load(); a != 1 || b != 3 {
				t.Errorf("the silent one got %d calls, its successor %d", a, b)
			}
		})
	}
}
