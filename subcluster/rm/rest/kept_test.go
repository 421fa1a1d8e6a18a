// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A long document is kept and given again. It still shows what was done before
// it was asked for, and is given in the form that is asked for.
func TestALongDocumentThatIsKept(t *testing.T) {
	c := start(t, nil)
	for i := range 30 {
		c.submit("bob", fmt.Sprint("app", i), `,"unmanaged-AM":true,"application-tags":{"tag":["`+strings.Repeat("x", 100)+`"]}`)
	}
	apps := base + "/apps?user.name=bob"
	for i := range 10 {
		id := c.submit("bob", fmt.Sprint("late", i), `,"unmanaged-AM":true`)
		first := c.call("GET", apps, "")
		if !strings.Contains(first.body, id) || len(first.body) < 8<<10 {
			t.Fatalf("%s was submitted and is not in the list of %d bytes", id, len(first.body))
		}
		again := c.call("GET", apps, "")
		if again.status != 200 || again.head.Get("Content-Type") != first.head.Get("Content-Type") || again.head.Get("Vary") != first.head.Get("Vary") || !strings.Contains(again.body, id) {
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
			if xml := c.call("GET", apps, "", "Accept", "application/xml"); !strings.HasPrefix(xml.body, "<?xml") || !strings.Contains(xml.body, id) || !strings.HasPrefix(xml.head.Get("Content-Type"), "application/xml") {
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
