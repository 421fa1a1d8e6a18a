// SPDX-License-Identifier: Apache-2.0

// Package placement chooses the queue of a submission by rules. These are the CapacityScheduler's queue mappings
// (Mappings, in the legacy and the JSON format) and the FairScheduler's queuePlacementPolicy (FairRules). Both are
// pure. Their input is a submission and the queue tree; their output is a queue path with the rule that chose it, or
// an error with the reason.
package placement
