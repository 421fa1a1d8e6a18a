// SPDX-License-Identifier: Apache-2.0

package statestore

// Finding is something about a store that an operator should change, and that
// calls do not show, or not before it is too late.
type Finding struct {
	Name string // one of the Findings
	Stop bool   // new homes and saved records cannot be served; else it is a warning
	What string // the problem, with the server's own numbers
	Try  string // the remedy
}

// Findings are the names that a store's health may name, and that metrics carry.
var Findings = []string{NotWritable, Evicts, NotPersistent, FewReplicas, NearlyFull}

// The names.
const (
	NotWritable   = "not_writable"   // it is read-only, full, cannot write to its disk, or has too few replicas in step
	Evicts        = "evicts"         // it evicts records when its memory is full
	NotPersistent = "not_persistent" // a restart loses all records
	FewReplicas   = "few_replicas"   // the loss of one server loses records
	NearlyFull    = "nearly_full"    // it will refuse claims soon
)
