// SPDX-License-Identifier: Apache-2.0

// Package queueconf reads the queue specification (package queues) and the placement rules (package placement) from
// the files of Hadoop's schedulers. ReadCapacity reads the properties of capacity-scheduler.xml, ReadFair the
// FairScheduler's allocation file.
//
// A reader reports all errors at once, each with its file and line. It then returns no configuration: the caller
// keeps its current tree. A setting that has no effect here is a Warning.
//
// Sources: Hadoop's pages "Capacity Scheduler" and "Fair Scheduler".
package queueconf
