// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// memberState is how far the session is with one member.
type memberState int

const (
	memberNone        memberState = iota // no UAM there
	memberNumbering                      // a UAM is wanted, and the member is asked for an id for it
	memberPlanned                        // a UAM is wanted; its record is not durable yet
	memberLaunching                      // the driver is launching it
	memberLaunched                       // it waits for its registration; its token is not durable yet
	memberRegistering                    // a registration is due or under way
	memberUp                             // registered: heartbeats
	memberFailed                         // could not be started, or died; tried again later
	memberEnding                         // a finish is due or under way
	memberDropping                       // a kill is due or under way
	memberGone                           // ended
)

// delivery is the progress of a member's last answer. The next call to the member acknowledges it, and then its
// ResourceManager forgets the data that it sends only once. So after such an answer the next call waits until the AM
// has it, or a proxy that dies in between would lose it (docs/adr/0015-unacknowledged-answers.md).
type delivery int

const (
	delivered delivery = iota // no data in it is sent only once, or the AM has sent a heartbeat since it received it
	toDeliver                 // it waits for the AM's next answer
	inAnswer                  // it is in the answer given last
)

// saysOnce reports whether an answer carries data that its ResourceManager sends only once. A UAM that registers
// again receives its completions and node tokens again. The home attempt cannot register again, and only its last
// answer is repeated. Grants do not count: it cannot be known whether the AM has them, so they are never sent twice
// and expire.
func (m *member) saysOnce(r *yarnpb.AllocateResponseProto) bool {
	if len(r.CompletedContainerStatuses) > 0 {
		return true
	}
	return m.home && len(r.NmTokens)+len(r.UpdatedContainers)+len(r.UpdateErrors)+
		len(r.ContainersFromPreviousAttempts)+len(r.RejectedSchedulingRequests) > 0
}

// member is one subcluster as the session uses it. At any time at most one
// call to it is under way.
type member struct {
	id      creel.SubclusterID
	home    bool
	state   memberState
	gen     uint64 // of the record that must be durable before the state may go on
	attempt creel.AttemptID
	token   *yarnpb.TokenProto
	// ownID is the UAM's where its ResourceManager takes no second one of the application's;
	// zero: it has the application's.
	ownID creel.ApplicationID
	// inherited: launched for an earlier attempt, whose containers this AM has not received.
	inherited bool
	// unacked: the answer to the registration reports them, and the AM has not acknowledged it. Until then the record
	// says inherited, so that a later proxy reports them again.
	unacked bool
	// takenOver: launched by an earlier proxy, of which a late call may have the next number. The first call of this
	// proxy is therefore empty: behind that late call it would be answered unread.
	takenOver bool

	seq      uint64
	busy     bool
	under    *Send // the call under way, or to be made again
	behind   *Send // to be made when under, which is empty, is answered; see onReplayed
	again    bool  // under has to be sent again, exactly as it was: the member may have acted on it
	sent     time.Time
	retryAt  time.Time
	pause    time.Duration
	badSince time.Time // first sending of the oldest unanswered call
	lost     bool      // according to the view
	draining bool      // according to the view
	closed   bool      // as the last split saw it
	tries    int

	live   int       // containers it granted that have not ended
	grants time.Time // when it granted the last; zero: none so far
	wanted time.Time // when a UAM was wanted that has granted nothing so far; zero: none, or it has
	worked time.Time // when it last did something for the AM
	used   bool      // the AM may have run a container there
	hadoop bool      // runs Hadoop's ResourceManager, according to the view
	begins bool      // begins an ended UAM again, according to its heartbeats
	spent  bool      // it has had a UAM of this application, and takes its id no second time
	out    string    // why it has no UAM at this moment, for people

	responseID int32
	called     bool // the AM has called since our last call to the member
	news       bool // there is something to send
	quiet      bool // the last answer granted nothing
	replay     bool // the call under way asks for the last answer again
	singly     bool // it has refused asks of several groups, and gets one group at a time
	// contested: not called again before the record is durable. Another proxy has called in this attempt's name, and
	// saving shows whether this one still owns it; or the record still says inherited.
	contested bool
	delivery  delivery

	release            []*yarnpb.ContainerIdProto
	blackAdd, blackDel []string
	updates            []*yarnpb.UpdateContainerRequestProto

	limit      *yarnpb.ResourceProto
	memoryOnly bool // its scheduler compares memory alone: the limit's cores mean nothing
	nodes      *int32
	enhanced   *yarnpb.EnhancedHeadroomProto
}

// counted reports whether the member's last numbers still mean something.
func (m *member) counted() bool { return m.state == memberUp && !m.closed }

// comparesMemoryOnly reports whether a ResourceManager's answer to a registration says that its scheduler compares
// memory alone.
func comparesMemoryOnly(r *yarnpb.RegisterApplicationMasterResponseProto) bool {
	return len(r.GetSchedulerResourceTypes()) > 0 &&
		!slices.Contains(r.GetSchedulerResourceTypes(), yarnpb.SchedulerResourceTypes_CPU)
}

// inUse reports whether this application's AM may exist there.
func (m *member) inUse() bool {
	return m.state != memberNone && m.state != memberGone && m.state != memberFailed
}

// unheard reports whether a UAM may have containers there that the member has not reported yet.
func (m *member) unheard() bool { return !m.home && m.inUse() && m.state < memberUp }

// unproven reports whether a UAM that was wanted there lately has granted nothing so far. Lately: it is given
// back meanwhile, where it can be, and does not keep others from having their turn for good where it cannot.
func (m *member) unproven(now time.Time, c *Config) bool {
	lately := 2 * c.IdleAfter
	if !m.inUse() {
		lately *= 5 // it has its turn again after the others
	}
	return !m.wanted.IsZero() && now.Sub(m.wanted) < lately
}

// shut reports whether the member gets nothing new at this moment.
func (m *member) shut(now time.Time, slow time.Duration) bool {
	since := m.badSince
	if since.IsZero() && m.busy {
		since = m.sent
	}
	return m.lost || m.state == memberFailed || m.state >= memberEnding || !since.IsZero() && now.Sub(since) >= slow
}

// abandonCall lets go of the call under way, so that the next does not wait for it:
// its answer, if one comes, is of no interest any more.
func (m *member) abandonCall() {
	if m.state != memberLaunching {
		m.seq++
	}
	m.busy, m.again, m.under, m.behind = false, false, nil, nil
	m.retryAt, m.pause = time.Time{}, 0
}

// failed books a failed call and sets the pause before the next.
func (m *member) failed(now time.Time, c *Config) {
	m.pause = min(max(2*m.pause, c.Retry), c.RetryMost)
	m.retryAt = now.Add(m.pause)
	if m.badSince.IsZero() {
		m.badSince = m.sent
	}
}

// said returns the request with content: the call under way or the one behind it.
func (m *member) said() *Send {
	said := m.under
	if m.behind != nil {
		said, m.behind = m.behind, nil
	}
	return said
}

// answered books a call that the member answered.
func (m *member) answered() {
	m.pause, m.retryAt, m.badSince = 0, time.Time{}, time.Time{}
	m.again, m.under, m.replay = false, nil, false
}
