// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Patience bounds the time for which the calls of one answer wait for the store together. Without it each of them
// waits by itself, and a page with ten reads takes ten times as long when the store is away. Parallel calls count
// each.
type Patience struct {
	mu     sync.Mutex
	left   time.Duration
	recall time.Duration // the age of the oldest remembered value in the answer
	lacks  []string
}

type patienceKey struct{}

// WithPatience attaches a new Patience to the context; a context that has one keeps it. With d = 0 no call is made.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	if PatienceOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, patienceKey{}, &Patience{left: d})
}

// PatienceOf returns the Patience of the context, nil if it has none.
func PatienceOf(ctx context.Context) *Patience {
	p, _ := ctx.Value(patienceKey{}).(*Patience)
	return p
}

// Recalled notes that the answer has a value that was read before, with its age.
func (p *Patience) Recalled(age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recall = max(p.recall, age)
}

// Oldest returns the age of the oldest remembered value in the answer, 0 if there is none.
func (p *Patience) Oldest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recall
}

// Lacks notes that the answer lacks a part, since the store did not answer.
func (p *Patience) Lacks(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.lacks, part) {
		p.lacks = append(p.lacks, part)
	}
}

// Lacking returns the parts that the answer lacks.
func (p *Patience) Lacking() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lacks)
}

// Left returns the rest of the time.
func (p *Patience) Left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Spend subtracts the time of a call.
func (p *Patience) Spend(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left -= d
}
