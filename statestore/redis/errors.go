// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/statestore"
	goredis "github.com/redis/go-redis/v9"
)

// counters are atomic, so that hot paths pay one addition; Stats reads them.
type counters struct {
	calls, pipelines, retries, refused, gaveUp atomic.Int64
}

// Stats are a store's counters since it was opened.
type Stats struct {
	Calls     int64 // commands sent, including repeats
	Pipelines int64 // pipelines sent
	Retries   int64 // calls repeated because the server could not answer
	Refused   int64 // calls that a server refused for good
	GaveUp    int64 // calls that timed out
}

// Stats are the counts now.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{c.calls.Load(), c.pipelines.Load(), c.retries.Load(), c.refused.Load(), c.gaveUp.Load()}
}

// passingWords are the first words of Redis' temporary errors, with their meaning for an operator.
var passingWords = []struct{ word, why string }{
	{"READONLY", "the server is a read-only replica: a failover is under way, or the URL names a replica"},
	{"LOADING", "the server is loading its data"},
	{"MASTERDOWN", "the replica has lost its primary"},
	{"CLUSTERDOWN", "the cluster does not serve this slot"},
	{"TRYAGAIN", "the slot is moving"},
	{"MOVED", "the slot has moved"},
	{"ASK", "the slot is moving"},
	{"OOM", "the server is out of memory (maxmemory)"},
	{"MISCONF", "the server cannot write to its disk"},
	{"NOREPLICAS", "the server has too few replicas in step (min-replicas-to-write)"},
	{"BUSY", "the server is busy with a long script"},
	{"UNBLOCKED", "the server changed its role"},
	{"ERR max number of clients", "the server has too many clients"},
}

// passing reports whether an error may be temporary.
func (s *Store) passing(ctx context.Context, err error) bool {
	var untrusted *tls.CertificateVerificationError
	if errors.Is(err, errClosed) || errors.As(err, &untrusted) {
		return false
	}
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return true // the network, a pool, a timeout
	}
	text := err.Error()
	if s.cluster != nil &&
		(strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "ASK") || strings.HasPrefix(text, "CLUSTERDOWN")) {
		s.cluster.ReloadState(ctx)
	}
	for _, w := range passingWords {
		if strings.HasPrefix(text, w.word) || strings.Contains(text, "-"+w.word+" ") {
			return true
		}
	}
	return false
}

// maybe reports whether a call that ended with this error may have happened nevertheless: it was sent, and its answer
// was lost or not acknowledged.
func maybe(err error) bool {
	var answer goredis.Error
	var network *net.OpError
	switch {
	case errors.Is(err, ErrNoReplicas):
		return true
	case errors.As(err, &answer),
		errors.Is(err, errClosed),
		errors.Is(err, errQueueFull),
		errors.Is(err, goredis.ErrPoolTimeout):
		return false
	case errors.As(err, &network) && network.Op == "dial":
		return false
	}
	return true
}

// translate converts a server's error to one with a creel kind.
func (s *Store) translate(err error) error {
	text := err.Error()
	if errors.Is(err, ErrNoReplicas) {
		return &creel.Error{
			Kind: ErrNoReplicas, What: "state store unavailable", Why: firstLine(text),
			Try: "start the missing replica, then repeat the request, it is safe", RetryAfter: time.Second,
		}
	}
	for _, w := range passingWords {
		if strings.HasPrefix(text, w.word) || strings.Contains(text, "-"+w.word+" ") {
			return statestore.Unavailable(fmt.Sprintf("%s (%s)", w.why, firstLine(text)), time.Second)
		}
	}
	for _, w := range []string{"NOAUTH", "WRONGPASS", "NOPERM"} {
		if strings.HasPrefix(text, w) || strings.Contains(text, w+" ") {
			return &creel.Error{
				Kind: creel.ErrNotPermitted,
				What: "the state store refuses this user",
				Why:  firstLine(text),
				Try:  "check user, password and the ACL: keys ~{" + s.cfg.Prefix + ":*, channel &" + s.channel,
			}
		}
	}
	var answer goredis.Error
	if errors.As(err, &answer) {
		return &creel.Error{
			Kind:       creel.ErrUnavailable,
			What:       "the state store refused a command",
			Why:        firstLine(text),
			Try:        "creel needs Redis 7.0 or later; no other program may write under its prefix",
			RetryAfter: 5 * time.Second,
		}
	}
	return statestore.Unavailable(firstLine(network.InWords(err).Error()), time.Second)
}

// gaveUp returns the error of a call that timed out. last is the error of the server or the network at the latest
// try.
func (s *Store) gaveUp(ctx context.Context, last error) error {
	s.counts.gaveUp.Add(1)
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	if last == nil || errors.Is(last, context.DeadlineExceeded) {
		return statestore.Unavailable("it did not answer within the request's deadline", time.Second)
	}
	return s.translate(last)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return s
}

func short(v any) string { return firstLine(fmt.Sprintf("%v", v)) }

// backoff doubles from 5 ms to 320 ms. Half of it is random, so that callers that failed together do not retry
// together.
func backoff(try int) time.Duration {
	d := 5 * time.Millisecond << min(try, 6)
	return d/2 + rand.N(d/2)
}

// Unanswered counts the calls that the server could not answer: they were repeated or timed out.
func (s *Store) Unanswered() int64 { return s.counts.retries.Load() + s.counts.gaveUp.Load() }
