// SPDX-License-Identifier: Apache-2.0

package escrow

import "github.com/creelrm/creel"

// A maximum of opportunistic containers is divided by a Record like that of resources. Its amounts have one type, and
// it covers all nodes of a member, whatever their label.

// Opportunistic is the label of such records. No label of nodes has this form.
const Opportunistic = "~opportunistic"

// OpportunisticType is the type of their amounts.
const OpportunisticType = "opportunistic_containers"

// Containers returns a number of opportunistic containers as an amount.
func Containers(n int64) creel.Resource { return creel.Resource{}.With(OpportunisticType, n) }
