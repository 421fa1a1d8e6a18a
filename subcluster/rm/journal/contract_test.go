// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

func TestJournalKeepsTheContract(t *testing.T) {
	statetest.Run(t, func(t *testing.T) statetest.Deployment {
		dir := t.TempDir()
		return statetest.Deployment{
			Exclusive: true,
			Open: func() (state.Log, error) {
				return Open(dir, Options{LockWait: 20 * time.Millisecond, ReserveBytes: -1})
			},
		}
	})
}
