// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Membership is what an agent needs of the state store.
type Membership interface {
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
	Member subcluster.Member
	Store  Membership
	Probe  Probe
	Every  time.Duration // between heartbeats; 0 is a third of the lease
	Logger *slog.Logger  // nil: silent
	// Leave deregisters at the end of Run, for a planned stop. Without it the
	// member stays, suspect after its lease, as after a crash.
	Leave bool
}

// Run sends heartbeats until ctx ends. It returns an error only when the store says that
// a later life of the member exists: then this one must stop.
func (a *Agent) Run(ctx context.Context) error {
	every := a.Every
	if every <= 0 {
		every = a.Member.LeaseOrDefault() / 3
	}
	if a.Logger == nil {
		a.Logger = slog.New(slog.DiscardHandler)
	}
	registered := false
	tick := time.NewTicker(every)
	defer tick.Stop()
	var trouble string
	for {
		err := a.heartbeat(ctx, &registered, every)
		switch {
		case errors.Is(err, creel.ErrStale):
			return err
		case errors.Is(err, creel.ErrNotRegistered):
			registered = false
		}
		if ctx.Err() == nil {
			trouble = a.tell(trouble, err)
		}
		select {
		case <-ctx.Done():
			if a.Leave && registered {
				bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
				defer cancel()
				if err := a.Store.Deregister(bye, a.Member.ID, a.Member.Epoch); err != nil {
					a.Logger.Warn("deregister", "subcluster", a.Member.ID, "error", err)
				}
			}
			return nil
		case <-tick.C:
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
		a.Logger.Info("membership is well again", "subcluster", a.Member.ID)
	default:
		a.Logger.Warn("no heartbeat", "subcluster", a.Member.ID, "error", now)
	}
	return now
}

func (a *Agent) heartbeat(ctx context.Context, registered *bool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, time.Second))
	defer cancel()
	load, err := a.Probe(ctx)
	if err != nil {
		return fmt.Errorf("its ResourceManager does not serve: %w", err)
	}
	if !*registered {
		m := a.Member
		m.Capability = string(load)
		if err := a.Store.Register(ctx, m); err != nil {
			return err
		}
		*registered = true
		return nil
	}
	return a.Store.Heartbeat(ctx, subcluster.Heartbeat{ID: a.Member.ID, Epoch: a.Member.Epoch, Load: load})
}

// WebProbe probes any ResourceManager by its REST server at host:port.
func WebProbe(address string) Probe {
	client := &http.Client{Transport: &http.Transport{Proxy: nil, MaxIdleConns: 2}}
	return func(ctx context.Context) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ws/v1/cluster/metrics", nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("its metrics answer %s", resp.Status)
		}
		return io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	}
}
