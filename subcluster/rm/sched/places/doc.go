// SPDX-License-Identifier: Apache-2.0

// Package places has the hosts and racks that an ask names, with the number of containers still wanted at each.
//
// # It decides
//
//   - which entry of an ask a node belongs to, by its host or its rack, even if the entry was made before a node
//     registered there.
//
// # It promises
//
//   - A place is listed while its count is above zero, in order of arrival, hosts apart from racks.
//   - A search takes about the same time for any number of places: many are found by a map.
//   - Places that are set and dropped again allocate nothing, as long as they are few.
//
// # The caller owes
//
//   - one Pool for each partition. A place points to hosts and racks of the Pool's partition.
//   - the ask's own count and limits: the package does not know amounts.
package places
