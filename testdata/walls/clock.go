// SPDX-License-Identifier: Apache-2.0

package walls

import "time"

var started = time.Now()
