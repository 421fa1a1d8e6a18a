// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
)

// These are the first and the longest pause between two tries to start an AM.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// ErrAttemptOver ends the start of an AM whose attempt has ended meanwhile.
var ErrAttemptOver = errors.New("the attempt is over")

// Launch is the start of one AM, tried until its node accepts or rejects it, or time runs out.
type Launch struct {
	Until time.Time // no try starts after it

	pause time.Duration
}

// Again returns the pause before the next try, or false if err is the final result of the start. A node that does not
// respond, or that is registering, is tried again. An earlier try may have reached the node; a repeated start has no
// further effect.
func (l *Launch) Again(now time.Time, err error) (pause time.Duration, again bool) {
	if !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrBusy) || !now.Before(l.Until) {
		return 0, false
	}
	pause = min(max(l.pause, firstPause), l.Until.Sub(now))
	l.pause = min(2*max(l.pause, firstPause), lastPause)
	return pause, true
}
