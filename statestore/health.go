// SPDX-License-Identifier: Apache-2.0

package statestore

// Finding is a problem of a store that an operator should mend, and that calls show too late or not at all.
type Finding struct {
	Name string // one of the Findings
	Stop bool   // new homes and records cannot be stored; else it is a warning
	What string // the problem, with the server's own numbers
	Try  string // the remedy
}

// Findings are the possible names of a finding; metrics use them as labels.
var Findings = []string{NotWritable, Evicts, NotPersistent, FewReplicas, NearlyFull, LosesWrites, Unconfirmed}

// The names.
const (
	NotWritable   = "not_writable"   // it is read-only, full, cannot write to its disk, or has too few replicas in step
	Evicts        = "evicts"         // it evicts records when its memory is full
	NotPersistent = "not_persistent" // a restart loses all records
	FewReplicas   = "few_replicas"   // the loss of one server loses records
	NearlyFull    = "nearly_full"    // it will refuse claims soon
	LosesWrites   = "loses_writes"   // a restart, or the loss of its machine, loses more than the last two seconds
	Unconfirmed   = "unconfirmed"    // it fails over, and a failover loses writes that no replica has confirmed
)
