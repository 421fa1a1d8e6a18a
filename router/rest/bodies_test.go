// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/creelrm/creel/router/routertest"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A router takes the bodies that a member takes, and rejects the others with the same status.
func TestBodiesAreReadAsMembersReadThem(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	web := f.Routers[0].Web
	wide := func(text string) string {
		b := []byte("\xff\xfe")
		for _, u := range utf16.Encode([]rune(text)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	doc := func(more string) (id, text string) {
		id = at(t, call(t, web, "POST", base+"/apps/new-application"+asAlice, "").body, "application-id").(string)
		return id, fmt.Sprintf(`{"application-id":%q,"application-name":"é","unmanaged-AM":true,"queue":"default",%s}`, id, more)
	}
	const size = `"resource":{"memory":[" 256 "],"vCores":"1"}`
	asJSON := []string{"Content-Type", "application/json"}
	for _, c := range []struct {
		more   string
		pack   func(string) string
		head   []string
		status int
		want   string // in the error, or the application's name
	}{
		{size, nil, asJSON, 202, "é"},
		{size, nil, []string{"Content-Type", "APPLICATION/JSON;charset=utf-8"}, 202, "é"},
		{size, func(s string) string { return gzipped(t, s) }, append(asJSON, "Content-Encoding", "gzip"), 202, "é"},
		{size, wide, asJSON, 202, "é"},
		{
			size, func(s string) string { return strings.ReplaceAll(s, "é", "\xe9") },
			[]string{"Content-Type", "application/json; charset=ISO-8859-1"}, 202, "é",
		},
		{size, func(s string) string { return strings.ReplaceAll(s, "é", "\xe9") }, asJSON, 400, "not UTF-8"},
		{size, nil, append(asJSON, "Content-Encoding", "br"), 415, "br"},
		{size, nil, []string{"Content-Type", "text/plain"}, 415, "text/plain"},
		{size, func(s string) string { return s + s }, asJSON, 400, "after top-level value"},
		{`"resource":{"memory":"256 MB","vCores":1}`, nil, asJSON, 400, "resource.memory"},
		{`"resource":{"memory":256,"vCores":1.5}`, nil, asJSON, 400, "resource.vCores"},
		{size + `,"reservation-id":"reservation_5"`, nil, asJSON, 400, "reservation_5"},
		{size + `,"priority":"high"`, nil, asJSON, 400, "priority"}, // by the member
	} {
		id, text := doc(c.more)
		if c.pack != nil {
			text = c.pack(text)
		}
		r := call(t, web, "POST", base+"/apps"+asAlice, text, c.head...)
		if r.status != c.status {
			t.Errorf("%q as %v: %d %s", text, c.head, r.status, r.body)
			continue
		}
		got := r.body
		if c.status == 202 {
			got = at(t, call(t, web, "GET", base+"/apps/"+id+asAlice, "").body, "app", "name").(string)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q as %v: %s, want %s", text, c.head, got, c.want)
		}
	}
	id, _ := submit(t, f, web, "a", "default")
	packed := gzipped(t, `{"priority":0}`)
	r := call(t, web, "PUT", base+"/apps/"+id+"/priority"+asAlice, packed, append(asJSON, "Content-Encoding", "gzip")...)
	if r.status != 200 {
		t.Errorf("a packed priority: %d %s", r.status, r.body)
	}
	if r := call(t, web, "PUT", base+"/apps/"+id+"/state"+asAlice, `<state>KILLED</state>`); r.status != 400 {
		t.Errorf("another root element: %d %s", r.status, r.body)
	}
	r = call(t, web, "GET", base+"/metrics", "", "Accept", "application/json;q=0.2, Application/XML")
	if kind := r.head.Get("Content-Type"); !strings.HasPrefix(kind, "application/xml") {
		t.Errorf("XML was preferred: %s", kind)
	}
}
