// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/failover"
	"github.com/creelrm/creel/subcluster/login"
	"github.com/sony/gobreaker/v2"
)

// Kind is a kind of call with a separate breaker and deadline.
type Kind int

// The kinds of call.
const (
	Write Kind = iota // changes something: submission, kill, move
	Read              // reads one thing: a report
	List              // reads many things: applications, nodes
	kinds
)

func (k Kind) String() string { return [...]string{"write", "read", "list"}[k] }

// DialTLS makes a connection with TLS, as http.Transport.DialTLSContext does.
type DialTLS = func(ctx context.Context, network, address string) (net.Conn, error)

// Config of a Pool. Zero values mean the defaults.
type Config struct {
	// User is this process's user towards members; callers' users are sent as effective users
	User      string
	Ticket    *login.Ticket        // of User, with Kerberos; nil: simple authentication
	Deadlines [kinds]time.Duration // of one call: write 15 s, read 5 s, list 10 s
	// OpenFor is the time before an open breaker lets one call through, 5 s
	OpenFor time.Duration
	Trips   uint32                                 // consecutive unanswered calls that open a breaker, 5
	KindOf  func(string) error                     // class to sentinel, yarnrpc.KindOf
	Changed func(creel.SubclusterID, Kind, string) // reports a breaker's new state, for logs; may be nil

	Interceptors []hrpc.ClientInterceptor // for calls by Hadoop RPC: traces
	// DialTLS makes connections to web ports with TLS; nil: they trust the machine's signers.
	DialTLS DialTLS
	// Transport wraps the transport of REST calls, for traces; nil: no wrapper.
	Transport func(http.RoundTripper) http.RoundTripper
	Clock     *pauseclock.Clock // distinguishes this process's pauses from a member's silence; its owner runs it
}

func (c Config) withDefaults() Config {
	for k, d := range [kinds]time.Duration{Write: 15 * time.Second, Read: 5 * time.Second, List: 10 * time.Second} {
		if c.Deadlines[k] <= 0 {
			c.Deadlines[k] = d
		}
	}
	if c.OpenFor <= 0 {
		c.OpenFor = 5 * time.Second
	}
	if c.Trips == 0 {
		c.Trips = 5
	}
	return c
}

// Pool has a Member for each subcluster. Call Close after use.
type Pool struct {
	conf  Config
	login login.Login
	rpc   *hrpc.Client
	http  *http.Client

	mu      sync.RWMutex
	members map[creel.SubclusterID]*Member
}

