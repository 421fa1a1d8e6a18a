// SPDX-License-Identifier: Apache-2.0

package rpc

import "github.com/creelrm/creel/internal/token"

// AMRMKeys are the keys whose AMRM tokens are accepted now, the one in use and
// the one to come: what a federation's proxies must know to tell our masters.
func (d *Daemon) AMRMKeys() token.Ring { return d.secrets.keys.Load().amrm }
