// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// PutBack computes the writes that restore a store which came back empty or in an earlier state. These are the
// policies, and drain reasons by member ("" ends a drain). before is the last view of the whole store, now its
// present records. A policy written since that view has a higher version and stays.
func PutBack(
	before *subcluster.View, now subcluster.Records,
) (policies []PolicyWrite, drains map[creel.SubclusterID]string) {
	stored := map[creel.QueuePath]subcluster.Policy{}
	for _, p := range now.Policies {
		stored[p.Queue] = p
	}
	back := func(p subcluster.Policy) {
		note := fmt.Sprintf(" (version %d, restored after the store was lost)", p.Version)
		policies = append(policies, PolicyWrite{
			Queue: p.Queue, Expect: stored[p.Queue].Version, Document: p.Document, Author: p.Author,
			Comment: strings.TrimSpace(p.Comment + note),
		})
	}
	for _, p := range before.Policies.All() {
		if stored[p.Queue].Version < p.Version {
			back(p)
		}
	}
	for _, p := range now.Policies {
		_, known := before.Policies.At(p.Queue)
		if !known && len(p.Document) > 0 && p.Version < before.Policies.Version {
			// A later version had removed it.
			back(subcluster.Policy{Queue: p.Queue, Version: before.Policies.Version, Author: p.Author})
		}
	}
	drains = map[creel.SubclusterID]string{}
	for i := range before.Members {
		if m := &before.Members[i]; m.Draining != "" && m.State != subcluster.StateDeregistered {
			drains[m.ID] = m.Draining
		}
	}
	for i := range now.Members {
		m := &now.Members[i]
		was, known := before.Member(m.ID)
		switch {
		case known && was.Draining == m.Draining:
			delete(drains, m.ID)
		case known && was.Draining == "" && m.Registered.Before(before.At):
			drains[m.ID] = ""
		}
	}
	return policies, drains
}
