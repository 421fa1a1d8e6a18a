// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"testing"

	"github.com/creelrm/creel"
)

// The tag of a UAM with an id of its own names its application, in the lower case in which
// Hadoop keeps tags; nothing else does.
func TestTheTagOfAUAMNamesItsApplication(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 12}
	tag := creel.UAMTag(app)
	if tag != "creel-uam-of-application_1700000000000_0012" {
		t.Errorf("the tag is %q", tag)
	}
	if of, ok := creel.TaggedUAM(tag); !ok || of != app {
		t.Errorf("%q names %v, %v", tag, of, ok)
	}
	for _, other := range []string{"", "team:etl", "creel-uam-of-", "creel-uam-of-application_1", app.String()} {
		if of, ok := creel.TaggedUAM(other); ok {
			t.Errorf("%q names %v", other, of)
		}
	}
}
