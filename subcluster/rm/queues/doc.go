// SPDX-License-Identifier: Apache-2.0

// Package queues is the specification of a queue tree: what capacity-scheduler.xml
// or fair-scheduler.xml says, as data, with the words that configuration,
// placement rules and the scheduler share. Spec.Validate says whether a tree can
// be loaded. Package queueconf reads specifications from Hadoop's files.
package queues
