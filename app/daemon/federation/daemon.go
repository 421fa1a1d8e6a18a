// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"sync"

	"github.com/creelrm/creel/app/daemon"
)

// service is an assembled role.
type service interface {
	Start() *daemon.Running
	Address(name string) string
}

// Daemon is one daemon of the federation, with a function that assembles it again. It has one owner at a time.
type Daemon[S service] struct {
	Name    string
	Service S // the latest one

	make    func() (S, error)
	running *daemon.Running
	failed  chan<- error
	ended   chan struct{} // closed by Stop, after which failures are not reported
	watch   sync.WaitGroup
}

func newDaemon[S service](name string, failed chan<- error, make func() (S, error)) *Daemon[S] {
	return &Daemon[S]{Name: name, make: make, failed: failed}
}

// Address is the daemon's address, by the name of the port.
func (d *Daemon[S]) Address(name string) string { return d.Service.Address(name) }

// Start assembles and starts the daemon, for the first time or after Stop. Its one goroutine passes failures on, and
// ends with Stop.
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

// Stop stops the daemon and waits until it has ended. If the daemon is not running, nothing happens.
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
