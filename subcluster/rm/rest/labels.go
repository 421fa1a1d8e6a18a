// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/xml"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/go-chi/chi/v5"
)

// Node labels: any user may read them all; only administrators may change them.

func (h labelsAPI) mountLabels(r chi.Router) {
	r.Get("/get-node-to-labels", h.nodeToLabels)
	r.Get("/label-mappings", h.labelsToNodes)
	r.Get("/get-node-labels", h.clusterLabels)
	r.Get("/get-rm-node-labels", h.partitions)
	r.Get("/nodes/{nodeId}/get-labels", h.labelsOfNode)
	r.Post("/add-node-labels", h.addLabels)
	r.Post("/remove-node-labels", h.removeLabels)
	r.Post("/replace-node-to-labels", h.replaceLabels)
	r.Post("/nodes/{nodeId}/replace-labels", h.replaceLabelsOfNode)
}

func (h labelsAPI) labels(r *http.Request) (list []rm.LabelView, nodes []rm.NodeLabel, err error) {
	err = h.read(r.Context(), func(m *rm.Machine, _ time.Time) { list, nodes = m.Labels(), m.NodeLabels() })
	return list, nodes, err
}

func labelFields(w *writer, l rm.Label) {
	w.Text("name", l.Name)
	w.Bool("exclusivity", l.Exclusive)
}

func labelNamed(list []rm.LabelView, name string) rm.LabelView {
	i := slices.IndexFunc(list, func(l rm.LabelView) bool { return l.Name == name })
	if i < 0 {
		return rm.LabelView{Label: rm.Label{Name: name, Exclusive: true}}
	}
	return list[i]
}

func (h labelsAPI) nodeToLabels(w http.ResponseWriter, r *http.Request) {
	list, nodes, err := h.labels(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "nodeToLabelsInfo", mapped, func(w *writer) {
		if len(nodes) == 0 {
			w.Null("nodeToLabels")
			return
		}
		w.Object("nodeToLabels", func(w *writer) {
			w.List("entry", len(nodes), func(w *writer, i int) {
				w.Text("key", nodes[i].Node.String())
				w.Object("value", func(w *writer) {
					w.List("nodeLabelInfo", 1, func(w *writer, _ int) {
						labelFields(w, labelNamed(list, nodes[i].Label).Label)
					})
				})
			})
		})
	})
}

