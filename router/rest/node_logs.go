// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/nodelogs"
)

// NodeLogsDoc lists the logs of a container.
type NodeLogsDoc struct {
	Node  NodeRow         `json:"node"`
	Files []nodelogs.File `json:"files"` // by name
}

// nodeLogsAPI serves the logs of containers, so that readers need network access only to routers. A container's logs
// are on its node, and go with it.
type nodeLogsAPI struct {
	nodes  nodeContainersAPI
	reader *nodelogs.Reader
}

// list serves the names of a container's logs.
func (a *nodeLogsAPI) list(w http.ResponseWriter, r *http.Request) {
	node, at, err := a.find(r)
	if err != nil {
		problemOf(w, err)
		return
	}
	files, err := a.reader.Files(r.Context(), at)
	if err != nil {
		problemOf(w, err)
		return
	}
	answer(w, NodeLogsDoc{Node: *node, Files: append([]nodelogs.File{}, files...)})
}

// read serves the text of one log, or with ?last=N its last N bytes.
func (a *nodeLogsAPI) read(w http.ResponseWriter, r *http.Request) {
	_, at, err := a.find(r)
	var last int64
	if err == nil {
		last, err = number(r, "last", 0)
	}
	if err != nil {
		problemOf(w, err)
		return
	}
	body, err := a.reader.Open(r.Context(), at, pathParam(r, "file"), last)
	if err != nil {
		problemOf(w, err)
		return
	}
	defer body.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", "inline")
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // the reader must not take a part for the whole
	}
}

// find returns a container's node and place. Users that may not view the application may not read its logs, even if
// its node would show them.
func (a *nodeLogsAPI) find(r *http.Request) (*NodeRow, nodelogs.At, error) {
	var none nodelogs.At
	id, err := creel.ParseContainerID(pathParam(r, "container"))
	if err != nil {
		return nil, none, err
	}
	node, err := a.nodes.find(r, pathParam(r, "node"), creel.SubclusterID(r.URL.Query().Get("subcluster")))
	if err != nil {
		return nil, none, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), nodeWait)
	defer cancel()
	app, user := id.Attempt.Application, ""
	if row := a.nodes.h.applications.list.Last(app); row != nil {
		user = row.User
	}
	switch may, err := a.nodes.h.mayView(r.WithContext(ctx), app, user); {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, none, &creel.Error{
			Kind: creel.ErrUnavailable, What: "the application's home does not answer now",
			Why: "it has the application's access lists", Try: "try again in a moment",
		}
	case err != nil:
		return nil, none, err
	case !may:
		return nil, none, &creel.Error{
			Kind: creel.ErrNotPermitted, What: "the logs are shown only to viewers of " + app.String(),
			Try: "ask its user",
		}
	}
	at := nodelogs.At{Web: node.Web, Container: id.String(), User: caller(r)}
	if m, ok := a.nodes.h.server.View().Member(node.Member); ok {
		at.HTTPS = m.Addresses.HTTPS // a cluster's policy holds for its nodes
	}
	return node, at, nil
}
