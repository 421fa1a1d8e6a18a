// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// killedAbsent is the finding if a member kills an application that cannot exist.
const killedAbsent = "it reported the end of an application that does not exist"

// TryKill kills an application that cannot exist at a member, in the name of another user, as a client's call would be
// forwarded. login is this router's user there. The error is of kind creel.ErrUnavailable: the member did not answer.
func TryKill(
	ctx context.Context, m *remote.Member, login, user string, absent creel.ApplicationID,
) (found []router.Refusal, err error) {
	kill, err := proto.Marshal(&yarnpb.KillApplicationRequestProto{ApplicationId: yarnpb.FromApplicationID(absent)})
	if err != nil {
		return nil, err
	}
	_, err = m.Client(ctx, remote.Write, user, "forceKillApplication", kill)
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return nil, nil
	case errors.Is(err, creel.ErrUnavailable):
		return nil, err
	case isImpersonation(err):
		return []router.Refusal{{
			Kind: "impersonation", Text: "refuses calls for other users: " + sentence(err),
			Try: "set hadoop.proxyuser." + login + ".hosts and .groups at the member and restart it; " +
				"if they name other users only, set creel.router.trial-user to one of these",
		}}, nil
	}
	return []router.Refusal{{
		Kind: "kill", Text: "refuses kills: " + sentence(err), Try: "check the member's service ACLs and its log",
	}}, nil
}

// acceptNames is the remedy of a member whose web port does not believe a router.
func acceptNames(m *remote.Member) string {
	if m.ByTicket() {
		return "let the member's web server log in routers by Kerberos: hadoop.http.authentication.type=kerberos, and " +
			"org.apache.hadoop.security.AuthenticationFilterInitializer in hadoop.http.filter.initializers"
	}
	return "let the member's web server accept user.name (hadoop.http.authentication.type=simple)"
}

// TryKillByREST makes a kill by REST at a member in the name of a user, of an application that cannot exist, and
// compares the clock in the answer with this process's. The error is of kind creel.ErrUnavailable: the member did not
// answer.
func TryKillByREST(
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
	words := killedAbsent
	var status *remote.StatusError
	if errors.As(err, &status) {
		answered, words = status.Header, status.Words()
	} else if err != nil {
		words = err.Error()
	}
	if status == nil || status.Code != http.StatusNotFound {
		found = append(found, router.Refusal{
			Kind: "kill_by_rest", Text: "refuses kills by REST: " + words,
			Try: acceptNames(m),
		})
	}
	if theirs, err := http.ParseTime(answered.Get("Date")); err == nil {
		if r, refused := router.JudgeClock(theirs, sent, received); refused {
			found = append(found, r)
		}
	}
	return found, nil
}

// TryRefresh makes a member drop its cached groups, in the name of another user. An answer that this user is no
// administrator is an answer. The error is of kind creel.ErrUnavailable: the member did not answer.
func TryRefresh(ctx context.Context, m *remote.Member, user string) (found []router.Refusal, err error) {
	_, err = m.Admin(ctx, user, "refreshUserToGroupsMappings", nil)
	switch {
	case err == nil, errors.Is(err, creel.ErrNotPermitted), isAdministration(err): // TryKill reports impersonation
		return nil, nil
	case errors.Is(err, creel.ErrUnavailable):
		return nil, err
	}
	return []router.Refusal{{
		Kind: "refresh", Text: "refuses refreshes: " + sentence(err),
		Try: "check the member's service ACLs and its log",
	}}, nil
}

// isAdministration reports whether a ResourceManager, creel's or Hadoop's, refused a call because the user is no
// administrator. Its class is YarnException, so that only the text distinguishes it (RMServerUtils.verifyAdminAccess).
func isAdministration(err error) bool {
	var refused *hrpc.RemoteError
	return errors.As(err, &refused) && strings.Contains(refused.Message, "doesn't have permission to call")
}

// isImpersonation reports whether a ResourceManager, creel's or Hadoop's, did not let this process act for a user.
func isImpersonation(err error) bool {
	var refused *hrpc.RemoteError
	return errors.As(err, &refused) && (strings.Contains(refused.Message, "not allowed to impersonate") ||
		strings.Contains(refused.Message, "Unauthorized connection for super-user"))
}

// sentence is the message of an error without Java's names.
func sentence(err error) string {
	var refused *hrpc.RemoteError
	switch {
	case err == nil:
		return killedAbsent
	case errors.As(err, &refused):
		return remote.Sentence(refused.Message)
	}
	return err.Error()
}
