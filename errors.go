// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of failure that a caller can act on. Packages return them wrapped in *Error. errors.Is finds the kind; the
// text contains the event, the reason and an action to try. Handlers convert a kind to the exception or status of their
// protocol.
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
	ErrIncomplete          = errors.New("incomplete") // the caller accepts no partial response
)

// Error is a complete failure report: its kind for programs, and for people the event, the reason and an action to try.
// RetryAfter, if positive, is the time that a caller should wait before the next try.
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
