// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// base is the base path of YARN's documents.
const base = "/ws/v1/cluster"

// appPath returns the path of an application's report.
func appPath(id creel.ApplicationID) string { return base + "/apps/" + id.String() }

// carryOutREST is carryOut for an intent that came by REST. It uses REST and the user's name, like the direct call. By
// RPC the router would impersonate the user, which a member may forbid. Timeouts need a call for each type.
func (c member) carryOutREST(ctx context.Context, i intents.Intent, later passing) (done bool, err error) {
	carry := func(method, path string, doc any) ([]byte, error) { return c.carry(ctx, i, later, method, path, doc) }
	app := appPath(i.Application)
	switch i.Verb {
	case intents.Kill:
		doc, err := carry(http.MethodPut, app+"/state",
			map[string]string{"state": "KILLED", "diagnostics": i.Diagnostics})
		if err != nil {
			return false, err
		}
		var answer struct {
			State string `json:"state"`
		}
		if err := json.Unmarshal(doc, &answer); err != nil {
			return false, nil // the next round asks again
		}
		state, err := creel.ParseApplicationState(answer.State)
		return err == nil && state.Ended(), nil
	case intents.Move:
		_, err = carry(http.MethodPut, app+"/queue", map[string]string{"queue": i.Queue})
	case intents.Priority:
		_, err = carry(http.MethodPut, app+"/priority", map[string]int32{"priority": i.Level})
	case intents.Timeouts:
		for kind, at := range i.Expiry {
			_, one := carry(http.MethodPut, app+"/timeout",
				map[string]map[string]string{"timeout": {"type": kind, "expiryTime": at}})
			err = errors.Join(err, one)
		}
	case intents.Signal:
		if i.Command < 1 || int(i.Command) > len(creel.SignalCommands) {
			return false, intents.ErrUnknownVerb
		}
		command := creel.SignalCommands[i.Command-1]
		_, err = carry(http.MethodPost, base+"/containers/"+i.Container.String()+"/signal/"+command, nil)
	default:
		return false, intents.ErrUnknownVerb
	}
	return err == nil, err
}

// carry makes one call for a recorded intent, and converts its error for the loop.
func (c member) carry(
	ctx context.Context, i intents.Intent, later passing, method, path string, doc any,
) (answer []byte, err error) {
	var body []byte
	head := http.Header{subcluster.RouterHeader: {"1"}, "Accept": {"application/json"}}
	if doc != nil {
		if body, err = json.Marshal(doc); err != nil {
			return nil, err
		}
		head.Set("Content-Type", "application/json")
	}
	path += "?" + url.Values{"user.name": {i.User}}.Encode()
	answer, _, err = c.m.Web(ctx, remote.Write, method, path, i.User, head, body)
	var status *remote.StatusError
	if !errors.As(err, &status) {
		return answer, err
	}
	kind := creel.ErrNotPermitted
	switch {
	case i.Verb == intents.Signal && strings.Contains(status.Words(), "absent container"): // it may still appear
		kind = creel.ErrContainerNotFound
	case status.Code == http.StatusNotFound:
		kind = creel.ErrApplicationNotFound
	case later(i, status.Code):
		kind = creel.ErrBusy
	case status.Code == http.StatusInsufficientStorage:
		kind = creel.ErrReadOnly
	case status.Code == http.StatusBadRequest:
		kind = creel.ErrInvalidRequest
	}
	return nil, &creel.Error{Kind: kind, What: status.Words()}
}
