// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"time"

	"github.com/creelrm/creel/subcluster/rm"
)

// LogsDoc is the progress of log aggregation for an application, by node.
type LogsDoc struct {
	Application string `json:"application"`
	Status      string `json:"status"` // of all nodes together, by YARN's names
	// Nodes are the nodes that wait, gather, failed or were late, at most one page of them. Succeeded nodes are dropped
	// after all nodes are done.
	Nodes []NodeLogs `json:"nodes"`
	Count int        `json:"count"` // of all such nodes
}

// NodeLogs is one node with its latest messages.
type NodeLogs struct {
	Node     string   `json:"node"`
	Status   string   `json:"status"`
	Messages []string `json:"messages,omitempty"`
	Failures []string `json:"failures,omitempty"`
}

// logs serves the log aggregation status of an application's nodes to callers with view access.
func (h *appsAPI) logs(w http.ResponseWriter, r *http.Request) {
	id, err := appOf(r)
	doc := LogsDoc{Application: id.String(), Nodes: []NodeLogs{}}
	if err == nil {
		err = h.ask(r, func(m *rm.Machine, _ time.Time) error {
			a, ok := m.App(id)
			if !ok {
				return noApp(id)
			}
			if err := h.inside(m, r, &a); err != nil {
				return err
			}
			list := m.NodeLogs(id)
			doc.Status, doc.Count = a.Logs.String(), len(list)
			for _, n := range list[:min(len(list), maxLines)] {
				doc.Nodes = append(doc.Nodes, NodeLogs{n.Node.String(), n.Status.String(), n.Messages, n.Failures})
			}
			return nil
		})
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.sendDocument(w, r, doc)
}
