// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/operator"
)

// moves lists the moves of waiting applications, and the moves that would start now. With ?drain=ID it assumes that
// this member is drained in mode move.
func (h *Handler) moves(w http.ResponseWriter, r *http.Request) {
	out, err := h.conf.Operator.Moves(r.Context(), creel.SubclusterID(r.URL.Query().Get("drain")))
	out.Note = lacking(r.Context())
	done(w, err, out)
}

// UndoneDoc is the result of undoing moves.
type UndoneDoc struct {
	Moves []operator.UndoResult `json:"moves"`
}

// undoMoves undoes moves: a POST with the applications, none for all.
func (h *Handler) undoMoves(w http.ResponseWriter, r *http.Request) {
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
	out, err := h.conf.Operator.UndoMoves(r.Context(), caller(r), apps)
	done(w, err, UndoneDoc{out})
}
