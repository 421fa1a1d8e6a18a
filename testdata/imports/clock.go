// SPDX-License-Identifier: Apache-2.0

package imports

import "time"

var started = time.Now()
