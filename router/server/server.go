// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// Config configures a Server. View, Homes, Pool and Members are required.
type Config struct {
	View  func() *subcluster.View
	Where policies.PlaceLookup // finds the members that have a host or rack; nil: unknown
	Homes Homes
	// Reservations stores the homes of reservations.
	Reservations Reservations
	Pool         *remote.Pool
	// Members returns the router's own calls to a member.
	Members func(*remote.Member) Member
	// Policy applies to queues that no document of the view covers; the zero value is policies.Default.
	Policy policies.Policy
	// HomesKept is the number of applications whose homes are remembered, 100,000 (16 MB) if zero. For others the
	// store is read. DecisionsKept is the number whose decisions and last reports are remembered, 10,000 if zero.
	HomesKept, DecisionsKept int
	Seed                     uint64
	// SubmitTime bounds the calls of a submission to all members together; 0: only the caller's context bounds them.
	SubmitTime time.Duration
	// MaxTries bounds the members to which a submission is forwarded; 0: no bound.
	MaxTries int
	// MaxSubmission bounds a submission, in bytes as its client sent it; 0: no bound.
	MaxSubmission int64
	// UnclearWait is for members that cannot disown: see router.UnclearWait, which is the default.
	UnclearWait time.Duration
	// Intents stores users' changes of an application whose home does not answer; nil: such changes fail.
	Intents intents.Store
	// Record records users' changes of applications; nil: they are not recorded.
	Record func(ctx context.Context, e statestore.Event)
	// Elsewhere returns the members that may have an application that its remembered home does not know, the
	// likeliest first, without caches. moving reports whether it is being moved. nil: the home is asked again.
	Elsewhere func(ctx context.Context, app creel.ApplicationID) (at []creel.SubclusterID, moving bool, err error)
	// GivesParts allows lists by RPC without the members that did not answer.
	GivesParts bool
	// LastParts is Lists.Last for the lists of applications and nodes.
	LastParts time.Duration
	// ListsUAMs: lists include applications of which only UAMs were reported.
	ListsUAMs bool
	Clock     *pauseclock.Clock // detects pauses; its owner runs it; nil: none
	Log       *slog.Logger      // slog.Default if nil
}

// Member has the calls that a Server makes for itself to a member; package client documents and implements them, for
// creel's ResourceManagers and for Hadoop's. A user's calls are forwarded by the remote.Member, in the user's protocol.
type Member interface {
	Has(ctx context.Context, app creel.ApplicationID) (bool, error)
	NewID(ctx context.Context) (creel.ApplicationID, error)
	Fences() bool
	Disown(ctx context.Context, app creel.ApplicationID, claim int64) (router.Standing, error)
	Placed(ctx context.Context, sub policies.Submission) (creel.QueuePath, error)
}

// Homes is the part of the state store that a Server needs; package statestore documents it.
type Homes interface {
	router.Homes
	router.Acceptances
	// Placement returns the data stored with the claim, nil if there is none.
	Placement(ctx context.Context, app creel.ApplicationID) ([]byte, error)
}

// Server is safe for concurrent use.
type Server struct {
	conf      Config
	submitter router.Submitter
	policies  atomic.Pointer[policies.Table]
	counts    Counts
	seed      atomic.Uint64
	logOnce   logOnce

	memoryLock sync.Mutex
	recent     *router.SubmissionLog // under memoryLock
	memory     *router.Memory

	assumedLock sync.Mutex
	assumed     router.AssumedLoad

	pauses      pauses
	issuedIDs   issuedIDs
	lives       lives
	reportCache reportCache
	observed    observed
	uamCache    uamCache
	// listed finds homes in the last list of applications; see ListedBy.
	listed func(app creel.ApplicationID) (creel.SubclusterID, bool)
	// waiting counts the waiting applications of the last list; see WaitingBy.
	waiting func(now time.Time) *router.Waiting
}

// Counts has totals since the start.
type Counts struct {
	Submitted, Accepted, Failed, Moved, Partial, Killed atomic.Int64
	Unlisted                                            atomic.Int64 // fields without a merge rule
	// MovedAfter counts homes that were left, by the outcome of the call there.
	MovedAfter [router.Verdicts]atomic.Int64
}

