// SPDX-License-Identifier: Apache-2.0

// Package failover switches between the ResourceManagers of a member: in Hadoop's HA pairs one is active and the
// others are standby.
//
// A member's record names the hosts of each port in one order, that of yarn.resourcemanager.ha.rm-ids. A Pair knows
// which of them answered last, for all ports together: where clients found the active one, AMs and web pages find it
// too.
package failover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/creelrm/creel"
)

// Hosts are the addresses of one port of a member, as its record has them: one, or those
// of an HA pair with commas between.
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

// Pair is which host of a member answered last. Its zero value begins with the first one.
// It is safe for any number of callers.
type Pair struct{ active atomic.Uint32 }

// First is the host of a port that is asked first, "" of none.
func (p *Pair) First(hosts []string) string {
	if len(hosts) == 0 {
		return ""
	}
	return hosts[int(p.active.Load())%len(hosts)]
}

// Leave has the next call begin with another host of a port than one that was silent for the
// whole time of a call made without Each, where that one is still the first.
func (p *Pair) Leave(hosts []string, silent string) {
	if at := slices.Index(hosts, silent); at >= 0 {
		p.turn(uint32(at), (at+1)%len(hosts))
	}
}

// Each makes a call to the host that answered last. While a host surely did not serve it, since it is standby
// (creel.ErrStandby) or was not reached, the call goes to the next, each host once. With repeat, for calls that
// change nothing, it goes on also after a connection that died under the call. It returns the first answer, which may
// be an error. If no host answered, it returns the most specific failure: a standby's refusal, or that a host was
// reached.
//
// A host that is silent until ctx ends costs this call its time; the next one begins with another host.
func Each[H any](ctx context.Context, p *Pair, hosts []H, repeat bool, call func(host H) error) error {
	if len(hosts) == 1 { // and the other ports' choice stays as it is
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
			if !errors.Is(ctx.Err(), context.Canceled) { // a caller that goes away proves nothing
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

// MayBeServed is false.
func (noAddressError) MayBeServed() bool { return false }

// turn has the next call begin with a host, unless another call has turned already.
func (p *Pair) turn(from uint32, to int) {
	if from != uint32(to) {
		p.active.CompareAndSwap(from, uint32(to))
	}
}

// noAnswerError is the failure of a call to which no answer came: hrpc's, and package remote's.
type noAnswerError interface {
	error
	MayBeServed() bool // the call may have reached the server
}

// unserved reports whether a host gave no answer of its own.
func unserved(err error) bool {
	return errors.Is(err, creel.ErrStandby) || errors.As(err, new(noAnswerError)) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// arrived reports whether a call that a host did not answer may have been served.
func arrived(err error) bool {
	var u noAnswerError
	return !errors.Is(err, creel.ErrStandby) && (!errors.As(err, &u) || u.MayBeServed())
}
