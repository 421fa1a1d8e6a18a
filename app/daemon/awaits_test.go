// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/app/daemon"
)

// The ready file is written after what the service awaits, and never if a task fails before.
func TestReadyFileFollowsAwaitedEvents(t *testing.T) {
	for name, fails := range map[string]bool{"accepted": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			accepted := make(chan struct{})
			refused := errors.New("refused")
			s := &daemon.Service{
				Entries: []daemon.Entry{daemon.NewEntry("rm", map[string]string{})},
				Awaits:  []<-chan struct{}{accepted},
			}
			s.Add("membership", func(running context.Context) error {
				if _, err := os.Stat(ready); err == nil {
					t.Error("the ready file is there before the registration is accepted")
				}
				if fails {
					return refused
				}
				close(accepted)
				for running.Err() == nil {
					if _, err := os.Stat(ready); err == nil {
						stop()
						<-running.Done()
					}
				}
				return nil
			})
			err := daemon.Serve(ctx, s, daemon.Options{ReadyFile: ready})
			if fails != errors.Is(err, refused) {
				t.Errorf("Serve returned %v", err)
			}
			if _, err := os.Stat(ready); fails == (err == nil) {
				t.Errorf("the ready file after it: %v", err)
			}
		})
	}
}
