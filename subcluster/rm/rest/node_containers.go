// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
)

// nodeContainers lists the containers of a node. It counts containers of applications that the caller may not view.
func nodeContainers(h *Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var doc subcluster.NodeContainers
		err := h.ask(r, func(m *rm.Machine, _ time.Time) error {
			id, err := nodeOf(r)
			if err != nil {
				return err
			}
			if _, known := m.Node(id); !known {
				return notFound("nodeId, " + id.String() + ", is not found")
			}
			who := h.caller(r)
			doc = subcluster.NodeContainers{Containers: []subcluster.NodeContainer{}}
			for _, c := range m.NodeContainers(id) {
				app, known := m.App(c.ID.Attempt.Application)
				if !known || !h.s.MayView(m, who, &app) {
					doc.Hidden++
					continue
				}
				doc.Containers = append(doc.Containers, nodeContainer(h, &c, &app))
			}
			return nil
		})
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		slices.SortFunc(doc.Containers, func(a, b subcluster.NodeContainer) int {
			return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
		})
		h.sendDocument(w, r, doc)
	}
}

func nodeContainer(h *Handler, c *rm.ContainerView, app *rm.AppView) subcluster.NodeContainer {
	doc := subcluster.NodeContainer{
		ID: c.ID.String(), Application: app.ID.String(), Name: app.Name, User: app.User, Queue: string(app.Queue),
		State: c.Internal, MemoryMB: c.Resource.MemoryMB, VCores: c.Resource.VCores, Started: c.Created.UTC(), AM: c.AM,
		Opportunistic: c.ExecutionType == creel.Opportunistic, Logs: logsOf(h, c.HTTPAddress, c.ID, app.User),
	}
	if !c.Queued.IsZero() {
		doc.State = subcluster.ContainerQueued
	}
	return doc
}
