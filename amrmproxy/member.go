// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// memberState is the session's state with one member.
type memberState int

const (
	memberNone        memberState = iota // no UAM there
	memberNumbering                      // a UAM is wanted, and the member is asked for an id
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

// delivery is the progress of a member's last answer towards the AM. The next call to the member acknowledges the
// answer, and then its ResourceManager drops the data that it sends only once. So after such an answer the next call
// waits until the AM has the data. Otherwise a proxy that fails in between would lose it
// (docs/adr/0015-unacknowledged-answers.md).
type delivery int

const (
	delivered delivery = iota // it has no data that is sent once, or the AM has called since it got the data
	toDeliver                 // it waits for the AM's next answer
	inAnswer                  // it is in the last answer to the AM
)

// saysOnce reports whether an answer has data that its ResourceManager sends only once. A UAM that registers again
// receives its completions and node tokens again. The home attempt cannot register again, and only its last answer is
// repeated. Grants do not count. A later proxy cannot find out whether the AM has them, so they are never sent twice,
// and expire.
func (m *member) saysOnce(r *yarnpb.AllocateResponseProto) bool {
	if len(r.CompletedContainerStatuses) > 0 {
		return true
	}
	return m.home && len(r.NmTokens)+len(r.UpdatedContainers)+len(r.UpdateErrors)+
		len(r.ContainersFromPreviousAttempts)+len(r.RejectedSchedulingRequests) > 0
}

// member is the session's state of one subcluster. At most one call to it is under way at a time.
type member struct {
	id      creel.SubclusterID
	home    bool
	state   memberState
	gen     uint64 // of the record that must be durable before the next call
	attempt creel.AttemptID
	token   *yarnpb.TokenProto
	// ownID is the UAM's id if its ResourceManager does not accept the application's id again; zero: the UAM has the
	// application's id.
	ownID creel.ApplicationID
	// inherited: the UAM was launched for an earlier attempt, whose containers this AM has not received.
	inherited bool
	// unacked: the answer to the AM's registration has these containers, and the AM has not acknowledged it. Until
	// then the record marks the UAM as inherited, so that a later proxy reports the containers again.
	unacked bool
	// takenOver: the UAM was launched by an earlier proxy. A late call of that proxy may have the next response id,
	// and the member would answer this proxy's call with the same id without reading it. So the first call of this
	// proxy is empty.
	takenOver bool

	call     call
	lost     bool // by the view
	draining bool // by the view
	closed   bool // at the last split
	tries    int

	live   int       // number of its granted containers that have not ended
	grants time.Time // time of its last grant; zero: none so far
	wanted time.Time // time when a UAM without a grant so far was wanted; zero: there is none
	worked time.Time // last registration, request, or end of a container
	used   bool      // the AM may have run a container there
	hadoop bool      // runs Hadoop's ResourceManager, by the view
	begins bool      // starts an ended UAM again, by its heartbeats
	spent  bool      // it has had a UAM of this application, and does not accept the id again
	out    string    // reason why it has no UAM now, for people

	responseID int32
	called     bool // the AM has called since the last call to the member
	news       bool // there is data to send
	quiet      bool // the last answer granted nothing
	singly     bool // it refused asks of several groups, and gets one group at a time
	// contested: the member is not called again before the record is durable. Either another proxy has called for
	// this attempt, and saving shows whether this proxy still owns the record. Or the record still marks the UAM as
	// inherited.
	contested bool
	delivery  delivery

	release            []*yarnpb.ContainerIdProto
	blackAdd, blackDel []string
	updates            []*yarnpb.UpdateContainerRequestProto

	limit      *yarnpb.ResourceProto
	memoryOnly bool // its scheduler compares only memory: the limit's cores mean nothing
	nodes      *int32
	enhanced   *yarnpb.EnhancedHeadroomProto
}

// counted reports whether the member's last numbers are still valid.
func (m *member) counted() bool { return m.state == memberUp && !m.closed }

// comparesMemoryOnly reports whether a ResourceManager's scheduler compares only memory, by its answer to a
// registration.
func comparesMemoryOnly(r *yarnpb.RegisterApplicationMasterResponseProto) bool {
	return len(r.GetSchedulerResourceTypes()) > 0 &&
		!slices.Contains(r.GetSchedulerResourceTypes(), yarnpb.SchedulerResourceTypes_CPU)
}

// inUse reports whether a UAM or the AM of this application may exist there.
func (m *member) inUse() bool {
	return m.state != memberNone && m.state != memberGone && m.state != memberFailed
}

// unheard reports whether a UAM may have containers there that the member has not reported yet.
func (m *member) unheard() bool { return !m.home && m.inUse() && m.state < memberUp }

// unproven reports whether a recently wanted UAM there has had no grant so far. The time limit lets other members
// have a turn: after that time the UAM has been released, or, if it cannot be released, no longer counts.
func (m *member) unproven(now time.Time, c *Config) bool {
	lately := 2 * c.IdleAfter
	if !m.inUse() {
		lately *= 5 // other members have a turn before it
	}
	return !m.wanted.IsZero() && now.Sub(m.wanted) < lately
}

// shut reports whether the member gets no new asks now.
func (m *member) shut(now time.Time, slow time.Duration) bool {
	since := m.call.badSince
	if since.IsZero() && m.call.busy() {
		since = m.call.sent
	}
	return m.lost || m.state == memberFailed || m.state >= memberEnding || !since.IsZero() && now.Sub(since) >= slow
}

// abandonCall abandons the call under way, so that the next call does not wait for it. Its answer will be ignored. The
// result of a launch under way still counts.
func (m *member) abandonCall() {
	if m.state != memberLaunching {
		m.call.seq++
	}
	m.call.abandon()
}
