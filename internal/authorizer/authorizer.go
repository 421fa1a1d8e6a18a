// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/ratelog"
)

const (
	retryAfter = time.Second // from a failure to the next call
	atOnce     = 8           // calls for one Ask
	mostOpen   = 64          // connections to the server
)

// An Action is a right at a queue, in the words of Ranger's plugin for YARN.
type Action string

// The rights. Administrators of a queue may view and change the applications of others in it.
const (
	Submit     Action = "submit-app"
	Administer Action = "admin-queue"
)

// Question asks whether a user has a right at a queue.
type Question struct {
	User   string
	Action Action
	Queue  string // the whole path
}

// Answer is the answer to a Question.
type Answer struct {
	Allowed bool
	Failed  bool   // the server did not answer: Allowed is false
	Why     string // the server's reason, or the failure's, in one line; "" if it named none
}

// Config configures an Authorizer.
type Config struct {
	URL     string // of http or https
	Cluster string // name of the cluster, a part of each question
	Client  *http.Client
	Token   func() (string, error) // the bearer token of a call; nil: none
	Groups  func(user string) []string
	Timeout time.Duration // limit of Ask
	Keep    time.Duration // how long an answer is used, at least a second
	Most    int           // limit of stored answers
	Logger  *slog.Logger  // nil: slog.Default
}

// Authorizer asks questions and stores their answers for a time. Its methods may be called at any time.
type Authorizer struct {
	conf Config

	mu      sync.RWMutex
	known   map[Question]stored
	running map[Question]chan struct{} // closed when the answer is stored
	away    stored                     // the last failure
	epoch   int                        // calls of Forget

	failures ratelog.Line
	figures  [3]atomic.Int64 // by Result
	failing  atomic.Bool
}

// stored is an answer with its end.
type stored struct {
	Answer
	until time.Time
}

// Result is the outcome of a call.
type Result uint8

// The results.
const (
	Allowed Result = iota
	Denied
	Failed
)

func (r Result) String() string { return [...]string{"allowed", "denied", "failed"}[r] }

func (a Answer) result() Result {
	switch {
	case a.Failed:
		return Failed
	case a.Allowed:
		return Allowed
	}
	return Denied
}

// Open makes an Authorizer. It calls no server.
func Open(c Config) *Authorizer {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Keep, c.Most = max(c.Keep, retryAfter), max(c.Most, 1)
	return &Authorizer{conf: c, known: map[Question]stored{}, running: map[Question]chan struct{}{}}
}

// Known returns the stored answer to a question. It never waits.
func (a *Authorizer) Known(q Question) (answer Answer, known bool) {
	a.mu.RLock()
	s, ok := a.known[q]
	a.mu.RUnlock()
	if !ok || !time.Now().Before(s.until) {
		return Answer{}, false
	}
	return s.Answer, true
}

// Ask asks the questions that have no stored answer, and waits for their answers. Afterwards Known knows them, for a
// second at least, unless there are more than Config.Most.
func (a *Authorizer) Ask(questions []Question) {
	ctx, stop := context.WithTimeout(context.Background(), a.conf.Timeout)
	defer stop()
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(questions), atOnce) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				a.ask(ctx, questions[i])
			}
		})
	}
	all.Wait()
}

// Forget drops all answers. Calls under way are not used either.
func (a *Authorizer) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
	clear(a.known)
	clear(a.running)
}

// Calls returns the number of calls with a result so far.
func (a *Authorizer) Calls(r Result) int64 { return a.figures[r].Load() }

// Failing reports whether the last call failed.
func (a *Authorizer) Failing() bool { return a.failing.Load() }

// ask stores the answer to one question: that of a call under way, or of its own.
func (a *Authorizer) ask(ctx context.Context, q Question) {
	if _, known := a.Known(q); known {
		return
	}
	a.mu.Lock()
	if done, ok := a.running[q]; ok {
		a.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done(): // the call ends soon too: its limit is the same
		}
		return
	}
	done, epoch, away := make(chan struct{}), a.epoch, a.away
	a.running[q] = done
	a.mu.Unlock()
	defer close(done)

	answer, keep := away.Answer, retryAfter
	if !time.Now().Before(away.until) {
		if answer = a.call(ctx, q); !answer.Failed {
			keep = a.conf.Keep
		}
		a.report(q, answer)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	s := stored{answer, now.Add(keep)}
	if answer.Failed && !now.Before(a.away.until) {
		a.away = s
	}
	if a.running[q] == done {
		delete(a.running, q)
	}
	if a.epoch == epoch {
		a.put(q, s)
	}
}

// put stores an answer. At the limit another one is dropped.
func (a *Authorizer) put(q Question, s stored) {
	if _, ok := a.known[q]; !ok && len(a.known) >= a.conf.Most {
		for other := range a.known {
			delete(a.known, other)
			break
		}
	}
	a.known[q] = s
}

// report counts a call, and logs a failure, and the first answer after failures.
func (a *Authorizer) report(q Question, answer Answer) {
	a.figures[answer.result()].Add(1)
	if before := a.failing.Swap(answer.Failed); before && !answer.Failed {
		a.conf.Logger.Info("the outside authoriser answers again", "url", a.conf.URL)
	}
	if answer.Failed {
		if n, write := a.failures.Happened(time.Now()); write {
			a.conf.Logger.Warn("failed to ask the outside authoriser", "url", a.conf.URL, "user", q.User,
				"action", string(q.Action), "queue", q.Queue, "error", answer.Why, "failures", n)
		}
	}
}
