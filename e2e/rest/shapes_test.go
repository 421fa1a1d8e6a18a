// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/propertytest"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

//go:embed testdata/shapes-known.txt
var shapesKnownLines string

// A shape is a request in a form that some program sends. {ID} is the id of a new application, {NEW} of one that was
// just submitted.
type shape struct {
	name, method, path, body string
	head                     map[string]string
	without                  string // the body without the value in question
	encode                   func(string) string
	effect                   bool // whether the application's document shows the value
}

// The kinds of difference between shapes, besides those of fields.
const (
	refused = "refused" // Hadoop drops the value and goes on; creel rejects the request
	taken   = "taken"   // Hadoop takes the value; creel rejects the request
	read    = "read"    // creel reads what Hadoop rejects
	fault   = "fault"   // Hadoop answers that it failed, creel that the request is wrong
)

// submitted are the fields of an application that requests set.
var submitted = []string{
	".app.name", ".app.queue", ".app.applicationType", ".app.applicationTags", ".app.priority", ".app.unmanagedApplication",
	".app.amNodeLabelExpression", ".app.appNodeLabelExpression", ".app.resourceRequests", ".app.state", ".app.timeouts",
}

// raw sends a request and returns the class of its status; the exact status and the type if it reads a document.
func (s *configuredSystem) raw(method, path, body string, head map[string]string) facts {
	s.t.Helper()
	url := "http://" + s.Web + "/ws/v1/cluster/" + path
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range head {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	f := facts{"STATUS": fmt.Sprintf("%dxx", res.StatusCode/100), "text": string(text)}
	if method == http.MethodGet {
		f["STATUS"] = strconv.Itoa(res.StatusCode)
		f["TYPE"], _, _ = strings.Cut(res.Header.Get("Content-Type"), ";")
	}
	return f
}

// send sends a shape with a body. It also returns the id of the application in question.
func (s *configuredSystem) send(q shape, body string) (f facts, id string) {
	s.t.Helper()
	if all := q.path + body; strings.Contains(all, "{ID}") || strings.Contains(all, "{NEW}") {
		new := s.raw("POST", "apps/new-application?user.name=alice", "{}", jsonHead)
		var doc struct {
			ID string `json:"application-id"`
		}
		if err := json.Unmarshal([]byte(new["text"]), &doc); err != nil || doc.ID == "" {
			s.t.Fatalf("%s: new-application: %v", s.name, new)
		}
		id = doc.ID
		if strings.Contains(all, "{NEW}") {
			first := strings.ReplaceAll(submissionOf(`"unmanaged-AM":true,"priority":1,`+launch), "{ID}", id)
			if f := s.raw("POST", "apps?user.name=alice", first, jsonHead); f["STATUS"] != "2xx" {
				s.t.Fatalf("%s: %v", s.name, f)
			}
			app, err := creel.ParseApplicationID(id)
			if err != nil {
				s.t.Fatal(err)
			}
			s.until(id+" waits for its AM", func() bool { // Hadoop changes nothing before
				return s.attemptState("alice", app) == pb.YarnApplicationAttemptStateProto_APP_ATTEMPT_LAUNCHED
			})
		}
	}
	ids := strings.NewReplacer("{ID}", id, "{NEW}", id)
	if body = ids.Replace(body); q.encode != nil {
		body = q.encode(body)
	}
	f = s.raw(q.method, ids.Replace(q.path), body, q.head)
	if dir := os.Getenv("CREEL_REST_DUMP"); dir != "" { // to inspect the answers
		os.WriteFile(filepath.Join(dir, q.name+"."+s.name), []byte(body+"\n"+f["STATUS"]+"\n"+f["text"]), 0o600)
	}
	delete(f, "text")
	return f, id
}

// effect returns the fields of an application that requests set.
func (s *configuredSystem) effect(id string) facts {
	s.t.Helper()
	all := s.answer(s.t, request{name: "effect", method: "GET", path: "/ws/v1/cluster/apps/" + id}, "application/json")
	out := facts{"STATUS": all["STATUS"]}
	for path, value := range all {
		if !slices.ContainsFunc(submitted, func(p string) bool { return strings.HasPrefix(path, p) }) ||
			strings.HasSuffix(path, ".remainingTimeInSeconds") {
			continue
		}
		if path == ".app.priority" && value[0] == '-' {
			value = "0" // Hadoop's for none, which creel reads as the queue's default
		}
		out[path] = value
		// A time of the request itself is compared as it is; others are relative to the start, which differs.
		if at, err := time.Parse(`"2006-01-02T15:04:05.999-0700"`, value); err == nil && at.Year() != 2099 {
			begun, err := strconv.ParseInt(all[".app.startedTime"], 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			out[path] = fmt.Sprintf("in %v", at.Sub(time.UnixMilli(begun)).Round(10*time.Second))
		}
	}
	return out
}

// ask sends a shape to both, and compares the class of their answers. If both accept it, it compares the effect. If
// creel alone rejects it, Hadoop's effect must be that of a document without the value.
func (d *duo) ask(q shape) {
	d.t.Helper()
	a, theirID := d.theirs.send(q, q.body)
	b, ourID := d.ours.send(q, q.body)
	d.fields++
	where := q.name + "."
	var first, second func() facts
	switch theirs, ours := a["STATUS"][0], b["STATUS"][0]; {
	case theirs == '2' && ours == '4' && excused(d.known, taken, q.name),
		theirs != '2' && ours == '2' && excused(d.known, read, q.name),
		theirs == '5' && ours == '4' && excused(d.known, fault, q.name):
		return
	case theirs == '2' && ours == '4' && excused(d.known, refused, q.name):
		if q.without == "" || !q.effect {
			return
		}
		where += "dropped"
		b = a
		_, without := d.theirs.send(q, q.without)
		first = func() facts { return d.theirs.effect(without) }
		second = func() facts { return d.theirs.effect(theirID) }
	case theirs == '2' && ours == '2' && q.effect:
		first = func() facts { return d.theirs.effect(theirID) }
		second = func() facts { return d.ours.effect(ourID) }
	}
	compare(d.t, where, d.file, d.known, "Hadoop", a, b)
	if first == nil {
		return
	}
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if a, b = first(), second(); len(differences(d.known, where, a, b)) == 0 || time.Now().After(until) {
			break
		}
	}
	compare(d.t, where, d.file, d.known, "Hadoop", a, b)
	d.fields += len(a)
}

var jsonHead = map[string]string{"Content-Type": "application/json", "Accept": "application/json"}

const launch = `"am-container-spec":{"commands":{"command":"true"}}`

func submissionOf(fields string) string {
	return `{"application-id":"{ID}","application-name":"a",` + fields + `}`
}

func fileOf(fields string) string {
	return `"am-container-spec":{"commands":{"command":"true"},"local-resources":{"entry":[{"key":"a","value":` +
		`{"resource":"file:///a",` + fields + `}}]}}`
}

// A place is a field of a submission that has a number or a flag.
type place struct {
	name, usual string
	json        string // the fields of the submission, with VALUE
	effect      bool
}

var places = []place{
	{"priority", "3", `"priority":VALUE,` + launch, true},
	{"memory", "512", `"resource":{"memory":VALUE,"vCores":1},` + launch, true},
	{"cores", "2", `"resource":{"memory":512,"vCores":VALUE},` + launch, true},
	{"unmanaged", "true", `"unmanaged-AM":VALUE,` + launch, true},
	{"attempts", "2", `"max-app-attempts":VALUE,` + launch, false},
	{"interval", "60000", `"attempt-failures-validity-interval":VALUE,` + launch, false},
	{"lifetime", "3600", `"application-timeouts":{"entry":[{"key":"LIFETIME","value":VALUE}]},` + launch, true},
	{"size", "7", fileOf(`"type":"FILE","visibility":"PUBLIC","size":VALUE,"timestamp":1`), false},
	{"timestamp", "7", fileOf(`"type":"FILE","visibility":"PUBLIC","size":1,"timestamp":VALUE`), false},
	{"keep", "true", `"keep-containers-across-application-attempts":VALUE,` + launch, false},
	{"cancel", "false", `"cancel-tokens-when-complete":VALUE,` + launch, false},
}

// numberForms are ways to write a value N, or another in its place.
var numberForms = []struct{ name, json string }{
	{"plain", `N`}, {"text", `"N"`}, {"blanks", `" N "`}, {"newline", `"N\n"`}, {"list", `[N]`}, {"list-text", `["N"]`},
	{"two", `[N,N1]`}, {"nested", `[[N]]`}, {"none", `[]`}, {"plus", `"+N"`}, {"minus", `-N`}, {"minus-text", `"-N"`},
	{"zero", `0`}, {"zeros", `"00N"`}, {"fraction", `N.5`}, {"fraction-text", `"N.5"`}, {"whole-fraction", `N.0`},
	{"exponent", `Ne0`}, {"exponent-text", `"Ne0"`}, {"over32", `2147483648`}, {"over64", `9223372036854775808`},
	{"under64", `-9223372036854775809`}, {"null", `null`}, {"null-text", `"null"`}, {"boolean", `true`},
	{"no", `false`}, {"boolean-text", `"true"`}, {"boolean-capitals", `"True"`}, {"boolean-blanks", `" true "`},
	{"empty", `""`}, {"blank", `" "`}, {"word", `"half"`}, {"object", `{"a":N}`}, {"hex", `"0x10"`}, {"unit", `"N MB"`},
	{"underscore", `"1_N"`}, {"leading-zero", `0N`}, {"bare", `half`}, {"arabic", `"٥"`},
}

func numberShape(p place, form, value string) shape {
	return shape{
		name: "numbers." + p.name + "." + form, method: "POST", path: "apps?user.name=alice", head: jsonHead, effect: p.effect,
		body:    submissionOf(strings.ReplaceAll(p.json, "VALUE", strings.ReplaceAll(value, "N", p.usual))),
		without: submissionOf(strings.ReplaceAll(p.json, "VALUE", "[]")),
	}
}

// numberShapes are all forms in the places with a visible effect, and every fourth form in the others.
func numberShapes() (out []shape) {
	for i, p := range places {
		for j, f := range numberForms {
			if p.effect && p.name != "lifetime" || (i+j)%4 == 0 {
				out = append(out, numberShape(p, f.name, f.json))
			}
		}
	}
	return out
}

// wordShapes have words from lists, and ids.
func wordShapes() (out []shape) {
	submit := func(name, fields string) {
		out = append(out, shape{
			name: "words." + name, method: "POST", path: "apps?user.name=alice", head: jsonHead, effect: true,
			body: submissionOf(fields),
		})
	}
	for name, value := range map[string]string{
		"none": `null`, "empty": `""`, "usual": `"SPARK"`, "lower": `"spark"`, "long": `"` + strings.Repeat("é", 25) + `"`,
		"blanks": `" SPARK "`, "number": `7`, "list": `["SPARK"]`, "accents": `"é"`, "flag": `true`, "object": `{"a":"b"}`,
	} {
		submit("type."+name, `"application-type":`+value+","+launch)
		submit("name."+name, `"application-name":`+value+","+launch)
	}
	for name, value := range map[string]string{
		"usual": `"PUBLIC"`, "lower": `"public"`, "blanks": `" PUBLIC "`, "unknown": `"WORLD"`, "none": `null`, "empty": `""`,
		"number": `1`, "list": `["PUBLIC"]`,
	} {
		submit("visibility."+name, fileOf(`"type":"FILE","size":1,"timestamp":1,"visibility":`+value))
		submit("kind."+name, fileOf(`"visibility":"PUBLIC","size":1,"timestamp":1,"type":`+
			strings.ReplaceAll(value, "PUBLIC", "ARCHIVE")))
	}
	for name, value := range map[string]string{
		"view": "VIEW_APP", "lower": "view_app", "unknown": "EDIT_APP", "empty": "", "blanks": " VIEW_APP ",
	} {
		submit("acl."+name, `"am-container-spec":{"commands":{"command":"true"},"application-acls":{"entry":[{"key":"`+value+
			`","value":"bob"}]}}`)
	}
	for name, value := range map[string]string{
		"class":   `"org.apache.hadoop.yarn.server.nodemanager.containermanager.logaggregation.AllContainerLogAggregationPolicy"`,
		"unknown": `"some.Policy"`, "number": `7`,
	} {
		submit("logs."+name, `"log-aggregation-context":{"log-aggregation-policy-class-name":`+value+"},"+launch)
	}
	for name, value := range map[string]string{
		"usual": "reservation_1_1", "short": "reservation_1", "long": "reservation_1_1_1", "letters": "reservation_x_1",
		"blanks": " reservation_1_1", "other": "application_1_1", "capitals": "RESERVATION_1_1", "word": "tomorrow",
		"large": "reservation_99999999999999999999_1", "minus": "reservation_-1_1",
	} {
		submit("reservation."+name, `"reservation-id":"`+value+`",`+launch)
	}
	for name, value := range map[string]string{
		"short": "application_1", "four": "application_1_1_1", "letters": "application_x_1", "blanks": " application_1_7 ",
		"capitals": "APPLICATION_1_7", "job": "job_1_7", "large": "application_99999999999999999999_1", "empty": "",
		"large2": "application_1_99999999999", "minus": "application_-1_7", "plus": "application_+1_7", "unpadded": "application_1_8",
		"padded": "application_1_000009", "underscores": "application__1_7", "word": "mine", "last": "application_1_",
	} {
		if escaped := url.PathEscape(value); escaped != "" {
			for _, more := range []string{"", "/state", "/appattempts"} {
				out = append(out, shape{name: "ids.app" + more + "." + name, method: "GET", path: "apps/" + escaped + more, head: jsonHead})
			}
			out = append(out, shape{name: "ids.kill." + name, method: "PUT", path: "apps/" + escaped + "/state", head: jsonHead,
				body: `{"state":"KILLED"}`})
		}
		if name != "unpadded" && name != "padded" {
			out = append(out, shape{name: "ids.submit." + name, method: "POST", path: "apps?user.name=alice", head: jsonHead,
				body: `{"application-id":"` + value + `","application-name":"a",` + launch + `}`})
		}
	}
	change := func(name, path, body string) {
		out = append(out, shape{name: "words." + name, method: "PUT", path: "apps/{NEW}/" + path + "?user.name=alice",
			head: jsonHead, body: body, effect: true})
	}
	for name, value := range map[string]string{
		"usual": `"KILLED"`, "lower": `"killed"`, "blanks": `" KILLED "`, "other": `"FINISHED"`, "unknown": `"DEAD"`,
		"number": `7`, "none": `null`, "list": `["KILLED"]`, "empty": `""`, "same": `"ACCEPTED"`, "object": `{"a":"KILLED"}`,
	} {
		change("state."+name, "state", `{"state":`+value+`}`)
	}
	for name, value := range map[string]string{
		"usual": `"other"`, "path": `"root.other"`, "blanks": `" other "`, "capitals": `"OTHER"`, "dots": `"root..other"`,
		"number": `7`, "none": `null`, "list": `["other"]`, "empty": `""`,
	} {
		change("move."+name, "queue", `{"queue":`+value+`}`)
		submit("queue."+name, `"queue":`+value+","+launch)
	}
	for _, f := range numberForms {
		change("priority."+f.name, "priority", `{"priority":`+strings.ReplaceAll(f.json, "N", "4")+`}`)
		out[len(out)-1].without = `{"priority":0}`
	}
	for name, value := range map[string]string{
		"usual": `"LIFETIME"`, "lower": `"lifetime"`, "blanks": `" LIFETIME "`, "unknown": `"DAYTIME"`, "none": `null`, "list": `["LIFETIME"]`,
	} {
		change("timeout."+name, "timeout", `{"timeout":{"type":`+value+`,"expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	}
	for name, value := range map[string]string{
		"millis": `"2099-01-31T12:00:00.000+0000"`, "seconds": `"2099-01-31T12:00:00+0000"`, "zone": `"2099-01-31T12:00:00.000Z"`,
		"colon": `"2099-01-31T12:00:00.000+00:00"`, "number": `4073544000000`, "day": `"2099-01-31"`, "none": `null`,
		"blanks": `" 2099-01-31T12:00:00.000+0000 "`, "other": `"2099-01-31T13:00:00.000+0100"`,
	} {
		change("expiry."+name, "timeout", `{"timeout":{"type":"LIFETIME","expiryTime":`+value+`}}`)
	}
	slices.SortFunc(out, func(a, b shape) int { return strings.Compare(a.name, b.name) })
	return out
}

// patience bounds the wait for an effect. Hadoop changes an application in threads of its own.
const patience = 20 * time.Second

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text)) // into memory: no error
	z.Close()
	return b.String()
}

func latin1(text string) string {
	var b []byte
	for _, r := range text {
		b = append(b, byte(r))
	}
	return string(b)
}

// utf16be writes a text in two bytes for each unit, the high one first.
func utf16be(text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return string(b)
}

func utf16le(text string) string {
	b := []byte(utf16be(text))
	for i := 0; i < len(b); i += 2 {
		b[i], b[i+1] = b[i+1], b[i]
	}
	return string(b)
}

func acceptShape(name, accept string) shape {
	return shape{name: "media.accept." + name, method: "GET", path: "info", head: map[string]string{"Accept": accept}}
}

// mediaShapes have types, charsets and packings of bodies and answers.
func mediaShapes() (out []shape) {
	for i, accept := range []string{
		"*/*", "application/json", "application/xml", "APPLICATION/XML", "application/xml;q=0.5, application/json",
		"application/json;q=0.4, application/xml;q=0.6", "application/xml;q=0, */*", "application/json;q=0, */*",
		"application/json;q=0", "text/plain", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"application/*", "application/*;q=0.5, application/xml;q=0.4", "application/xml; charset=utf-16", "text/xml",
		"application/xml;q=0.001", "application/json, application/xml", "application/xml, application/json",
		"application/xml;Q=1, application/json;Q=0.9", "application/jsonp", "application/json;q=0.5,application/xml;q=0.5",
		"*/*, application/xml", "*/*;q=0.1, application/xml;q=0.1",
	} {
		out = append(out, acceptShape(strconv.Itoa(i), accept))
	}
	const doc = `{"application-id":"{ID}","application-name":"é","am-container-spec":{"commands":{"command":"true"}}}`
	const xmlDoc = `<application-submission-context><application-id>{ID}</application-id><application-name>é</application-name>` +
		`<am-container-spec><commands><command>true</command></commands></am-container-spec></application-submission-context>`
	const declared = `<?xml version="1.0" encoding="`
	send := func(name, kind, packing, body string, encode func(string) string) {
		head := map[string]string{"Accept": "application/json"}
		if kind != "" {
			head["Content-Type"] = kind
		}
		if packing != "" {
			head["Content-Encoding"] = packing
		}
		out = append(out, shape{name: "media." + name, method: "POST", path: "apps?user.name=alice", head: head, body: body,
			encode: encode, effect: true})
	}
	const json, xml = "application/json", "application/xml"
	send("json", json, "", doc, nil)
	send("capitals", "Application/JSON", "", doc, nil)
	send("utf8", "application/json;charset=UTF-8", "", doc, nil)
	send("quoted", `application/json; charset="utf-8"`, "", doc, nil)
	send("latin1", "application/json; charset=ISO-8859-1", "", doc, latin1)
	send("latin1-unnamed", json, "", doc, latin1)
	send("utf16", "application/json; charset=UTF-16", "", doc, utf16be)
	send("utf16le", "application/json; charset=UTF-16LE", "", doc, utf16le)
	send("utf16-mark", json, "", "\ufeff"+doc, utf16be)
	send("mark", json, "", "\ufeff"+doc, nil)
	send("koi8", "application/json; charset=koi8-r", "", doc, nil)
	send("no-charset", "application/json; charset=none", "", doc, nil)
	send("text-json", "text/json", "", doc, nil)
	send("xml", xml, "", xmlDoc, nil)
	send("text-xml", "text/xml", "", xmlDoc, nil)
	send("xml-latin1", xml, "", declared+`ISO-8859-1"?>`+xmlDoc, latin1)
	send("xml-utf16", xml, "", "\ufeff"+declared+`UTF-16"?>`+xmlDoc, utf16le)
	send("xml-charset", "application/xml; charset=ISO-8859-1", "", declared+`UTF-8"?>`+xmlDoc, latin1)
	send("xml-mark", xml, "", "\ufeff"+xmlDoc, nil)
	send("gzip", json, "gzip", doc, gzipped)
	send("gzip-capitals", json, "GZIP", doc, gzipped)
	send("x-gzip", json, "x-gzip", doc, gzipped)
	send("not-gzip", json, "gzip", doc, nil)
	send("deflate", json, "deflate", doc, nil)
	send("identity", json, "identity", doc, nil)
	send("plain", "text/plain", "", doc, nil)
	send("none", "", "", doc, nil)
	send("form", "application/x-www-form-urlencoded", "", doc, nil)
	send("json-as-xml", xml, "", doc, nil)
	send("xml-as-json", json, "", xmlDoc, nil)
	send("two", json, "", doc+doc, nil)
	send("trailing", json, "", doc+" x", nil)
	send("blanks", json, "", "\n "+doc+"\n\n", nil)
	send("two-xml", xml, "", xmlDoc+xmlDoc, nil)
	send("trailing-xml", xml, "", xmlDoc+"x", nil)
	send("blanks-xml", xml, "", xmlDoc+"\n\n<!-- end -->", nil)
	send("other-root", xml, "", strings.ReplaceAll(xmlDoc, "application-submission-context", "context"), nil)
	send("root", json, "", `{"application-submission-context":`+doc+`}`, nil)
	send("empty", json, "", "", nil)
	send("null", json, "", "null", nil)
	send("list", json, "", "["+doc+"]", nil)
	send("comment", json, "", "/* a */"+doc, nil)
	send("truncated", json, "", doc[:len(doc)-3], nil)
	send("truncated-xml", xml, "", xmlDoc[:len(xmlDoc)-3], nil)
	send("twice", json, "", strings.Replace(doc, `"application-name":`, `"application-name":"b","application-name":`, 1), nil)
	send("unknown", json, "", strings.Replace(doc, `"application-name":`, `"other":{"a":[1]},"application-name":`, 1), nil)
	send("namespace", xml, "", strings.Replace(xmlDoc, "context>", `context xmlns="urn:x">`, 1), nil)
	send("entity", xml, "", `<!DOCTYPE a [<!ENTITY e "é">]>`+strings.Replace(xmlDoc, "é", "&e;", 1), nil)
	send("reference", xml, "", strings.Replace(xmlDoc, "é", "&#233;", 1), nil)
	send("cdata", xml, "", strings.Replace(xmlDoc, "é", "<![CDATA[é]]>", 1), nil)
	return out
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// drawShapes draws requests of all kinds.
func drawShapes(r *rand.Rand, n int) (out []shape) {
	for i := range n {
		name := fmt.Sprintf(".drawn%d", i)
		switch i % 3 {
		case 0:
			p, f := places[r.IntN(len(places))], numberForms[r.IntN(len(numberForms))]
			if p.usual != "true" && p.usual != "false" {
				p.usual = strconv.Itoa(1 + r.IntN(9))
			}
			q := numberShape(p, f.name, f.json)
			q.name += name
			out = append(out, q)
		case 1:
			word := []byte(one(r, "KILLED", "root.other", "application_1_0007", "LIFETIME", "VIEW_APP"))
			for range r.IntN(3) {
				word[r.IntN(len(word))] = one(r, []byte("aZ_.:09-")...)
			}
			field, _ := json.Marshal(string(word)) // cannot fail: a text
			out = append(out, one(r,
				shape{name: "words.state" + name, method: "PUT", path: "apps/{NEW}/state?user.name=alice",
					body: `{"state":` + string(field) + `}`},
				shape{name: "words.move" + name, method: "PUT", path: "apps/{NEW}/queue?user.name=alice",
					body: `{"queue":` + string(field) + `}`},
				shape{name: "words.type" + name, method: "POST", path: "apps?user.name=alice",
					body: submissionOf(`"application-type":` + string(field) + `,` + launch)},
				shape{name: "words.acl" + name, method: "POST", path: "apps?user.name=alice",
					body: submissionOf(`"am-container-spec":{"commands":{"command":"true"},"application-acls":{"entry":[{"key":` +
						string(field) + `,"value":"bob"}]}}`)},
			))
			q := &out[len(out)-1]
			q.head, q.effect = jsonHead, true
		case 2:
			var list []string
			for range 1 + r.IntN(4) {
				list = append(list, one(r, "application/json", "application/xml", "Application/XML", "*/*", "application/*",
					"text/html")+one(r, "", "", ";q=0", ";q=0.3", ";q=0.7", "; q=1.0"))
			}
			if slices.Contains(list, "application/json;q=0") || !slices.ContainsFunc(list, func(part string) bool {
				return !strings.HasPrefix(part, "text/") && !strings.HasSuffix(part, ";q=0")
			}) {
				name = "excluded" + name
			}
			out = append(out, acceptShape(name, strings.Join(list, one(r, ",", ", "))))
		}
	}
	return out
}

// Requests in unusual forms are accepted or rejected by both, with the same effect: names of users, calls without ids,
// and documents over REST.
func TestUnusualRequestsMatchHadoop(t *testing.T) {
	d := startDuo(t, &configuration{}, "testdata/shapes-known.txt", rules(t, shapesKnownLines), hadoop.Conf{})
	t.Run("users", func(t *testing.T) { d.compareCalls(t, (*configuredSystem).userNames) })
	t.Run("ids", func(t *testing.T) { d.compareCalls(t, (*configuredSystem).withoutIDs) })
	drawn := 60
	if propertytest.Searching() {
		drawn = 600
	}
	shapes := slices.Concat(numberShapes(), wordShapes(), mediaShapes(), drawShapes(propertytest.Rand(t), drawn))
	slices.SortFunc(shapes, func(a, b shape) int { return strings.Compare(a.name, b.name) }) // lists are made from maps
	for _, q := range shapes {
		d.ask(q)
	}
	if !propertytest.Searching() {
		unused(t, d.file, d.known)
	}
	t.Logf("%d requests, %d fields compared", len(shapes), d.fields)
}
