// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/creelrm/creel/app/daemon/federation"
)

// runFaults kills a subcluster, a router and the rebalancer during the day and restarts them, with the same ports and
// journals.
func runFaults(
	ctx context.Context,
	fed *federation.Federation,
	began time.Time,
	last time.Duration,
	out io.Writer,
) error {
	sleep := func(until time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Until(began.Add(until))):
			return true
		}
	}
	victim := fed.RMs[len(fed.RMs)-1]
	if !sleep(last / 4) {
		return nil
	}
	fmt.Fprintf(out, "fault: %s is killed\n", victim.Name)
	if err := victim.Stop(); err != nil {
		return err
	}
	if !sleep(last/4 + 4*time.Second) {
		return victim.Start()
	}
	if err := victim.Start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "fault: %s is back\n", victim.Name)
	router := fed.Routers[0]
	if !sleep(last / 2) {
		return nil
	}
	fmt.Fprintf(out, "fault: %s is killed\n", router.Name)
	if err := router.Stop(); err != nil {
		return err
	}
	if !sleep(last/2 + 5*time.Second) {
		return router.Start()
	}
	if err := router.Start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "fault: %s is back\n", router.Name)
	if len(fed.Rebalancers) == 0 {
		return nil
	}
	rebalancer := fed.Rebalancers[0]
	if !sleep(last * 5 / 8) {
		return nil
	}
	fmt.Fprintf(out, "fault: %s is killed\n", rebalancer.Name)
	if err := rebalancer.Stop(); err != nil {
		return err
	}
	if !sleep(last*5/8 + 5*time.Second) {
		return rebalancer.Start()
	}
	if err := rebalancer.Start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "fault: %s is back\n", rebalancer.Name)
	return nil
}
