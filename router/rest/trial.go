// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// TryKill makes a kill by REST at a member in the name of a user, of an application that cannot exist, and compares the
// clock in the answer with this process's. The error is of kind creel.ErrUnavailable: the member did not answer.
func TryKill(
	ctx context.Context, m *remote.Member, user string, absent creel.ApplicationID,
) (found []router.Refusal, err error) {
	sent := time.Now()
	head := http.Header{
		subcluster.RouterHeader: {"1"}, "Accept": {"application/json"}, "Content-Type": {"application/json"},
	}
	path := appPath(absent) + "/state?" + url.Values{"user.name": {user}}.Encode()
	_, answered, err := m.Web(ctx, remote.Write, http.MethodPut, path, user, head, []byte(`{"state":"KILLED"}`))
	received := time.Now()
	if errors.Is(err, creel.ErrUnavailable) {
		return nil, err
	}
	words := "it reported the end of an application that does not exist"
	var status *remote.StatusError
	if errors.As(err, &status) {
		answered, words = status.Header, status.Words()
	} else if err != nil {
		words = err.Error()
	}
	if status == nil || status.Code != http.StatusNotFound {
		found = append(found, router.Refusal{
			Kind: "kill_by_rest", Text: "refuses kills by REST: " + words,
			Try: "let the member's web server accept user.name (hadoop.http.authentication.type=simple)",
		})
	}
	if theirs, err := http.ParseTime(answered.Get("Date")); err == nil {
		if r, refused := router.JudgeClock(theirs, sent, received); refused {
			found = append(found, r)
		}
	}
	return found, nil
}
