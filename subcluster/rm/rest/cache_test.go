// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// A cached long document still shows all changes made before the request, and is sent in the requested form.
func TestALongDocumentThatIsKept(t *testing.T) {
	c := start(t, nil)
	for i := range 30 {
		c.submit(
			"bob",
			fmt.Sprint("app", i),
			`,"unmanaged-AM":true,"application-tags":{"tag":["`+strings.Repeat("x", 100)+`"]}`,
		)
	}
	apps := base + "/apps?user.name=bob"
	for i := range 10 {
		id := c.submit("bob", fmt.Sprint("late", i), `,"unmanaged-AM":true`)
		first := c.call("GET", apps, "")
		if !strings.Contains(first.body, id) || len(first.body) < 8<<10 {
			t.Fatalf("%s was submitted and is not in the list of %d bytes", id, len(first.body))
		}
		again := c.call("GET", apps, "")
		if again.status != 200 || again.head.Get("Content-Type") != first.head.Get("Content-Type") ||
			again.head.Get("Vary") != first.head.Get("Vary") ||
			!strings.Contains(again.body, id) {
			t.Fatalf("the first answer had %v, the second %d %v", first.head, again.status, again.head)
		}
		for range 2 {
			packed := c.call("GET", apps, "", "Accept-Encoding", "gzip")
			z, err := gzip.NewReader(strings.NewReader(packed.body))
			if err != nil {
				t.Fatalf("%v: %v", err, packed.head)
			}
			if plain, err := io.ReadAll(z); err != nil || !strings.Contains(string(plain), id) || plain[0] != '{' {
				t.Fatalf("packed: %v, %.80s", err, plain)
			}
			if xml := c.call(
				"GET",
				apps,
				"",
				"Accept",
				"application/xml",
			); !strings.HasPrefix(xml.body, "<?xml") || !strings.Contains(xml.body, id) ||
				!strings.HasPrefix(xml.head.Get("Content-Type"), "application/xml") {
				t.Fatalf("XML: %v %.80s", xml.head, xml.body)
			}
		}
		c.until("it is killed", func() bool {
			return c.call("PUT", base+"/apps/"+id+"/state?user.name=bob", `{"state":"KILLED"}`).status == 200
		})
		if killed := c.call("GET", apps+"&states=KILLED", "").body; !strings.Contains(killed, id) {
			t.Fatalf("%s was killed, and the list of the killed is %.300s", id, killed)
		}
		if state := at(t, c.call("GET", apps, "").body, "apps", "app"); !shows(state, id, "KILLED") {
			t.Fatalf("%s was killed, and the list does not show it", id)
		}
	}
}

func shows(list any, id, state string) bool {
	for _, a := range list.([]any) {
		if a := a.(map[string]any); a["id"] == id {
			return a["state"] == state
		}
	}
	return false
}

// The metrics are kept for a moment too, and never show less than was done
// before they were asked for.
func TestMetricsThatAreKept(t *testing.T) {
	c := start(t, nil)
	for i := range 30 {
		c.submit("bob", fmt.Sprint("app", i), `,"unmanaged-AM":true`)
		for _, form := range []string{"application/json", "application/xml", "application/json"} {
			m := c.call("GET", base+"/metrics", "", "Accept", form)
			want := fmt.Sprintf(`"appsSubmitted":%d,`, i+1)
			if form == "application/xml" {
				want = fmt.Sprintf("<appsSubmitted>%d</appsSubmitted>", i+1)
			}
			if m.status != 200 || !strings.Contains(m.body, want) ||
				!strings.HasPrefix(m.head.Get("Content-Type"), form) {
				t.Fatalf("after %d submissions %s is %d %v %.120s", i+1, form, m.status, m.head, m.body)
			}
		}
	}
}

// Many concurrent requests for a long document all receive the whole of it.
func TestManyAskForALongDocument(t *testing.T) {
	c := start(t, nil)
	for i := range 60 {
		c.submit(
			"bob",
			fmt.Sprint("app", i),
			`,"unmanaged-AM":true,"application-tags":{"tag":["`+strings.Repeat("x", 100)+`"]}`,
		)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if n := strings.Count(c.call("GET", base+"/apps?user.name=bob", "").body, `"name":"app`); n != 60 {
					t.Errorf("a list of %d applications, not 60", n)
				}
			}
		})
	}
	all.Wait()
}

// A client that names the entity tag of a current document receives "not modified". It receives the document after a
// change, in another form, or for another user.
func TestALongDocumentThatHolds(t *testing.T) {
	c := start(t, nil)
	for i := range 60 {
		c.submit("bob", fmt.Sprint("app", i), `,"unmanaged-AM":true`)
	}
	apps := base + "/apps?user.name=bob"
	has := func(accept, path, tag string) (status int, body, now string) {
		r := c.call("GET", path, "", "Accept", accept, "If-None-Match", tag)
		return r.status, r.body, r.head.Get("ETag")
	}
	const form, other = "application/json", "application/xml"
	var tag string
	c.until("its list holds", func() bool { // those that are just submitted still change
		var status int
		var body string
		status, body, tag = has(form, apps, tag)
		if (status == 304) != (body == "") || status != 304 && status != 200 || len(tag) < 8 || tag[0] != '"' {
			t.Fatalf("%d with tag %s: %.100s", status, tag, body)
		}
		return status == 304
	})
	for _, ask := range [][2]string{{other, apps}, {form, base + "/apps?user.name=carol"}, {form, apps + "&user=bob"}} {
		if status, body, now := has(ask[0], ask[1], tag); status != 200 || body == "" || now == tag || now == "" {
			t.Errorf("%v: %d with tag %s, for who has %s", ask, status, now, tag)
		}
	}
	id := c.submit("bob", "late", `,"unmanaged-AM":true`)
	if status, body, now := has(form, apps, tag); status != 200 || now == tag || !strings.Contains(body, id) {
		t.Errorf("after a submission %d with tag %s", status, now)
	}
	if r := c.call("GET", base+"/apps?user.name=bob&limit=1", ""); r.status != 200 || r.head.Get("ETag") != "" {
		t.Errorf("a short list, which is not kept, has the tag %s", r.head.Get("ETag"))
	}
}
