// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/sched"
)

// lines serves all applications as routers list them: a fifth of YARN's document, with the
// code of what each waits for, which YARN's has no field for.
func (h *Handler) lines(w http.ResponseWriter, r *http.Request) {
	out, who := []subcluster.AppLine{}, h.caller(r)
	err := h.read(r.Context(), func(m *rm.Machine, _ time.Time) {
		var look sched.Look
		for a := range m.Apps {
			l := subcluster.AppLine{
				ID: a.ID.String(), Name: a.Name, User: a.User, Queue: string(a.Queue), Type: a.Type,
				State: a.State.String(), Outcome: a.Final.String(), Priority: int64(a.Priority), Tags: a.Tags,
				Unmanaged: a.Unmanaged,
			}
			// To all, as YARN tells the diagnostics of an application that waits.
			if limit, where := m.Waits(a.ID, &look); limit != sched.LimitNone {
				l.Waits, l.WaitsIn = limit.Code(), string(where)
			}
			if h.s.MayView(m, who, a) {
				l.Started, l.Finished = millis(a.Submitted), millis(a.Finished)
				if a.InScheduler {
					l.Containers, l.MemoryMB, l.VCores = int64(a.Containers), a.Used.MemoryMB, a.Used.VCores
				}
			}
			out = append(out, l)
		}
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	b, err := json.Marshal(map[string][]subcluster.AppLine{"apps": out})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header()["Content-Type"] = asJSON
	send(w, r, http.StatusOK, b)
}
