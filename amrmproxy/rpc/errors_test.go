// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// The error that an AM receives decides whether it retries: for long, once, or never.
func TestAMsComeAgainWhileHomeIsAway(t *testing.T) {
	away := &creel.Error{Kind: creel.ErrUnavailable, What: "the AM cannot log in at its home sc-1", Try: "try again"}
	for _, c := range []struct {
		what  string
		err   error
		class string
	}{
		{"home is away", away, hrpc.ClassStandby},
		{"home is away, said by another layer", fmt.Errorf("sc-1: %w", away), hrpc.ClassStandby},
		{"a wrong response id", &creel.Error{Kind: creel.ErrInvalidRequest, What: "x"}, yarnrpc.ClassInvalidMasterRequest},
		{"home's own word", &hrpc.RemoteError{Class: hrpc.ClassRetriable, Kind: creel.ErrBusy}, hrpc.ClassRetriable},
		{"a home that has been restarted", &creel.Error{Kind: creel.ErrNotRegistered, What: "x"},
			"org.apache.hadoop.yarn.exceptions.ApplicationMasterNotRegisteredException"},
	} {
		if got := errorOf(c.err); got.Class != c.class {
			t.Errorf("%s is told as %s, want %s", c.what, got.Class, c.class)
		}
	}
}
