// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Options are the options of every load.
type Options struct {
	Plan Plan
	User string
	// Anywhere permits addresses other than loopback. A load is an attack if it hits a server whose owner did not ask
	// for it.
	Anywhere bool
	PIDs     []int // processes on this machine whose use is also reported
	Logger   *slog.Logger
}

func (o *Options) check(addresses ...string) error {
	if err := o.Plan.Validate(); err != nil {
		return err
	}
	if o.User == "" {
		return badOption("the user name is missing")
	}
	for _, pid := range o.PIDs {
		if _, _, err := processUse(pid); err != nil {
			return err
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, a := range addresses {
		if err := o.allowed(a); err != nil {
			return err
		}
	}
	return nil
}

// allowed rejects addresses outside this machine.
func (o *Options) allowed(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return badOption("address %q: give host:port", address)
	}
	if o.Anywhere {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return badOption("address %q: %w", address, err)
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return badOption(
				"%s is not a loopback address, and load harms other users of a server; if it is yours, force it",
				address,
			)
		}
	}
	return nil
}

// clients makes n connections, which callers use in turn. A Client has one connection to an address, so each
// connection needs one.
func (o *Options) clients(n int) (list []*hrpc.Client, end func()) {
	for range n {
		list = append(
			list,
			hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, Logger: o.Logger, IdleTime: time.Hour}),
		)
	}
	return list, func() {
		for _, c := range list {
			_ = c.Close()
		}
	}
}
