// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/server"
)

func (c *cluster) newID(user string) string {
	c.t.Helper()
	return at(c.t, c.call("POST", base+"/apps/new-application?user.name="+user, "").body, "application-id").(string)
}

// allocated is the memory that an application uses once its AM has a container.
func (c *cluster) allocated(id string) float64 {
	c.t.Helper()
	var mb float64
	c.until("the AM has a container", func() bool {
		mb = c.get(base+"/apps/"+id, "app", "allocatedMB").(float64)
		return mb > 0
	})
	return mb
}

func TestNumbersOfSubmissions(t *testing.T) {
	c := start(t, nil)
	const path = base + "/apps?user.name=alice"
	submission := func(more string) (id, doc string) {
		id = c.newID("alice")
		return id, fmt.Sprintf(
			`{"application-id":%q,"application-name":"a","am-container-spec":{"commands":{"command":"true"}},%s}`, id, more)
	}
	for _, memory := range []string{`512`, `"512"`, `" 512 "`, `[512]`, `["+512"]`} {
		id, doc := submission(`"resource":{"memory":` + memory + `,"vCores":"1 "}`)
		if r := c.call("POST", path, doc); r.status != 202 {
			t.Errorf("memory %s: %d %s", memory, r.status, r.body)
		} else if got := c.allocated(id); got != 512 {
			t.Errorf("memory %s: %v allocated", memory, got)
		}
	}
	for more, want := range map[string]string{
		`"resource":{"memory":512.5,"vCores":1}`:                           "resource.memory has the number 512.5",
		`"resource":{"memory":"half","vCores":1}`:                          "resource.memory has the text",
		`"resource":{"memory":[512,1024],"vCores":1}`:                      "resource.memory has a list",
		`"resource":{"memory":9223372036854775808,"vCores":1}`:             "out of range",
		`"resource":{"memory":512,"vCores":4294967297}`:                    "out of range",
		`"resource":{"memory":-512,"vCores":1}`:                            "-512",
		`"resource":{"memory":512,"vCores":-1}`:                            "-1",
		`"priority":"high"`:                                                `priority has the text "high"`,
		`"max-app-attempts":1e2`:                                           "max-app-attempts has the number 1e2",
		`"attempt-failures-validity-interval":"1m"`:                        "attempt-failures-validity-interval",
		`"unmanaged-AM":"yes"`:                                             "unmanaged-AM",
		`"application-timeouts":{"entry":{"key":"LIFETIME","value":"1h"}}`: `"1h"`,
		`"application-timeouts":{"entry":{"key":"LIFETIME","value":-5}}`:   "-5",
		`"application-timeouts":{"entry":{"key":"DAYTIME","value":5}}`:     `"DAYTIME" is not LIFETIME`,
		`"reservation-id":"reservation_1"`:                                 "Could not parse reservation id reservation_1",
	} {
		_, doc := submission(more)
		if r := c.call("POST", path, doc); r.status != 400 || !strings.Contains(message(t, r), want) {
			t.Errorf("%s: %d %s, want %s", more, r.status, r.body, want)
		}
	}
}

func message(t *testing.T, r reply) string {
	t.Helper()
	return at(t, r.body, "RemoteException", "message").(string)
}

// Hadoop reads numbers, flags and lists of one as texts.
func TestTextsOfSubmissions(t *testing.T) {
	c := start(t, nil)
	for _, text := range []struct{ fields, field, want string }{
		{`"application-name":7`, "name", "7"},
		{`"application-name":["a"]`, "name", "a"},
		{`"application-name":true`, "name", "true"},
		{`"application-name":"a"`, "applicationType", ""},
		{`"application-type":3.50`, "applicationType", "3.50"},
		{`"application-type":"` + strings.Repeat("é", 25) + `"`, "applicationType", strings.Repeat("é", 20)},
		{`"application-tags":{"tag":[1,"B"]}`, "applicationTags", "1,b"},
	} {
		id := c.newID("alice")
		r := c.call("POST", base+"/apps?user.name=alice", fmt.Sprintf(`{"application-id":%q,`+
			`"am-container-spec":{"commands":{"command":["true",1]},"environment":{"entry":{"key":"N","value":1}}},%s}`, id, text.fields))
		if r.status != 202 {
			t.Errorf("%s: %d %s", text.fields, r.status, r.body)
		} else if got := c.get(base+"/apps/"+id, "app", text.field); got != text.want {
			t.Errorf("%s: %s is %q, want %q", text.fields, text.field, got, text.want)
		}
	}
}

