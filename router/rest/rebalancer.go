// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/operator"
)

// rebalancerAPI serves the rebalancer's state, and the moves that follow its plan.
type rebalancerAPI struct{ operator *operator.Operator }

// moves lists the moves of waiting applications, and the moves that would start now. With ?drain=ID it assumes that
// this member is drained in mode move.
func (a *rebalancerAPI) moves(w http.ResponseWriter, r *http.Request) {
	out, err := a.operator.Moves(r.Context(), creel.SubclusterID(r.URL.Query().Get("drain")))
	out.Note = lacking(r.Context())
	done(w, err, out)
}

// UndoneDoc is the result of undoing moves.
type UndoneDoc struct {
	Moves []operator.UndoResult `json:"moves"`
}

// undoMoves undoes moves: a POST with the applications, none for all.
func (a *rebalancerAPI) undoMoves(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Applications []string `json:"applications"`
	}
	if !order(w, r, &in) {
		return
	}
	var apps []creel.ApplicationID
	for _, text := range in.Applications {
		id, err := creel.ParseApplicationID(text)
		if err != nil {
			problem(w, invalidRequest, err.Error())
			return
		}
		apps = append(apps, id)
	}
	out, err := a.operator.UndoMoves(r.Context(), caller(r), apps)
	done(w, err, UndoneDoc{out})
}

func (a *rebalancerAPI) state(w http.ResponseWriter, r *http.Request) {
	state, err := a.operator.Rebalancer(r.Context())
	if err == nil {
		state.Note = lacking(r.Context())
	}
	done(w, err, state)
}

func (a *rebalancerAPI) pause(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Paused bool   `json:"paused"`
		Reason string `json:"reason"`
	}
	if !order(w, r, &in) {
		return
	}
	err := a.operator.PauseRebalancer(r.Context(), caller(r), in.Paused, in.Reason)
	done(w, err, map[string]bool{"paused": in.Paused})
}
