// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
)

// A member whose administrators do not include the trial's user serves refreshes to those who are.
func TestRefusalOfNonAdministratorIsAnAnswer(t *testing.T) {
	for message, want := range map[string]bool{
		"org.apache.hadoop.security.AccessControlException: User creel-trial doesn't have permission to call " +
			"'refreshUserToGroupsMappings'": true,
		"Server is stopping": false,
	} {
		err := &hrpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.YarnException", Message: message}
		if got := isAdministration(err); got != want {
			t.Errorf("%q: %t", message, got)
		}
	}
}
