// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
)

// Closed says why a ResourceManager takes nothing new, or nothing new from routers; a
// reason is "" where it does not hold.
type Closed struct {
	Name    string // of the ResourceManager, for errors
	Full    string // its journal has no room: nothing that makes it grow is taken
	Drained string // it is drained as a member: routers' applications go elsewhere
}

// Refuses is the error of a submission that would begin something (see Begins), or nil
// where it is taken. Routers do not choose a member that is drained, but one that slept
// since it chose would bring its application when the drain was believed to be over. What
// clients submit themselves, and unmanaged AMs of proxies, come under no claim and are taken.
func (c Closed) Refuses(s *Submission) error {
	if err := c.ReadOnly(); err != nil || s.Claim == 0 || c.Drained == "" {
		return err
	}
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("the ResourceManager %s takes no new applications from routers", c.Name),
		Why:  "it is drained: " + c.Drained,
		Try:  "submit to another subcluster, or end the drain",
	}
}

// ReadOnly is the error of whatever makes the journal grow, or nil where that is taken.
func (c Closed) ReadOnly() error {
	if c.Full == "" {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrReadOnly,
		What: fmt.Sprintf("the ResourceManager %s is read-only", c.Name),
		Why:  c.Full + ": it serves the applications it has, and takes nothing new",
		Try:  "submit to another subcluster, or have its administrator make room on that disk",
	}
}
