// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Membership is the part of the state store that an agent needs.
type Membership interface {
	NextEpoch(ctx context.Context, id creel.SubclusterID, previous int64, takeOver bool) (epoch int64, err error)
	Register(ctx context.Context, m subcluster.Member) error
	Heartbeat(ctx context.Context, b subcluster.Heartbeat) error
	Deregister(ctx context.Context, id creel.SubclusterID, epoch int64) error
}

// Probe asks a ResourceManager how it is: its load in the JSON of
// /ws/v1/cluster/metrics, or an error if it does not serve.
type Probe func(ctx context.Context) (load []byte, err error)

// Agent keeps one membership alive: it registers, and sends heartbeats while its
// ResourceManager serves. When that falls silent so does the agent, and the
// lease runs out by itself; when the store falls silent the agent goes on
// trying.
type Agent struct {
	Member subcluster.Member // its Epoch is given by the store
	Store  Membership
	Probe  Probe
	Every  time.Duration // between heartbeats; 0 is a third of the lease
	// Changed, if set, is called between heartbeats; it reports whether the load has changed so much since the last
	// one that the next must not wait for its time.
	Changed func(ctx context.Context) bool
	// Version, if given, is the software of the ResourceManager as the last Probe found it; the
	// member registers again where that is another. It replaces the Member's.
	Version func() string
	Logger  *slog.Logger // nil: silent
	// Previous is the epoch of the process whose successor this one is, 0 if there is none; Keep makes the new one
	// durable before it is used (nil: it is not stored). TakeOver takes the name of a member that is alive.
	Previous int64
	Keep     func(ctx context.Context, epoch int64) error
	TakeOver bool
	// Told, if given, is called with the result of each heartbeat.
	Told func(error)
	// Leave deregisters at the end of Run, for a planned stop. Without it the
	// member stays, suspect after its lease, as after a crash.
	Leave bool
	// Signer signs the record and the heartbeats; nil: they are not.
	Signer *subcluster.Signer
}

// Run takes an epoch, registers and sends heartbeats until ctx ends. It returns an error, of kind creel.ErrStale,
// only when the store reports that a process with a later epoch acts for the member: then this one must stop. While
// another live process acts for it, Run waits and logs so.
func (a *Agent) Run(ctx context.Context) error {
	every := a.Every
	if every <= 0 {
		every = a.Member.LeaseOrDefault() / 3
	}
	if a.Logger == nil {
		a.Logger = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var look <-chan time.Time
	if a.Changed != nil {
		between := time.NewTicker(every / subcluster.LooksBetween)
		defer between.Stop()
		look = between.C
	}
	var trouble string
	is := subcluster.Enrollment{
		Member: a.Member, Previous: a.Previous, TakeOver: a.TakeOver, Keeps: a.Keep != nil, Signer: a.Signer,
	}
	for {
		sent := time.Now()
		err := a.heartbeat(ctx, &is, every)
		if a.Told != nil && ctx.Err() == nil {
			a.Told(err)
		}
		switch {
		case errors.Is(err, creel.ErrStale):
			return err
		case errors.Is(err, creel.ErrNotRegistered):
			is.Forgotten()
		}
		if ctx.Err() == nil {
			trouble = a.tell(trouble, err)
		}
		for waits := true; waits; {
			select {
			case <-look:
				waits = time.Since(sent) < every/subcluster.ReportsBetween || !a.Changed(ctx)
				continue
			case <-tick.C:
			case <-ctx.Done():
			}
			waits = false
		}
		if ctx.Err() != nil {
			if a.Leave && is.Registered() {
				bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
				defer cancel()
				if err := a.Store.Deregister(bye, a.Member.ID, is.Epoch()); err != nil {
					a.Logger.Warn("deregister", "subcluster", a.Member.ID, "error", err)
				}
			}
			return nil
		}
	}
}

// tell logs a change of trouble, not each heartbeat of it.
func (a *Agent) tell(before string, err error) string {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == before:
	case now == "":
		a.Logger.Info("membership restored", "subcluster", a.Member.ID)
	default:
		attrs := []any{"subcluster", a.Member.ID, "error", now}
		var full *creel.Error
		if errors.As(err, &full) && full.Try != "" {
			attrs = append(attrs, "try", full.Try)
		}
		a.Logger.Warn("no heartbeat", attrs...)
	}
	return now
}

func (a *Agent) heartbeat(ctx context.Context, is *subcluster.Enrollment, timeout time.Duration) error {
	timeout = max(timeout, time.Second)
	probing, enough := context.WithTimeout(ctx, timeout)
	defer enough()
	load, err := a.Probe(probing)
	if err != nil {
		return fmt.Errorf("its ResourceManager does not serve: %w", err)
	}
	if a.Version != nil {
		is.Runs(a.Version())
	}
	// The store has a time of its own: a Probe that was answered may have used up all of its.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		s := is.Next(load)
		epoch, err := a.carryOut(ctx, s)
		if is.Done(s, epoch, err); err != nil || s.Heartbeat != nil {
			return err
		}
	}
}

// carryOut does one step of becoming, and staying, a member.
func (a *Agent) carryOut(ctx context.Context, s subcluster.Step) (epoch int64, err error) {
	switch {
	case s.Take:
		return a.Store.NextEpoch(ctx, a.Member.ID, a.Previous, a.TakeOver)
	case s.Keep != 0:
		return 0, a.Keep(ctx, s.Keep)
	case s.Register != nil:
		return 0, a.Store.Register(ctx, *s.Register)
	}
	return 0, a.Store.Heartbeat(ctx, *s.Heartbeat)
}
