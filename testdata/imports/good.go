// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"math/rand/v2"
	"time"

	"github.com/creelrm/creel"
)

func choose(now time.Time, rnd *rand.Rand, apps []creel.ApplicationID) (creel.ApplicationID, time.Time) {
	return apps[rnd.IntN(len(apps))], now.Add(time.Second)
}
