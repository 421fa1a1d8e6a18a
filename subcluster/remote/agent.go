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

// Probe reads a ResourceManager's load in the JSON of /ws/v1/cluster/metrics, or returns an error if it does not
// serve.
type Probe func(ctx context.Context) (load []byte, err error)

// Agent keeps one membership alive: it registers, and sends heartbeats while its ResourceManager serves. If that is
// silent, the agent sends nothing and the lease expires; if the store is silent, the agent keeps trying.
type Agent struct {
	Member subcluster.Member // the store issues its Epoch
	Store  Membership
	Probe  Probe
	Every  time.Duration // between heartbeats; 0 is a third of the lease
	// Changed, if set, is called between heartbeats. It reports whether the load has changed so much that the next
	// heartbeat must be sent early.
	Changed func(ctx context.Context) bool
	// Version, if set, is the ResourceManager's software, as found by the last Probe; if it changes, the member
	// registers again. It replaces the Member's.
	Version func() string
	Logger  *slog.Logger // nil: silent
	// Previous is the epoch of this process's predecessor, 0 if there is none. Keep makes the new epoch durable
	// before its use (nil: it is not stored). TakeOver takes over the name of a live member.
	Previous int64
	Keep     func(ctx context.Context, epoch int64) error
	TakeOver bool
	// Told, if set, is called with the result of each heartbeat.
	Told func(error)
	// Leave deregisters at the end of Run, for a planned stop. Otherwise the member stays, suspect after its lease,
	// as after a crash.
	Leave bool
	// Signer signs the record and the heartbeats; nil: unsigned.
	Signer *subcluster.Signer
}

// Run takes an epoch, registers and sends heartbeats until ctx ends. It returns an error, of kind creel.ErrStale,
// only if the store reports that a process with a later epoch acts for the member: then this one must stop. While
// another live process acts for it, Run waits and logs that.
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

// tell logs a changed error, not every failed heartbeat.
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
	// The store gets a separate timeout: an answered Probe may have used all of its own.
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

// carryOut makes one step of the enrollment.
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
