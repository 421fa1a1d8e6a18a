// SPDX-License-Identifier: Apache-2.0

// Package ideal decides how much each queue may lose to preemption, and how much it may demand. It divides a cluster
// again among its queues, guarantees first: that is the queues' ideal. It follows CapacityScheduler's
// ProportionalCapacityPreemptionPolicy, with an exact level in place of its rounds.
//
// # Guarantees
//
//   - The ideals of a queue's children are together at most the queue's ideal, unless their use within guarantees is
//     more.
//   - A queue keeps its use within its guarantee, and its use that is not preemptible.
//   - Excess never takes a leaf below its guarantee of a type in excess.
//   - Equal trees have equal ideals: nothing depends on time, maps or chance.
//
// # The caller's duties
//
// The caller copies the tree into values (Queue), calls Divide on the root once, and reads Short and Excess of the
// leaves. It chooses the containers.
package ideal
