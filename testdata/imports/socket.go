// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"net/http"

	"github.com/creelrm/creel/statestore"
)

func run(c *http.Client, _ statestore.Store) { go c.CloseIdleConnections() }
