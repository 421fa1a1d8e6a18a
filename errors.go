// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of failure a caller can act on. Packages return them wrapped in *Error, so that errors.Is finds the kind
// and the text says what happened, why, and what to try. Handlers turn a kind into the exception or status that their
// protocol has for it.
var (
	ErrApplicationNotFound = errors.New("application not found")
	ErrAttemptNotFound     = errors.New("application attempt not found")
	ErrContainerNotFound   = errors.New("container not found")
	ErrNodeNotFound        = errors.New("node not found")
	ErrSubclusterNotFound  = errors.New("subcluster not found")
	ErrQueueNotFound       = errors.New("queue not found")
	ErrNotPermitted        = errors.New("not permitted")
	ErrInvalidRequest      = errors.New("invalid request")
	ErrEnded               = fmt.Errorf("application has ended: %w", ErrInvalidRequest) // its id is used up
	ErrInvalidResource     = errors.New("invalid resource request")
	ErrInvalidLabel        = fmt.Errorf("invalid node label: %w", ErrInvalidResource)
	ErrInvalidToken        = errors.New("invalid token")
	ErrUnavailable         = errors.New("unavailable, try again")
	ErrBusy                = errors.New("busy, try again")
	ErrStandby             = errors.New("standby")
	ErrConflict            = errors.New("conflict")
	ErrNotEnabled          = errors.New("feature not enabled")
	ErrNotRegistered       = errors.New("application master not registered")
	ErrNoSubcluster        = errors.New("no active subcluster")
	ErrStale               = errors.New("stale")
	ErrReadOnly            = errors.New("read-only")
	ErrIncomplete          = errors.New("incomplete") // a part of the answer is missing, and no part is wanted
)

// Error is a complete failure report: its kind for programs, and for people what happened, why, and what to try.
// RetryAfter, when positive, is how long a caller should wait before it repeats the call.
type Error struct {
	Kind           error
	What, Why, Try string
	RetryAfter     time.Duration
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.What != "" {
		b.WriteString(e.What)
	} else if e.Kind != nil {
		b.WriteString(e.Kind.Error())
	}
	if e.Why != "" {
		b.WriteString(": ")
		b.WriteString(e.Why)
	}
	if e.Try != "" {
		b.WriteString("; ")
		b.WriteString(e.Try)
	}
	return b.String()
}

// Unwrap returns the kind for errors.Is.
func (e *Error) Unwrap() error { return e.Kind }