func (h labelsAPI) labelsToNodes(w http.ResponseWriter, r *http.Request) {
	list, _, err := h.labels(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	wanted := queryList(r, "labels")
	list = slices.DeleteFunc(list, func(l rm.LabelView) bool {
		return l.Name == "" || len(l.Nodes) == 0 || len(wanted) > 0 && !slices.Contains(wanted, l.Name)
	})
	h.reply(w, r, http.StatusOK, "labelsToNodesInfo", mapped, func(w *writer) {
		if len(list) == 0 {
			w.Null("labelsToNodes")
			return
		}
		w.Object("labelsToNodes", func(w *writer) {
			w.List("entry", len(list), func(w *writer, i int) {
				l := &list[i]
				w.Object("key", func(w *writer) { labelFields(w, l.Label) })
				w.Object("value", func(w *writer) {
					ids := make([]string, len(l.Nodes))
					for k, id := range l.Nodes {
						ids[k] = id.String()
					}
					w.Texts("nodes", ids)
					h.partitionInfo(w, l)
				})
			})
		})
	})
}

// queryList reads a parameter that may be repeated or list values with commas.
func queryList(r *http.Request, name string) (out []string) {
	for _, list := range r.URL.Query()[name] {
		for item := range strings.SplitSeq(list, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

// clusterLabels serves all labels, each with the resources of its nodes.
func (h labelsAPI) clusterLabels(w http.ResponseWriter, r *http.Request) {
	list, _, err := h.labels(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.labelInfos(w, r, list[1:], func(w *writer, l *rm.LabelView) { h.partitionInfo(w, l) })
}

func (h labelsAPI) partitionInfo(w *writer, l *rm.LabelView) {
	w.Object("partitionInfo", func(w *writer) { h.resource(w, "resourceAvailable", l.Total) })
}

// labelInfos writes labels with additional fields of each.
func (h labelsAPI) labelInfos(
	w http.ResponseWriter,
	r *http.Request,
	list []rm.LabelView,
	more func(w *writer, l *rm.LabelView),
) {
	h.reply(w, r, http.StatusOK, "nodeLabelsInfo", mapped, func(w *writer) {
		if len(list) > 0 {
			w.List("nodeLabelInfo", len(list), func(w *writer, i int) {
				labelFields(w, list[i].Label)
				more(w, &list[i])
			})
		}
	})
}

// partitions serves the labels with the resources of their nodes, including the partition of nodes without a label.
func (h labelsAPI) partitions(w http.ResponseWriter, r *http.Request) {
	list, _, err := h.labels(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	list[0].Name = rm.DefaultPartition // the partition of nodes without a label
	h.labelInfos(w, r, list, func(w *writer, l *rm.LabelView) {
		h.partitionInfo(w, l)
		w.Int("activeNMs", int64(l.Active))
	})
}

func (h labelsAPI) labelsOfNode(w http.ResponseWriter, r *http.Request) {
	id, err := labelledNode(param(r, "nodeId"))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	list, nodes, err := h.labels(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var out []rm.LabelView
	for _, n := range nodes {
		if n.Node == id {
			out = append(out, labelNamed(list, n.Label))
		}
	}
	h.labelInfos(w, r, out, func(*writer, *rm.LabelView) {})
}

// labelledNode reads a node id. An id without a port means every node of the host.
func labelledNode(text string) (creel.NodeID, error) {
	if !strings.Contains(text, ":") && text != "" {
		return creel.NodeID{Host: text}, nil
	}
	id, err := creel.ParseNodeID(text)
	if err != nil {
		return id, illegal("Invalid NodeId [" + text + "]. Expected host:port")
	}
	return id, nil
}

func (h labelsAPI) addLabels(w http.ResponseWriter, r *http.Request) {
	var doc struct {
		XMLName xml.Name `json:"-" xml:"nodeLabelsInfo"`
		Labels  webdoc.Many[struct {
			Name      webdoc.Text  `json:"name" xml:"name"`
			Exclusive *webdoc.Flag `json:"exclusivity" xml:"exclusivity"`
		}] `json:"nodeLabelInfo" xml:"nodeLabelInfo"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	var list []rm.Label
	for _, l := range doc.Labels {
		list = append(list, rm.Label{Name: string(l.Name), Exclusive: l.Exclusive == nil || bool(*l.Exclusive)})
	}
	h.changeLabels(w, r, "add-node-labels", func() error { return h.s.AddLabels(r.Context(), list) })
}

func (h labelsAPI) removeLabels(w http.ResponseWriter, r *http.Request) {
	names := queryList(r, "labels")
	h.changeLabels(w, r, "remove-node-labels", func() error { return h.s.RemoveLabels(r.Context(), names) })
}

func (h labelsAPI) replaceLabels(w http.ResponseWriter, r *http.Request) {
	var doc struct {
		XMLName xml.Name `json:"-" xml:"nodeToLabelsName"`
		Nodes   webdoc.Many[struct {
			ID     webdoc.Text              `json:"nodeId" xml:"nodeId"`
			Labels webdoc.Many[webdoc.Text] `json:"labels" xml:"labels"`
		}] `json:"nodeToLabels" xml:"nodeToLabels"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	var list []rm.NodeLabels
	for _, n := range doc.Nodes {
		id, err := labelledNode(string(n.ID))
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		list = append(list, rm.NodeLabels{Node: id, Labels: webdoc.Texts(n.Labels)})
	}
	h.changeLabels(w, r, "replace-node-to-labels", func() error { return h.s.ReplaceLabels(r.Context(), list, false) })
}

func (h labelsAPI) replaceLabelsOfNode(w http.ResponseWriter, r *http.Request) {
	id, err := labelledNode(param(r, "nodeId"))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	list := []rm.NodeLabels{{Node: id, Labels: queryList(r, "labels")}}
	h.changeLabels(w, r, "nodes/nodeid/replace-labels", func() error {
		return h.s.ReplaceLabels(r.Context(), list, false)
	})
}

// changeLabels applies a change of labels. The response is empty.
func (h labelsAPI) changeLabels(w http.ResponseWriter, r *http.Request, what string, change func() error) {
	who := h.caller(r)
	err := h.s.Administer(who, what, change)
	switch {
	case errors.Is(err, creel.ErrNotPermitted):
		err = &refusal{
			http.StatusUnauthorized, classAuthorization,
			"User " + who.User + " not authorized for post to /ws/v1/cluster/" + what + " ",
		}
	case errors.Is(err, creel.ErrInvalidRequest), errors.Is(err, creel.ErrNotEnabled):
		err = badRequest("java.io.IOException: " + err.Error())
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header()["Content-Type"] = contentType(r)
	w.WriteHeader(http.StatusOK)
}
