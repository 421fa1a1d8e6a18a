// SPDX-License-Identifier: Apache-2.0

// Package failover switches between the ResourceManagers of a member: in Hadoop's HA pairs one is active and the
// others are standby.
//
// A member's record lists the hosts of each port in the order of yarn.resourcemanager.ha.rm-ids. A Pair remembers the
// host that answered last, for all ports together: after a client found the active one, AMs and web pages use it too.
package failover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/creelrm/creel"
)

// Hosts splits the addresses of one port of a member: a single one, or an HA pair's, separated by commas.
func Hosts(list string) []string {
	if list == "" {
		return nil
	}
	hosts := strings.Split(list, ",")
	for i := range hosts {
		hosts[i] = strings.TrimSpace(hosts[i])
	}
	return hosts
}

// Pair remembers which host of a member answered last. Its zero value starts with the first host. It is safe for any
// number of callers.
type Pair struct{ active atomic.Uint32 }

// First is the host of a port to ask first, "" if there is none.
func (p *Pair) First(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	return hosts[int(p.active.Load())%len(hosts)]
}

// Leave makes the next call start with another host of a port, if silent is still the first. silent did not answer
// during the whole time of a call made without Each.
func (p *Pair) Leave(hosts []string, silent string) {
	if at := slices.Index(hosts, silent); at >= 0 {
		p.turn(uint32(at), (at+1)%len(hosts))
	}
}

// Each makes a call to the host that answered last. If a host certainly did not serve the call, because it is standby
// (creel.ErrStandby) or was unreachable, the call goes to the next one, each host once. With repeat, for calls that
// change nothing, it also continues after a connection that broke during the call. It returns the first answer, which
// may be an error. If no host answered, it returns the most specific failure: a standby's refusal, or that of a host
// that was reached.
//
// If a host is silent until ctx ends, this call fails; the next call starts with another host.
func Each[H any](ctx context.Context, p *Pair, hosts []H, repeat bool, call func(host H) error) error {
	if len(hosts) == 1 { // and the choice of other ports stays
		return call(hosts[0])
	}
	var refused error = noAddressError{}
	start := p.active.Load()
	for i := range hosts {
		at := (int(start) + i) % len(hosts)
		err := call(hosts[at])
		switch {
		case !unserved(err):
			p.turn(start, at)
			return err
		case ctx.Err() != nil, arrived(err) && !repeat:
			if !errors.Is(ctx.Err(), context.Canceled) { // a caller that cancels proves nothing
				p.turn(start, (at+1)%len(hosts))
			}
			return err
		case !errors.Is(refused, creel.ErrStandby) && !arrived(refused):
			refused = err
		}
	}
	return refused
}

// noAddressError is the error of a call to a port without hosts.
type noAddressError struct{}

func (noAddressError) Error() string { return "it has no published address for this port" }

// MayBeServed returns false.
func (noAddressError) MayBeServed() bool { return false }

// turn makes the next call start with a host, unless another call has changed the first one already.
func (p *Pair) turn(from uint32, to int) {
	if from != uint32(to) {
		p.active.CompareAndSwap(from, uint32(to))
	}
}

// noAnswerError is the failure of a call without an answer: hrpc's, and package remote's.
type noAnswerError interface {
	error
	MayBeServed() bool // the call may have reached the server
}

// unserved reports whether the error is not an answer of the host.
func unserved(err error) bool {
	return errors.Is(err, creel.ErrStandby) || errors.As(err, new(noAnswerError)) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// arrived reports whether an unanswered call may have been served.
func arrived(err error) bool {
	var u noAnswerError
	return !errors.Is(err, creel.ErrStandby) && (!errors.As(err, &u) || u.MayBeServed())
}