// NewPool makes an empty pool; members are added on first use.
func NewPool(conf Config) *Pool {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // members are named by address; a web proxy from the environment is not meant for them
	transport.DialContext, transport.DialTLSContext = dial, conf.DialTLS
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true // routers are near members: compressing a list would cost more than sending it
	conf = conf.withDefaults()
	var around http.RoundTripper = transport
	if conf.Transport != nil {
		around = conf.Transport(transport)
	}
	as := login.Login{User: conf.User, Ticket: conf.Ticket}
	around, jar := as.Web(around)
	return &Pool{
		conf:    conf,
		login:   as,
		members: map[creel.SubclusterID]*Member{},
		rpc: hrpc.NewClient(
			hrpc.ClientConfig{
				KindOf: conf.KindOf, ConnectTime: 5 * time.Second,
				Interceptors: append([]hrpc.ClientInterceptor{passCallerContext}, conf.Interceptors...),
				Dial: func(ctx context.Context, address string) (net.Conn, error) {
					return dial(ctx, "tcp", address)
				},
			},
		),
		http: &http.Client{
			Transport:     around,
			Jar:           jar,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// passCallerContext sends a client's caller context with the calls to members that serve its call, as Hadoop's router
// does. So the member's audit line has it.
func passCallerContext(ctx context.Context, _ *hrpc.Target, _ string, options *hrpc.CallOptions) func(error) {
	if call := hrpc.CallFrom(ctx); call != nil && options.CallerContext.Context == "" {
		options.CallerContext = call.CallerContext
	}
	return nil
}

// Close ends all connections.
func (p *Pool) Close() error {
	p.http.CloseIdleConnections()
	return p.rpc.Close()
}

// Member returns the client of one subcluster at its addresses. It makes a new client if the addresses or the
// software have changed; the new breakers are closed.
func (p *Pool) Member(m *subcluster.Status) *Member {
	p.mu.RLock()
	known := p.members[m.ID]
	p.mu.RUnlock()
	if known.is(m) {
		known.heard(m)
		return known
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known = p.members[m.ID]; known.is(m) {
		known.heard(m)
		return known
	}
	made := &Member{
		ID: m.ID, pool: p, addresses: m.Addresses,
		version: m.Version, byAgent: m.ByAgent(),
		release: m.HadoopRelease(), lacks: lackedBy(m.HadoopRelease()),
		client: port{"client", failover.Hosts(m.Addresses.Client)},
		admin:  port{"admin", failover.Hosts(m.Addresses.Admin)},
		web:    port{"web", failover.Hosts(m.Addresses.Web)},
	}
	for k := range made.breakers {
		kind := Kind(k)
		made.breakers[k] = newBreaker(gobreaker.Settings{
			Name:    fmt.Sprintf("%s/%s", m.ID, kind),
			Timeout: p.conf.OpenFor,
			ReadyToTrip: func(c gobreaker.Counts) bool {
				return c.ConsecutiveFailures >= p.conf.Trips || made.stalled[k].Load()
			},
			IsSuccessful: func(err error) bool { return !silent(err) },
			IsExcluded: func(err error) bool {
				return errors.Is(
					err,
					context.Canceled,
				) || errors.As(err, new(*pausedError))
			},
			OnStateChange: func(_ string, _, to gobreaker.State) {
				if p.conf.Changed != nil {
					p.conf.Changed(m.ID, kind, to.String())
				}
			},
		})
	}
	made.heard(m)
	p.members[m.ID] = made
	return made
}

// Breakers calls yield for each breaker of each called member, with its state: closed, half-open or open.
func (p *Pool) Breakers(yield func(id creel.SubclusterID, k Kind, state string)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for id, m := range p.members {
		for k, b := range m.breakers {
			yield(id, Kind(k), b.State().String())
		}
	}
}

// silent reports whether an error means that the member did not answer.
func silent(err error) bool {
	var remote *hrpc.RemoteError
	var status *StatusError
	return err != nil && !errors.As(err, &remote) && !errors.As(err, &status) && !errors.Is(err, creel.ErrStandby)
}

// pausedError is the failure of a call during which this process was paused; breakers ignore it.
type pausedError struct{ error }

func (s *pausedError) Unwrap() error { return s.error }

// Member calls one subcluster.
type Member struct {
	ID        creel.SubclusterID
	pool      *Pool
	addresses subcluster.Addresses
	version   string
	byAgent   bool
	release   string        // of its Hadoop, "" if unknown
	lacks     []ReleaseCall // calls that this release lacks
	breakers  [kinds]*breaker
	silent    atomic.Bool  // its last known lease had expired
	epoch     atomic.Int64 // latest of its records

	// stalled: the last call used its whole deadline, so the member accepts calls and hangs
	stalled [kinds]atomic.Bool

	client, admin, web port
	pair               failover.Pair // finds the active one of its hosts

	peers     sync.Map // peerKey to *hrpc.Peer, for recent callers
	peersKept atomic.Int32
}

// is reports whether an existing client fits the member's present record.
func (m *Member) is(now *subcluster.Status) bool {
	return m != nil && m.addresses == now.Addresses && m.version == now.Version
}

// heard lets open breakers try again when the heartbeats of a silent member return, or it has started again: a call
// then need not wait until a breaker's time is over.
func (m *Member) heard(now *subcluster.Status) {
	if now.State == subcluster.StateSuspect || now.State == subcluster.StateLost {
		m.silent.Store(true)
		return
	}
	before := m.epoch.Load()
	restarted := now.Epoch > before && m.epoch.CompareAndSwap(before, now.Epoch) && before > 0
	if restarted || m.silent.Load() && m.silent.CompareAndSwap(true, false) {
		for _, b := range m.breakers {
			b.Retry()
		}
	}
}

// ByAgent reports whether an agent acts for the member: its ResourceManager is Hadoop's, and lacks creel's own
// documents.
func (m *Member) ByAgent() bool { return m.byAgent }

// ByTicket reports whether calls log in by Kerberos.
func (m *Member) ByTicket() bool { return m.pool.login.Ticket != nil }

// port is one port of a member, on one host or on the hosts of an HA pair.
type port struct {
	name  string
	hosts []string
}

// peerKey is a port of a host and the user of the call.
type peerKey struct{ address, protocol, user string }

// peersMost limits the stored peers; above it, all are made again. A peer has no connection; it only remembers the
// last one.
const peersMost = 4096

// peer returns one Peer per port and user, with which a call finds its connection without a lock.
func (m *Member) peer(address, protocol, user string) *hrpc.Peer {
	key := peerKey{address, protocol, user}
	if p, ok := m.peers.Load(key); ok {
		return p.(*hrpc.Peer)
	}
	p := m.pool.rpc.Peer(hrpc.Target{Address: address, Protocol: protocol, Login: m.pool.login.RPC(address, user)})
	if m.peersKept.Add(1) > peersMost {
		m.peers.Clear()
		m.peersKept.Store(1)
	}
	m.peers.Store(key, p)
	return p
}

// Unavailable is the error of a call without an answer. Sent means that it may have reached the member.
type Unavailable struct {
	Member creel.SubclusterID
	Sent   bool
	Err    error
}

func (u *Unavailable) Error() string {
	cause := network.InWords(u.Err)
	if u.Sent {
		return fmt.Sprintf("subcluster %s did not answer (the call may have been served): %v", u.Member, cause)
	}
	return fmt.Sprintf("subcluster %s cannot be reached: %v", u.Member, cause)
}

// MayBeServed is Sent.
func (u *Unavailable) MayBeServed() bool { return u.Sent }

// Unwrap returns both the cause and the kind, for errors.Is.
func (u *Unavailable) Unwrap() []error { return []error{creel.ErrUnavailable, u.Err} }

// Open returns the kinds of call that breakers reject now, for messages.
func (m *Member) Open() (open []Kind) {
	for k, b := range m.breakers {
		if b.State() == gobreaker.StateOpen {
			open = append(open, Kind(k))
		}
	}
	return open
}

// guard runs a call with its kind's breaker and deadline. One list that used its whole deadline opens the breaker, so
// that a hanging member costs all lists one deadline, not one each.
func (m *Member) guard(ctx context.Context, kind Kind, call func(ctx context.Context) error) error {
	most := m.pool.conf.Deadlines[kind]
	sooner, ok := ctx.Deadline()
	whole := !ok || time.Until(sooner) > most
	if whole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	_, err := m.breakers[kind].Execute(func() (struct{}, error) {
		paused := m.pool.conf.Clock.Paused()
		err := call(ctx)
		if silent(err) && m.pool.conf.Clock.Paused() > paused {
			err = &pausedError{err} // its time ran out while this process was paused
		}
		m.stalled[kind].Store(kind == List && whole && errors.Is(err, context.DeadlineExceeded))
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return &Unavailable{
			Member: m.ID,
			Err:    fmt.Errorf("%s calls are rejected for up to %v after it fell silent", kind, m.pool.conf.OpenFor),
		}
	case errors.Is(err, creel.ErrStandby):
		return &Unavailable{
			Member: m.ID, Err: errors.New("none of its ResourceManagers is active: one is a standby"),
		}
	case silent(err):
		var u *Unavailable
		if errors.As(err, &u) {
			return err
		}
		var transport *hrpc.TransportError
		sent := !errors.As(err, &transport) || transport.Sent
		return &Unavailable{Member: m.ID, Sent: sent, Err: err}
	}
	return err
}

// Client calls the client port by RPC with encoded messages, so that fields unknown here survive. user is the user of
// the call. Calls that the member's release lacks are not sent: the error is of kind ErrNotInRelease.
func (m *Member) Client(
	ctx context.Context,
	kind Kind,
	user, method string,
	request []byte,
) (response []byte, err error) {
	if err := m.lacking("RPC", method); err != nil {
		return nil, err
	}
	return m.call(ctx, kind, &m.client, clientProtocol, user, method, request)
}

// Admin calls the admin port by RPC with encoded messages.
func (m *Member) Admin(ctx context.Context, user, method string, request []byte) (response []byte, err error) {
	if err := m.lacking("RPC admin", method); err != nil {
		return nil, err
	}
	return m.call(ctx, Write, &m.admin, adminProtocol, user, method, request)
}

const (
	clientProtocol = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
	adminProtocol  = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
)

func (m *Member) call(
	ctx context.Context,
	kind Kind,
	at *port,
	protocol, user, method string,
	request []byte,
) (response []byte, err error) {
	err = m.guard(ctx, kind, func(ctx context.Context) error {
		if len(at.hosts) == 0 {
			return m.without(at.name)
		}
		// A call that changes something is not repeated if it may have been served.
		return failover.Each(ctx, &m.pair, at.hosts, kind != Write, func(address string) error {
			response, err = m.peer(address, protocol, user).CallRaw(ctx, method, request)
			return err
		})
	})
	return response, err
}

func (m *Member) without(port string) error {
	return &Unavailable{Member: m.ID, Err: fmt.Errorf("it has no %s address", port)}
}
