// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync/atomic"

	"github.com/sony/gobreaker/v2"
)

// breaker is a circuit breaker that can be asked to try again before its time.
type breaker struct {
	settings gobreaker.Settings
	current  atomic.Pointer[gobreaker.CircuitBreaker[struct{}]]
	// trial: calls pass again before the time is over. One failure opens the breaker, one success closes it.
	trial atomic.Bool
}

func newBreaker(s gobreaker.Settings) *breaker {
	b := &breaker{}
	trips := s.ReadyToTrip
	s.ReadyToTrip = func(c gobreaker.Counts) bool { return b.trial.Swap(false) || trips(c) }
	b.settings = s
	b.current.Store(gobreaker.NewCircuitBreaker[struct{}](s))
	return b
}

// State is the breaker's state; a trial counts as half-open.
func (b *breaker) State() gobreaker.State {
	if b.trial.Load() {
		return gobreaker.StateHalfOpen
	}
	return b.current.Load().State()
}

// Execute makes a call unless the breaker is open.
func (b *breaker) Execute(call func() (struct{}, error)) (struct{}, error) {
	out, err := b.current.Load().Execute(call)
	if b.settings.IsSuccessful(err) && b.trial.CompareAndSwap(true, false) {
		b.settings.OnStateChange(b.settings.Name, gobreaker.StateHalfOpen, gobreaker.StateClosed)
	}
	return out, err
}

// Retry lets calls pass an open breaker again.
func (b *breaker) Retry() {
	if b.State() != gobreaker.StateOpen || !b.trial.CompareAndSwap(false, true) {
		return
	}
	b.current.Store(gobreaker.NewCircuitBreaker[struct{}](b.settings))
	b.settings.OnStateChange(b.settings.Name, gobreaker.StateOpen, gobreaker.StateHalfOpen)
}
