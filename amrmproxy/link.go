// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// linkState is the progress of the AM's attempt in one member: at home the attempt itself, elsewhere its UAM.
type linkState int

const (
	linkNone        linkState = iota // no UAM there
	linkNumbering                    // a UAM is wanted, and the member is asked for an id
	linkPlanned                      // a UAM is wanted; its record is not durable yet
	linkLaunching                    // the driver is launching it
	linkLaunched                     // it waits for its registration; its token is not durable yet
	linkRegistering                  // a registration is due or under way
	linkUp                           // registered: heartbeats
	linkFailed                       // could not be started, or died; tried again later
	linkEnding                       // a finish is due or under way
	linkDropping                     // a kill is due or under way
	linkGone                         // ended
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
// receives its completions, updates and node tokens again, from creel's ResourceManager. The home attempt cannot
// register again, and only its last answer is repeated. Grants do not count. A later proxy cannot find out whether the
// AM has them, so they are never sent twice, and expire.
func (m *link) saysOnce(r *yarnpb.AllocateResponseProto) bool {
	if len(r.CompletedContainerStatuses)+len(r.UpdatedContainers)+len(r.UpdateErrors) > 0 {
		return true
	}
	return m.home &&
		len(r.NmTokens)+len(r.ContainersFromPreviousAttempts)+len(r.RejectedSchedulingRequests) > 0
}

// link is the session's connection to one member. At most one call is under way. A link knows neither the session nor
// the asks: its methods change its own state and return what the session must do.
type link struct {
	id    creel.SubclusterID
	home  bool
	state linkState
	gen   uint64 // of the record that must be durable before the next call
	// contested: the member is not called again before the record is durable. Either another proxy has called for
	// this attempt, and saving shows whether this proxy still owns the record. Or the record still marks the UAM as
	// inherited.
	contested bool
	out       string // reason why it has no UAM now, for people

	call       call
	responseID int32
	called     bool // the AM has called since the last call to the member
	news       bool // there is data to send
	singly     bool // it refused asks of several groups, and gets one group at a time
	delivery   delivery

	uam
	standing
	usage
	outbox
	report
	local
}

// uam is the UAM in a member. At home it is empty.
type uam struct {
	attempt creel.AttemptID
	token   *yarnpb.TokenProto
	// ownID is the UAM's id if its ResourceManager does not accept the application's id again; zero: the UAM has the
	// application's id.
	ownID    creel.ApplicationID
	heritage heritage
	// takenOver: the UAM was launched by an earlier proxy. A late call of that proxy may have the next response id,
	// and the member would answer this proxy's call with the same id without reading it. So the first call of this
	// proxy is empty.
	takenOver bool
	spent     bool // the member has had a UAM of this application, and does not accept the id again
	tries     int  // failed launches
}

// heritage is the progress of the containers of earlier attempts towards the AM.
type heritage int

const (
	ownContainers heritage = iota // there are none, or the AM has them
	inherited                     // the UAM is of an earlier attempt, whose containers this AM has not received
	unacked                       // the answer to the AM's registration has them, and the AM has not acknowledged it
)

// standing is the state of a member by the view.
type standing struct {
	status subcluster.State
	hadoop bool // runs Hadoop's ResourceManager
	begins bool // starts an ended UAM again, by its heartbeats
	closed bool // it got no new asks at the last split
}

func (s *standing) lost() bool {
	return s.status == subcluster.StateLost || s.status == subcluster.StateDeregistered
}

func (s *standing) draining() bool { return s.status == subcluster.StateDraining }

// usage is the use of a member's UAM by the AM.
type usage struct {
	live   int       // number of its granted containers that have not ended
	used   bool      // the AM may have run a container there
	grants time.Time // time of its last grant; zero: none so far
	wanted time.Time // time when a UAM without a grant so far was wanted; zero: there is none
	worked time.Time // last registration, request, or end of a container
}

// report has the values of a member's last answers that count for the whole federation.
type report struct {
	quiet      bool // the last answer granted nothing
	memoryOnly bool // its scheduler compares only memory: the limit's cores mean nothing
	limit      *yarnpb.ResourceProto
	nodes      *int32
	enhanced   *yarnpb.EnhancedHeadroomProto
}

// hear takes the values of an answer.
func (r *report) hear(a *yarnpb.AllocateResponseProto) {
	if a.Limit != nil {
		r.limit = a.Limit
	}
	if a.NumClusterNodes != nil {
		r.nodes = a.NumClusterNodes
	}
	if a.EnhancedHeadroom != nil {
		r.enhanced = a.EnhancedHeadroom
	}
}

// observe takes the member's state in a view. It reports whether the member is being drained from now on.
func (m *link) observe(st *subcluster.Status) (drains bool) {
	m.hadoop = strings.HasPrefix(st.Version, "hadoop")
	if st.Load.BeginsAgain && !m.begins {
		m.spent = false // it may have been of a version that took the id once
	}
	m.begins = st.Load.BeginsAgain
	was := m.draining()
	m.status = st.State
	return m.draining() && !was
}

// attach continues with the UAM of an earlier proxy. gen is the generation of the record that has it.
func (m *link) attach(u *UAM, gen uint64) {
	m.used = true // the AM may have run containers there
	m.attempt, m.token, m.gen, m.takenOver = u.Attempt, u.Token, gen, true
	if u.Inherited {
		m.heritage = inherited
	}
	m.ownID, m.spent = u.OwnID, !u.OwnID.IsZero()
	m.state = linkPlanned
	if u.Token != nil {
		m.state = linkLaunched
	}
}

// plan wants a UAM in a member that has none. If numbered, the member must be asked for its id first.
func (m *link) plan(now time.Time, numbered bool) {
	m.wanted, m.state = now, linkPlanned
	m.token, m.attempt, m.tries, m.ownID = nil, creel.AttemptID{}, 0, creel.ApplicationID{}
	if numbered {
		m.state = linkNumbering
	}
}

// launched takes the UAM of a launch; it is not registered yet.
func (m *link) launched(attempt creel.AttemptID, token *yarnpb.TokenProto) {
	m.used = false
	m.attempt, m.token, m.tries = attempt, token, 0
	m.call.recovered()
	m.state = linkLaunched
}

// launchTries is the number of launches before a member is not tried for Config.UAMRetry.
const launchTries = 3

// launchFailed counts a failed launch, and reports whether the UAM must be dropped: it may exist. A member that
// accepts an id only once must not end it. So the launch is repeated without a limit, and asks go elsewhere meanwhile.
// ending reports that no UAM is needed any more.
func (m *link) launchFailed(now time.Time, c *Config, ending bool) (drop bool) {
	m.tries++
	m.call.sent = now
	m.call.failed(now, c)
	few := m.tries < launchTries
	if drop = ending || !few && m.begins; !drop {
		m.state = linkPlanned
	}
	if drop || few {
		m.call.badSince = time.Time{}
	}
	return drop
}

// lose records that the member has no UAM, for a reason; another may be tried after a pause.
func (m *link) lose(why string, retryAt time.Time) {
	m.state, m.out = linkFailed, why
	m.call.retryAt = retryAt
	m.release, m.updates, m.limit, m.nodes, m.enhanced = nil, nil, nil, nil, nil
}

// retry allows another UAM after the pause of lose. renumbers reports whether the UAM may have another id.
func (m *link) retry(now time.Time, renumbers bool) {
	if m.state == linkFailed && (!m.spent || renumbers) && !now.Before(m.call.retryAt) {
		m.state, m.tries, m.out = linkNone, 0, ""
	}
}

// end begins the end of a UAM: by a finish if it can receive one and finish is set, by a kill otherwise. gen is the
// generation of the record in which the application ends; unsaved reports that this session has made no call for the
// UAM.
func (m *link) end(finish, unsaved bool, gen uint64) {
	switch {
	case m.state == linkUp && finish:
		m.state = linkEnding
	case m.state == linkNumbering, m.state == linkPlanned && unsaved && !m.takenOver:
		m.state = linkGone // the session has sent no call for it
	case m.state == linkLaunching:
		// Its launch is under way; the result of the launch decides.
	default:
		m.state, m.gen = linkDropping, gen // once its end is recorded, and this proxy may say so
	}
	m.abandonCall()
}

// gone records that the UAM has ended.
func (m *link) gone() {
	m.state = linkGone
	if m.heritage == unacked {
		m.heritage = ownContainers
	}
}

// inherit records that the AM has, or is about to get, the containers of earlier attempts. The record must mark later
// grants as this attempt's before the next call.
func (m *link) inherit() { m.heritage, m.contested = ownContainers, true }

// toRecord returns the UAM for the record.
func (m *link) toRecord() UAM {
	return UAM{
		Member: m.id, OwnID: m.ownID, Attempt: m.attempt, Token: m.token, Inherited: m.heritage != ownContainers,
	}
}

// heard records that the AM has received the last answer. It reports whether the UAM must be recorded again.
func (m *link) heard() (changed bool) {
	if m.delivery == inAnswer {
		m.delivery = delivered
	}
	if m.heritage == unacked {
		m.inherit()
		return true
	}
	return false
}

// answering records that an answer to the AM has the data of the member.
func (m *link) answering() {
	if m.delivery == toDeliver {
		m.delivery = inAnswer
	}
}

// waits reports whether no call may be made now: the member does not exist for this session, a call is under way, or
// the pause after a failure is not over.
func (m *link) waits(now time.Time) bool {
	return m.call.busy() || m.state == linkNone || m.state == linkGone || m.state == linkFailed ||
		now.Before(m.call.retryAt)
}

// unneeded reports whether a planned launch must be cancelled if the member gets no asks: it is being drained by now.
func (m *link) unneeded() bool { return m.draining() && m.tries == 0 && !m.takenOver }

// drop begins the kill of a UAM that cannot be used. It is launched again later.
func (m *link) drop(now time.Time) { m.state, m.call.retryAt = linkDropping, now }

// renumbers reports whether a UAM may get another id than its application in the member. It may only in members
// running Hadoop's ResourceManager, which accepts an application's id once. Nodes treat its containers as another
// application's. So application types whose containers find each other's data by the application's id are excluded,
// such as users of Hadoop's ShuffleHandler.
func (m *link) renumbers(kind string, c *Config) bool {
	return m.hadoop && !m.begins && kind != "" && !slices.Contains(c.OneID, kind)
}

// keeps reports whether an idle UAM stays. It stays if nodes may have data that other containers read, since nodes
// delete it with the UAM. It also stays if the member would never accept another UAM and is not being drained.
func (m *link) keeps(kind string, c *Config) bool {
	return !m.begins && !m.draining() && !m.renumbers(kind, c) ||
		m.used && (kind == "" || slices.Contains(c.Shuffling, kind))
}

// atRest reports whether the member and the session agree, except for asks: no call between them is under way, and
// nothing waits to be sent to the member or to the AM.
func (m *link) atRest() bool {
	return m.call.atRest() && !m.contested && !m.closed && m.delivery == delivered && len(m.release)+len(m.updates) == 0
}

// counted reports whether the member's last numbers are still valid.
func (m *link) counted() bool { return m.state == linkUp && !m.closed }

// comparesMemoryOnly reports whether a ResourceManager's scheduler compares only memory, by its answer to a
// registration.
func comparesMemoryOnly(r *yarnpb.RegisterApplicationMasterResponseProto) bool {
	return len(r.GetSchedulerResourceTypes()) > 0 &&
		!slices.Contains(r.GetSchedulerResourceTypes(), yarnpb.SchedulerResourceTypes_CPU)
}

// inUse reports whether a UAM or the AM of this application may exist there.
func (m *link) inUse() bool {
	return m.state != linkNone && m.state != linkGone && m.state != linkFailed
}

// hasUAM reports whether a UAM, or the AM's registration, exists there.
func (m *link) hasUAM() bool {
	return m.state == linkUp || m.state == linkRegistering || m.state == linkLaunched
}

// unheard reports whether a UAM may have containers there that the member has not reported yet.
func (m *link) unheard() bool { return !m.home && m.inUse() && m.state < linkUp }

// unproven reports whether a recently wanted UAM there has had no grant so far. The time limit lets other members
// have a turn: after that time the UAM has been released, or, if it cannot be released, no longer counts.
func (m *link) unproven(now time.Time, c *Config) bool {
	lately := 2 * c.IdleAfter
	if !m.inUse() {
		lately *= 5 // other members have a turn before it
	}
	return !m.wanted.IsZero() && now.Sub(m.wanted) < lately
}

// shut reports whether the member gets no new asks now.
func (m *link) shut(now time.Time, slow time.Duration) bool {
	since := m.call.badSince
	if since.IsZero() && m.call.busy() {
		since = m.call.sent
	}
	return m.lost() || m.state == linkFailed || m.state >= linkEnding || !since.IsZero() && now.Sub(since) >= slow
}

// abandonCall abandons the call under way, so that the next call does not wait for it. Its answer will be ignored. The
// result of a launch under way still counts.
func (m *link) abandonCall() {
	if m.state != linkLaunching {
		m.call.seq++
	}
	m.call.abandon()
}
