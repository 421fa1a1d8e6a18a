// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Closed has the reasons why a ResourceManager rejects new applications, or new ones from routers; a reason is "" if
// it does not apply.
type Closed struct {
	Name    string // of the ResourceManager, for errors
	Full    string // its journal's disk is full: it rejects everything that makes the journal grow
	Drained string // it is drained as a member: it rejects applications from routers
}

// Refuses returns the error for a submission that would start something (see Begins), or nil if it is accepted.
// Routers do not choose a drained member. But a router that was paused after its choice could submit when the drain
// seems complete. Direct submissions of clients and unmanaged AMs of proxies have no claim and are accepted.
func (c Closed) Refuses(s *Submission) error {
	if err := c.ReadOnly(); err != nil || s.Claim == 0 || c.Drained == "" {
		return err
	}
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("the ResourceManager %s accepts no new applications from routers", c.Name),
		Why:  "it is drained: " + c.Drained,
		Try:  "submit to another subcluster, or end the drain",
	}
}

// ReadOnly returns the error for a call that makes the journal grow, or nil if such calls are accepted.
func (c Closed) ReadOnly() error {
	if c.Full == "" {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrReadOnly,
		What: fmt.Sprintf("the ResourceManager %s is read-only", c.Name),
		Why:  c.Full + ": it serves existing applications only",
		Try:  "submit to another subcluster, or ask its administrator to free space on that disk",
	}
}
