// SPDX-License-Identifier: Apache-2.0

// Package queues is the specification of a queue tree: the content of capacity-scheduler.xml or fair-scheduler.xml as
// data. Configuration, placement rules and the scheduler share these types. Spec.Validate reports whether a tree can
// be loaded. Package queueconf reads specifications from Hadoop's files.
package queues
