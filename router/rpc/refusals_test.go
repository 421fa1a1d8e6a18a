// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

func refusal(class, message string) error {
	return &hrpc.RemoteError{Class: class, Message: message, Kind: yarnrpc.KindOf(class)}
}

// A member's error that it lacks the requested item is an answer; any other error means that its part is missing.
func TestWhichRefusalsLeaveAPartMissing(t *testing.T) {
	const reservations = "org.apache.hadoop.yarn.exceptions.YarnException: The specified queue: a is not managed by reservation system."
	for _, c := range []struct {
		err    error
		silent string // "": it is an answer
	}{
		{refusal(yarnrpc.ClassApplicationNotFound, "no such application"), ""},
		{refusal(yarnrpc.ClassAttemptNotFound, "no such attempt"), ""},
		{refusal(yarnrpc.ClassContainerNotFound, "no such container"), ""},
		{refusal(hrpc.ClassNoSuchMethod, "Unknown method getNodesToAttributes"), ""},
		{server.OfNoPlan(refusal(yarnrpc.ClassYarn, reservations)), ""},
		{server.OfNoPlan(refusal(yarnrpc.ClassYarn, "Reservation is not enabled. Please enable & try again")), ""},
		{server.OfNoPlan(refusal(yarnrpc.ClassYarn, "bob may not list them")), "sc-b (it refuses: bob may not list them)"},
		{fmt.Errorf("%w: 10 s without a heartbeat", server.ErrLost), ""},
		{refusal(hrpc.ClassAccessControl, "bob may not\n\tat java"), "sc-b (it refuses: bob may not)"},
		{
			refusal(yarnrpc.ClassYarn, "org.apache.hadoop.security.AccessControlException: User bob: no"),
			"sc-b (it refuses: User bob: no)",
		},
		{refusal("java.lang.NullPointerException", "x"), "sc-b (it refuses: x)"},
		{refusal(hrpc.ClassNoSuchProtocol, "Unknown protocol"), "sc-b (it refuses: Unknown protocol)"},
		{
			&remote.Unavailable{Member: "sc-b", Err: errors.New("connection refused")},
			"sc-b (subcluster sc-b cannot be reached: connection refused)",
		},
		{errShape, "sc-b (its answer cannot be read)"},
	} {
		l := missingPartsOf([]router.Part[int]{{Member: "sc-a"}, {Member: "sc-b", Err: c.err}})
		if got := router.MissingText(l.silent); got != c.silent || l.answered != 1 {
			t.Errorf("%v: missing is %q, want %q", c.err, got, c.silent)
		}
		if refused := len(l.refused) == 1; refused != strings.Contains(c.silent, "refuses") {
			t.Errorf("%v: a refusal is %v", c.err, refused)
		}
	}
	if !alike([]error{refusal("a", "1"), refusal("a", "2")}) || alike([]error{refusal("a", "1"), refusal("b", "1")}) {
		t.Error("refusals are alike by their class")
	}
	if err := server.OfNoPlan(refusal(yarnrpc.ClassYarn, reservations)); yarnrpc.ErrorOf(err).Class != yarnrpc.ClassYarn ||
		!errors.Is(err, creel.ErrQueueNotFound) {
		t.Errorf("as the only word it is %v", yarnrpc.ErrorOf(err))
	}
}
