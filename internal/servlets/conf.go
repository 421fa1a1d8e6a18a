// SPDX-License-Identifier: Apache-2.0

package servlets

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
)

// Property is one configuration key in force.
type Property struct {
	Name   string `json:"key"`
	Value  string `json:"value"`
	Final  bool   `json:"isFinal"`
	Source string `json:"resource"` // the file it comes from, or a substitute for one
}

// conf writes all keys in force, or the named one, like Hadoop's servlet. Clients that accept JSON or ask for
// format=json get JSON.
func (c *Config) conf(w http.ResponseWriter, r *http.Request) {
	list := []Property{}
	if c.Properties != nil {
		list = append(list, c.Properties()...)
	}
	q := r.URL.Query()
	asJSON := strings.Contains(r.Header.Get("Accept"), "application/json") || q.Get("format") == "json"
	kind := "text/xml;charset=utf-8"
	if asJSON {
		kind = "application/json;charset=utf-8"
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
	var b bytes.Buffer
	switch {
	case asJSON && name != "":
		writeJSON(&b, map[string]Property{"property": list[0]})
	case asJSON:
		writeJSON(&b, map[string][]Property{"properties": list})
	default:
		b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>` + "\n")
		element := func(name, value string) {
			b.WriteString("<" + name + ">")
			xml.EscapeText(&b, []byte(value)) // writes to a buffer never fail
			b.WriteString("</" + name + ">")
		}
		for _, p := range list {
			b.WriteString("<property>")
			element("name", p.Name)
			element("value", p.Value)
			element("final", strconv.FormatBool(p.Final))
			element("source", p.Source)
			b.WriteString("</property>\n")
		}
		b.WriteString("</configuration>\n")
	}
	w.Write(b.Bytes()) // an error here means that the client disconnected
}

// writeJSON writes a value without a trailing newline and without escaping for HTML.
func writeJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		b.WriteString("null")
		return
	}
	b.Truncate(b.Len() - 1)
}