// New makes a server. It starts nothing.
func New(conf Config) *Server {
	if conf.HomesKept <= 0 {
		conf.HomesKept = 100_000
	}
	if conf.DecisionsKept <= 0 {
		conf.DecisionsKept = 10_000
	}
	if conf.Log == nil {
		conf.Log = slog.Default()
	}
	s := &Server{
		conf: conf, memory: router.NewMemory(conf.HomesKept, conf.DecisionsKept),
		recent: router.NewSubmissionLog(min(conf.DecisionsKept, maxRecent)),
	}
	s.reportCache.init(conf.DecisionsKept)
	s.pauses.clock = conf.Clock
	s.seed.Store(conf.Seed)
	s.policies.Store(policies.EmptyTable(conf.Policy))
	s.submitter = router.Submitter{
		View:     conf.View,
		Policy:   s.Policy,
		Homes:    conf.Homes,
		Disown:   s.disown,
		MaxTries: conf.MaxTries,
		Rand:     s.random,

		Acceptances: conf.Homes,
		Life:        s.life,
		UnclearWait: cmp.Or(conf.UnclearWait, router.UnclearWait),
		Paused:      s.pauses.lately,
		Now:         time.Now,
	}
	return s
}

// Policy returns the policy of a queue in a view. Each version of the documents is parsed once.
func (s *Server) Policy(view *subcluster.View, queue creel.QueuePath) policies.Policy {
	before := s.policies.Load()
	now := policies.NewTable(before, view.Policies)
	if now != before {
		s.policies.CompareAndSwap(before, now)
	}
	p, _ := now.For(queue)
	return p
}

func (s *Server) disown(
	ctx context.Context,
	id creel.SubclusterID,
	app creel.ApplicationID,
	claim int64,
) (router.Standing, error) {
	m, err := s.Member(id)
	if err != nil {
		return 0, err
	}
	return s.conf.Members(m).Disown(ctx, app, claim)
}

// random returns a new random source for each submission, so that no lock is shared.
func (s *Server) random() *rand.Rand {
	return rand.New(rand.NewPCG(s.conf.Seed, s.seed.Add(1)))
}

// View returns the current view of the federation; it may be nil at first.
func (s *Server) View() *subcluster.View { return s.conf.View() }

// maxRecent bounds the submissions stored for previews, of about 300 bytes each.
const maxRecent = 10_000

// Recent returns the last submissions to a queue through this router that got a home, at most most, oldest first.
func (s *Server) Recent(queue creel.QueuePath, most int) []router.PlacedSubmission {
	s.memoryLock.Lock()
	defer s.memoryLock.Unlock()
	return s.recent.Of(queue, most)
}

// Preview decides at most most of the last submissions to a queue again under another policy. It has no other effect.
func (s *Server) Preview(queue creel.QueuePath, fresh policies.Policy, most int) router.Preview {
	view := s.View()
	return router.NewPreview(view, queue, s.Recent(queue, most), s.Policy(view, queue), fresh, 1)
}

// Counts returns the totals.
func (s *Server) Counts() *Counts { return &s.counts }

// Member returns the client of a member of the view.
func (s *Server) Member(id creel.SubclusterID) (*remote.Member, error) {
	status, ok := s.View().Member(id)
	if !ok {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("subcluster %s is not in the view", id),
			Why:  "it never registered, or was removed",
			Try:  "see `creel subcluster list`",
		}
	}
	return s.conf.Pool.Member(status), nil
}

// CheckSize rejects a submission that is larger than the router accepts, with an error of kind
// creel.ErrInvalidRequest. size is in bytes, as the client sent it.
func (s *Server) CheckSize(app creel.ApplicationID, size int) error {
	if most := s.conf.MaxSubmission; most > 0 && int64(size) > most {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the submission of " + app.String() + " is too large",
			Why:  fmt.Sprintf("it has %d bytes, the limit is %d", size, most),
			Try:  "put large things into files that the containers load, or raise yarn.router.asc-interceptor-max-size",
		}
	}
	return nil
}

// defaultQueue is the queue of a submission that names none, as in any ResourceManager. Its policy applies.
const defaultQueue = "default"