func TestUnknownWordsOfSubmissions(t *testing.T) {
	c := start(t, nil)
	const path = base + "/apps?user.name=alice"
	submission := func(spec string) string {
		return fmt.Sprintf(`{"application-id":%q,"application-name":"a","resource":{"memory":512,"vCores":1},`+
			`"am-container-spec":{"commands":{"command":"true"},%s}}`, c.newID("alice"), spec)
	}
	file := func(more string) string {
		return `"local-resources":{"entry":{"key":"a.jar","value":{"resource":"hdfs://a/b","size":1,"timestamp":1,` +
			more + `}}}`
	}
	for _, spec := range []string{
		file(`"type":"ARCHIVE","visibility":"PUBLIC"`), file(`"type":" FILE ","visibility":"PRIVATE"`),
		`"application-acls":{"entry":[{"key":"VIEW_APP","value":"bob"},{"key":"MODIFY_APP","value":"eve"}]}`,
	} {
		if r := c.call("POST", path, submission(spec)); r.status != 202 {
			t.Errorf("%s: %d %s", spec, r.status, r.body)
		}
	}
	for spec, want := range map[string]string{
		file(`"type":"FOLDER","visibility":"PUBLIC"`):                   `"FOLDER" is not ARCHIVE, FILE or PATTERN`,
		file(`"type":"file","visibility":"PUBLIC"`):                     `"file" is not ARCHIVE, FILE or PATTERN`,
		file(`"type":"FILE","visibility":"WORLD"`):                      `"WORLD" is not PUBLIC, PRIVATE or APPLICATION`,
		file(`"type":"FILE","size":"large"`):                            `"large"`,
		`"application-acls":{"entry":{"key":"EDIT_APP","value":"bob"}}`: `"EDIT_APP" is not VIEW_APP or MODIFY_APP`,
	} {
		if r := c.call("POST", path, submission(spec)); r.status != 400 || !strings.Contains(message(t, r), want) {
			t.Errorf("%s: %d %s, want %s", spec, r.status, r.body, want)
		}
	}
}

// Maps and lists may be written as repeated fields, as Hadoop's own JSON has them.
func TestRepeatedFieldsAddUp(t *testing.T) {
	c := start(t, nil)
	id := c.newID("alice")
	r := c.call("POST", base+"/apps?user.name=alice", fmt.Sprintf(`{"application-id":%q,"application-name":"a",`+
		`"application-tags":{"tag":"a","tag":["b"]},"resource":{"memory":512,"vCores":1},`+
		`"am-container-spec":{"commands":{"command":"true"}}}`, id))
	if tags := c.get(base+"/apps/"+id, "app", "applicationTags"); r.status != 202 || tags != "a,b" {
		t.Errorf("tags %v; %d %s", tags, r.status, r.body)
	}
}

