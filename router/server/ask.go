// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// ErrLost is the error for a lost member, which is not asked.
var ErrLost = errors.New("lost")

// GivesParts reports whether lists by RPC are returned without members that do not answer, although RPC has no mark
// for partial lists.
func (s *Server) GivesParts() bool { return s.conf.GivesParts }

// LastParts returns the time for which lists include the last part of a member that does not answer.
func (s *Server) LastParts() time.Duration { return s.conf.LastParts }

// ListsUAMs reports whether a list includes UAMs whose application is not in it.
func (s *Server) ListsUAMs() bool { return s.conf.ListsUAMs }

// Ask calls every member that may answer, at the same time, and returns an answer or an error for each, in order of
// id. Lost members are not called: their parts have the error ErrLost.
func Ask[T any](
	ctx context.Context,
	s *Server,
	call func(ctx context.Context, m *remote.Member) (T, error),
) []router.Part[T] {
	return AskSome(ctx, s, func(creel.SubclusterID) bool { return true }, call)
}

// AskSome is Ask for the members that a filter selects.
func AskSome[T any](
	ctx context.Context,
	s *Server,
	asked func(creel.SubclusterID) bool,
	call func(ctx context.Context, m *remote.Member) (T, error),
) []router.Part[T] {
	view := s.View()
	if view == nil {
		return nil
	}
	parts := make([]router.Part[T], 0, len(view.Members))
	for i := range view.Members {
		if view.Members[i].State != subcluster.StateDeregistered && asked(view.Members[i].ID) {
			parts = append(parts, router.Part[T]{Member: view.Members[i].ID})
		}
	}
	var wait sync.WaitGroup
	for i := range parts {
		status, _ := view.Member(parts[i].Member)
		if status.State == subcluster.StateLost {
			parts[i].Err = fmt.Errorf("%w: %s", ErrLost, status.Reason)
			continue
		}
		m := s.conf.Pool.Member(status)
		wait.Go(func() { parts[i].Value, parts[i].Err = call(ctx, m) })
	}
	wait.Wait()
	if slices.ContainsFunc(parts, func(p router.Part[T]) bool { return p.Err != nil }) {
		s.counts.Partial.Add(1)
	}
	return parts
}

// InNoRelease reports whether no member was asked, since the releases of all members lack the call. It returns the
// error for that.
func InNoRelease[T any](parts []router.Part[T]) (error, bool) {
	for _, p := range parts {
		if !errors.Is(p.Err, remote.ErrNotInRelease) {
			return nil, false
		}
	}
	if len(parts) == 0 {
		return nil, false
	}
	return parts[0].Err, true
}

// CarriedOut returns the error of an order that every member in parts had to carry out. If some failed, the error
// names them and the number of the others. If all reject the order, it is the first member's rejection.
func CarriedOut[T any](order string, parts []router.Part[T]) error {
	var failed []string
	var first error
	for _, p := range parts {
		if p.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", p.Member, p.Err))
			if first == nil {
				first = p.Err
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case len(failed) == len(parts) && len(parts) == 1:
		return first // the member's own error
	}
	var silent *remote.Unavailable
	if len(failed) == len(parts) && !errors.As(first, &silent) {
		return first
	}
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("%s was not carried out in %d of %d subclusters", order, len(failed), len(parts)),
		Why:  strings.Join(failed, "; "),
		Try:  "try again when they are well; in the others it is done",
	}
}

// Any calls members one after another, in random order, until one answers. It is for calls that each member can
// answer for all. A rejection is an answer, unless the member's release lacks the call or the call is disabled there.
func Any[T any](
	ctx context.Context,
	s *Server,
	call func(ctx context.Context, m *remote.Member) (T, error),
) (T, error) {
	var none T
	view := s.View()
	ids := view.Active()
	if len(ids) == 0 {
		return none, &creel.Error{
			Kind:       creel.ErrNoSubcluster,
			What:       "no active subcluster",
			Try:        "see `creel subcluster list`",
			RetryAfter: time.Second,
		}
	}
	s.random().Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var err error
	for _, id := range ids {
		status, _ := view.Member(id)
		v, e := call(ctx, s.conf.Pool.Member(status))
		var silent *remote.Unavailable
		switch {
		case errors.Is(e, creel.ErrNotEnabled): // also remote.ErrNotInRelease
			err = cmp.Or(err, e) // a silent member may have it
		case errors.As(e, &silent):
			err = e
		default:
			return v, e
		}
	}
	return none, err
}

// Weigh adds the members' sizes in memory, from their load reports.
func Weigh[T any](s *Server, present []router.Part[T]) []router.Weighed[T] {
	view := s.View()
	out := make([]router.Weighed[T], len(present))
	for i, p := range present {
		out[i] = router.Weighed[T]{Member: p.Member, Value: p.Value}
		if m, ok := view.Member(p.Member); ok {
			out[i].Size = float64(m.Load.Metrics.TotalMB)
		}
	}
	return out
}

// PartitionSize returns a member's memory in nodes of a label, from its load report. It returns false for a member
// that publishes no labels, and without a label.
func (s *Server) PartitionSize(id creel.SubclusterID, label string) (float64, bool) {
	m, ok := s.View().Member(id)
	if !ok || label == "" || !m.Load.Labels.Known {
		return 0, false
	}
	if p := m.Load.Labels.Find(label); p != nil {
		return float64(p.Total.MemoryMB), true
	}
	return 0, true
}

// Share returns a member's part of the memory of all active members, from 0 to 1; 1 while that is unknown.
func (s *Server) Share(id creel.SubclusterID) float64 {
	var own, all float64
	if view := s.View(); view != nil {
		for i := range view.Members { // called for each report, so it makes no list of active members
			m := &view.Members[i]
			if m.State != subcluster.StateActive {
				continue
			}
			all += float64(m.Load.Metrics.TotalMB)
			if m.ID == id {
				own = float64(m.Load.Metrics.TotalMB)
			}
		}
	}
	if all == 0 || own == 0 {
		return 1
	}
	return own / all
}
