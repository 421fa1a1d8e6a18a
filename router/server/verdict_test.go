// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

func TestVerdictOfAnswers(t *testing.T) {
	const yarn = "org.apache.hadoop.yarn.exceptions.YarnException"
	const duplicate = "Application with id application_1_0001 is already present! Cannot add a duplicate!"
	status := func(code int, message string) error {
		return &remote.StatusError{Member: "sc-1", Code: code, Body: fmt.Appendf(nil,
			`{"RemoteException":{"exception":"BadRequestException","message":%q}}`, message)}
	}
	for _, c := range []struct {
		err  error
		want router.Verdict
	}{
		{nil, router.Accepted},
		{&hrpc.RemoteError{Class: yarn, Message: duplicate + "\n\tat org.apache"}, router.Accepted},
		{fmt.Errorf("sc-1: %w", &hrpc.RemoteError{Class: yarn, Message: duplicate}), router.Accepted},
		{status(http.StatusBadRequest, duplicate), router.Accepted},
		{&hrpc.RemoteError{Class: yarn, Message: "Queue root.x does not exist"}, router.Refused},
		{status(http.StatusBadRequest, "Queue root.x does not exist"), router.Refused},
		{status(http.StatusServiceUnavailable, "busy"), router.Refused},
		{status(http.StatusInsufficientStorage, "full"), router.Refused},
		{status(http.StatusInternalServerError, "no answer"), router.Unclear},
		{&hrpc.RemoteError{Class: yarn, Message: "no login", Fatal: true}, router.NotSent},
		{&remote.Unavailable{}, router.NotSent},
		{&remote.Unavailable{Sent: true}, router.Unclear},
		{errors.New("timed out"), router.Unclear},
	} {
		if got := server.VerdictOf(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