// Submit finds a home for a submission and forwards it there with the number of the claim.
func (s *Server) Submit(
	ctx context.Context,
	sub policies.Submission,
	forward func(ctx context.Context, m *remote.Member, claim int64) error,
) router.Outcome {
	s.counts.Submitted.Add(1)
	sub.Queue = cmp.Or(sub.Queue, defaultQueue)
	if err := s.checkGiven(ctx, sub.Application); err != nil {
		s.counts.Failed.Add(1)
		return router.Outcome{Application: sub.Application, User: sub.User, Queue: sub.Queue, Err: err}
	}
	began := time.Now()
	var err error
	if sub.Reserved, err = s.reservedAt(ctx, sub.Reservation); err != nil {
		s.counts.Failed.Add(1)
		return router.Outcome{Application: sub.Application, User: sub.User, Queue: sub.Queue, Err: err}
	}
	sub.Queue = s.placed(ctx, sub)
	sub.Where = s.conf.Where
	sub.Assumed = s.writeAssumed
	out := s.submitter.Submit(
		ctx,
		sub,
		func(ctx context.Context, id creel.SubclusterID, claim int64) (router.Verdict, error) {
			m, err := s.Member(id)
			if err != nil {
				return router.Unclear, err
			}
			if s.conf.SubmitTime > 0 { // bounds calls to members; the store has its own timeout for a claim
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, began.Add(s.conf.SubmitTime))
				defer cancel()
			}
			err = forward(ctx, m, claim)
			verdict := VerdictOf(err)
			if verdict == router.Accepted {
				err = nil
			}
			return verdict, err
		},
	)
	out.Received = began
	if out.Err == nil {
		s.counts.Accepted.Add(1)
		s.assumedLock.Lock()
		s.assumed.Add(s.View(), out.Home, sub.Size)
		s.assumedLock.Unlock()
	} else {
		s.counts.Failed.Add(1)
	}
	if len(out.Tries) > 1 {
		s.counts.Moved.Add(1)
		for i := range out.Tries[:len(out.Tries)-1] {
			s.counts.MovedAfter[out.Tries[i].Verdict].Add(1)
		}
	}
	s.memoryLock.Lock()
	s.memory.Put(out)
	if out.Err == nil {
		s.recent.Add(sub, out.Home)
	}
	s.memoryLock.Unlock()
	return out
}

// writeAssumed implements policies.Submission.Assumed.
func (s *Server) writeAssumed(view *subcluster.View, each []policies.RecentLoad) {
	s.assumedLock.Lock()
	defer s.assumedLock.Unlock()
	s.assumed.Write(view, each)
}

// pauses detects whether this process was paused recently.
type pauses struct {
	clock *pauseclock.Clock

	mu    sync.Mutex
	total time.Duration // at the last check
	found time.Time     // time when a new pause was found, by the clock
}

// lately reports whether data that this process sent before a pause may still leave its machine: the kernel may have
// been paused too.
func (p *pauses) lately() bool {
	total, now := p.clock.Paused(), p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > p.total {
		p.total, p.found = total, now
	}
	return !p.found.IsZero() && now.Sub(p.found) < router.SocketLife
}

// alreadyThere reports whether a member running Hadoop's ResourceManager refused a submission because it is serving
// an earlier call for the same application (RMAppManager.createAndPopulateNewRMApp). Then the member has the
// application. A moment later it would have answered that it was submitted.
func alreadyThere(err error) bool {
	const sentence = "is already present! Cannot add a duplicate!"
	var answered *hrpc.RemoteError
	var status *remote.StatusError
	return errors.As(err, &answered) && strings.Contains(answered.Message, sentence) ||
		errors.As(err, &status) && bytes.Contains(status.Body, []byte(sentence))
}

// VerdictOf derives the outcome of a call from its error.
func VerdictOf(err error) router.Verdict {
	var silent *remote.Unavailable
	var answered *hrpc.RemoteError
	var status *remote.StatusError
	switch {
	case err == nil, alreadyThere(err):
		return router.Accepted
	case errors.As(err, &silent) && !silent.Sent:
		return router.NotSent
	case errors.As(err, &answered):
		if answered.Fatal {
			return router.NotSent // the server rejected the connection, and did not serve the call
		}
		return router.Refused
	case errors.As(err, &status):
		if status.Code >= 500 && status.Code != 503 && status.Code != 507 { // 507: the member's disk is full
			return router.Unclear
		}
		return router.Refused
	}
	return router.Unclear
}
