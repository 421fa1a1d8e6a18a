// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"sync"

	"github.com/creelrm/creel/internal/app/daemon"
)

// service is a role, assembled.
type service interface {
	Start() *daemon.Running
	Address(name string) string
}

// Daemon is one daemon of the federation with the way to make it again. It has
// one owner at a time.
type Daemon[S service] struct {
	Name    string
	Service S // the latest

	make    func() (S, error)
	running *daemon.Running
	failed  chan<- error
	ended   chan struct{} // closed by Stop: later failures are not reported
	watch   sync.WaitGroup
}

func newDaemon[S service](name string, failed chan<- error, make func() (S, error)) *Daemon[S] {
	return &Daemon[S]{Name: name, make: make, failed: failed}
}

// Address is where the daemon listens, by the name of the port.
func (d *Daemon[S]) Address(name string) string { return d.Service.Address(name) }

// Start makes the daemon and starts it, for the first time or after Stop. Its
// one goroutine passes failures on, and ends with Stop.
func (d *Daemon[S]) Start() error {
	made, err := d.make()
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	d.Service, d.running, d.ended = made, made.Start(), make(chan struct{})
	d.watch.Go(func() {
		select {
		case err := <-d.running.Failed():
			select {
			case d.failed <- fmt.Errorf("%s: %w", d.Name, err):
			default: // one failure is enough to end the federation
			}
		case <-d.ended:
		}
	})
	return nil
}

// Stop stops the daemon and waits until it has ended. A daemon that is not
// running stays as it is.
func (d *Daemon[S]) Stop() error {
	if d.running == nil {
		return nil
	}
	close(d.ended)
	d.watch.Wait()
	err := d.running.Stop()
	d.running = nil
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	return nil
}