func TestNumbersOfOtherDocuments(t *testing.T) {
	c := start(t, func(cfg *server.Config) {})
	id := c.submit("alice", "a", "")
	nodes := c.get(base+"/nodes", "nodes", "node").([]any)
	node := nodes[0].(map[string]any)["id"].(string)
	for _, call := range []struct{ path, method, body, want string }{
		{"/apps/" + id + "/priority?user.name=alice", "PUT", `{"priority":"5x"}`, "priority has the text"},
		{"/apps/" + id + "/priority?user.name=alice", "PUT", `{"priority":4294967296}`, "out of range"},
		{"/apps/" + id + "/priority?user.name=alice", "PUT", `<appqueue><priority>5</priority></appqueue>`, "appqueue"},
		{"/apps/" + id + "/state?user.name=alice", "PUT", `{"state":"KILLED"}{"state":"KILLED"}`, "after top-level"},
		{"/apps/" + id + "/state?user.name=alice", "PUT", `<state>KILLED</state>`, "appstate"},
		{"/apps/" + id + "/queue?user.name=alice", "PUT", `<q><queue>other</queue></q>`, "appqueue"},
		{
			"/apps/" + id + "/timeout?user.name=alice", "PUT",
			`<timeouts><type>LIFETIME</type><expiryTime>2099-01-01T00:00:00.000+0000</expiryTime></timeouts>`, "timeout",
		},
		{"/nodes/" + node + "/resource?user.name=root", "POST", `{"resource":{"memory":"1 G","vCores":1}}`, "resource.memory"},
		{
			"/nodes/" + node + "/resource?user.name=root", "POST",
			`{"resource":{"memory":1024,"vCores":1},"overCommitTimeout":"soon"}`, "overCommitTimeout",
		},
		{"/nodes/" + node + "/resource?user.name=root", "POST", `<resource><memory>5</memory></resource>`, "resourceOption"},
		{"/add-node-labels?user.name=root", "POST", `{"nodeLabelInfo":{"name":"x","exclusivity":"maybe"}}`, "exclusivity"},
		{"/replace-node-to-labels?user.name=root", "POST", `<nodes/>`, "nodeToLabelsName"},
	} {
		r := c.call(call.method, base+call.path, call.body, "Accept", "application/json")
		if r.status != 400 || !strings.Contains(message(t, r), call.want) {
			t.Errorf("%s %s: %d %s, want %s", call.path, call.body, r.status, r.body, call.want)
		}
	}
	r := c.call("PUT", base+"/apps/"+id+"/priority?user.name=alice", `{"priority":[" 3 "]}`)
	if r.status != 200 || at(t, r.body, "priority") != 3.0 {
		t.Errorf("a priority in a list: %d %s", r.status, r.body)
	}
}

func TestTypesOfBodiesAndAnswers(t *testing.T) {
	c := start(t, nil)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(`{"priority":4}`)) // into memory: no error
	z.Close()
	path := base + "/apps/" + c.submit("alice", "a", "") + "/priority?user.name=alice"
	for _, call := range []struct {
		body   string
		head   []string
		status int
	}{
		{`{"priority":1}`, []string{"Content-Type", "Application/JSON; charset=UTF-8"}, 200},
		{`<applicationpriority><priority>2</priority></applicationpriority>`, []string{"Content-Type", "TEXT/XML"}, 200},
		{packed.String(), []string{"Content-Type", "application/json", "Content-Encoding", "GZip"}, 200},
		{`{"priority":1}`, []string{"Content-Type", "application/notjson"}, 415},
		{`{"priority":1}`, []string{"Content-Type", "application/json; charset=koi8-r"}, 415},
		{`{"priority":1}`, []string{"Content-Type", "application/json", "Content-Encoding", "br"}, 415},
		{"{\"priority\":\"\xff\"}", []string{"Content-Type", "application/json"}, 400},
	} {
		if r := c.call("PUT", path, call.body, call.head...); r.status != call.status {
			t.Errorf("%q as %v: %d %s", call.body, call.head, r.status, r.body)
		}
	}
	for accept, want := range map[string]string{
		"APPLICATION/XML": "application/xml", "application/xml;q=0, */*": "application/json",
		"application/json;q=0.1, application/xml": "application/xml",
		"application/xml;q=0.1, application/json": "application/json",
	} {
		if r := c.call("GET", path, "", "Accept", accept); !strings.HasPrefix(r.head.Get("Content-Type"), want) {
			t.Errorf("Accept: %s: %s", accept, r.head.Get("Content-Type"))
		}
	}
}
