// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"strings"
)

// configuration is /conf: every key in force, or the one that is named, as
// Hadoop's servlet writes it; JSON for who accepts that or asks format=json.
func (h *Handler) configuration(w http.ResponseWriter, r *http.Request) {
	var list []Property
	if h.conf.Properties != nil {
		list = h.conf.Properties()
	}
	q := r.URL.Query()
	asJSON := strings.Contains(r.Header.Get("Accept"), "application/json") || q.Get("format") == "json"
	kind := "text/xml;charset=utf-8"
	if asJSON {
		kind = typeJSON
	}
	w.Header().Set("Content-Type", kind)
	name := q.Get("name")
	if name != "" {
		one := list[:0:0]
		for _, p := range list {
			if p.Name == name {
				one = append(one, p)
			}
		}
		if list = one; len(list) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
	}
	doc := &writer{xml: !asJSON, buf: make([]byte, 0, 64<<10)}
	if asJSON {
		fields := func(w *writer, i int) {
			w.Text("key", list[i].Name)
			w.Text("value", list[i].Value)
			w.Bool("isFinal", list[i].Final)
			w.Text("resource", list[i].Source)
		}
		doc.document("", natural, func(w *writer) {
			if name != "" {
				w.Object("property", func(w *writer) { fields(w, 0) })
				return
			}
			w.Array("properties", len(list), fields)
		})
		send(w, r, http.StatusOK, doc.buf)
		return
	}
	doc.buf = append(doc.buf, `<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>`+"\n"...)
	for i := range list {
		doc.Object("property", func(w *writer) {
			w.Text("name", list[i].Name)
			w.Text("value", list[i].Value)
			w.Bool("final", list[i].Final)
			w.Text("source", list[i].Source)
		})
		doc.buf = append(doc.buf, '\n')
	}
	doc.buf = append(doc.buf, "</configuration>\n"...)
	send(w, r, http.StatusOK, doc.buf)
}
