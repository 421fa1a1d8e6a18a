// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

var updateProblems = flag.Bool("update-codes", false, "rewrite "+problemsFile)

const problemsFile = "../../docs/reference/error-codes.md"

// TestEachProblemCodeHasItsSection generates docs/reference/error-codes.md.
func TestEachProblemCodeHasItsSection(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Error codes of the HTTP API

Look up the ` + "`code`" + ` of an error of ` + "`/api/v1`" + `, its cause and a remedy. Codes are stable; texts may change.

` + "```json" + `
{"type": "` + problemPage + `#conflict", "title": "conflict", "status": 409,
 "detail": "…", "code": "conflict", "request_id": "…"}
` + "```" + `

` + "`request_id`" + ` is the request's header ` + "`X-Request-Id`" + `, or made by the router. It is in the answer's header and in the audit log.
` + "`creel VERB -v`" + ` prints both, ` + "`creel VERB -o json`" + ` has both in its error document.

Made from router/rest: ` + "`go test ./router/rest -run TestEachProblemCodeHasItsSection -update-codes`" + `.
`)
	var codes []string
	for _, p := range problemKinds {
		if p.cause == "" || p.remedy == "" || p.title == "" || slices.Contains(codes, p.code) {
			t.Errorf("%q lacks a title, a cause or a remedy, or stands twice", p.code)
		}
		codes = append(codes, p.code)
		fmt.Fprintf(&b, "\n## %s\n\nHTTP %d. %s %s\n", p.code, p.status, p.cause, p.remedy)
	}
	if *updateProblems {
		if err := os.WriteFile(problemsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(problemsFile); err != nil || string(page) != b.String() {
		t.Errorf("%s differs from the table (%v): run this test with -update-codes", problemsFile, err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct {
						Code struct {
							Enum []string `json:"enum"`
						} `json:"code"`
					} `json:"properties"`
				}
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	if described := doc.Components.Schemas.Problem.Properties.Code.Enum; !slices.Equal(described, codes) {
		t.Errorf("openapi.json has the codes %q, the table %q", described, codes)
	}
}

func TestProblemHasCodeOfItsError(t *testing.T) {
	for code, err := range map[string]error{
		"conflict":             errors.Join(errors.New("of another kind"), creel.ErrStale),
		"invalid_request":      fmt.Errorf("ended: %w", creel.ErrEnded),
		"subcluster_not_found": &creel.Error{Kind: creel.ErrSubclusterNotFound, What: "it is gone"},
		"unavailable":          errors.New("of no kind"),
	} {
		w := httptest.NewRecorder()
		problemOf(w, err)
		var doc ProblemDoc
		if json.Unmarshal(w.Body.Bytes(), &doc) != nil || doc.Code != code || doc.Status != w.Code ||
			doc.Type != problemPage+"#"+code || doc.Detail != err.Error() {
			t.Errorf("%v: %s, want the code %s", err, w.Body, code)
		}
	}
}

func TestRequestIDIsKeptOrReplaced(t *testing.T) {
	h := identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem(w, noSuchPath, r.Header.Get(requestHeader))
	}))
	made := ""
	for sent, kept := range map[string]bool{
		"abc-1.2": true, "": false, "two\nlines": false, strings.Repeat("a", 200): false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(requestHeader, sent)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var doc ProblemDoc
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		id := doc.RequestID
		if (id == sent) != kept || id == made || id != doc.Detail || id != w.Header().Get(requestHeader) {
			t.Errorf("%q: the body has %q, the header %q", sent, id, w.Header().Get(requestHeader))
		}
		if !kept {
			made = id
		}
	}
}
