// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// reportCall is a request for an application's document. A reply without headers was made here.
type reportCall struct {
	*request
	h   *Handler
	w   http.ResponseWriter
	r   *http.Request
	app creel.ApplicationID
}

var _ server.ReportCall[reply] = (*reportCall)(nil)

// report serves an application's document.
func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	app, q, ok := aboutApp(w, r)
	if !ok {
		return
	}
	if q.method != http.MethodGet {
		h.atHome(w, r, app, q)
		return
	}
	answer, err := server.Report(r.Context(), h.server, app, q.user, server.REST, &reportCall{q, h, w, r, app})
	switch {
	case err != nil:
		fail(w, r, notFoundText(err, app))
	case answer.head == nil:
		write(w, r, http.StatusOK, answer.body)
	default:
		pass(w, r, answer)
	}
}

// AtHome implements server.ReportCall.
func (c *reportCall) AtHome(ctx context.Context, home *remote.Member) (reply, error) {
	return c.at(ctx, home)
}

var errNoReport = errors.New("its answer has no report")

// UAM implements server.ReportCall. The body is the report itself, as JSON.
func (c *reportCall) UAM(ctx context.Context, m *remote.Member, id creel.ApplicationID) (reply, error) {
	path, head := appPath(id)+"?"+c.r.URL.RawQuery, forwardHeaders(c.r, "application/json")
	doc, _, err := m.Web(ctx, remote.Read, http.MethodGet, path, c.user, head, nil)
	report := rawjson.Get(doc, "app")
	if err == nil && report == nil {
		err = errNoReport
	}
	return reply{body: report}, err
}

// Absent implements server.ReportCall.
func (*reportCall) Absent(err error) bool { return notFound(err) }

// Facts implements server.ReportCall. It reads the first occurrence of two fields.
func (*reportCall) Facts(own reply) (f server.ReportFacts) {
	if own.status != http.StatusOK {
		return f
	}
	if state, err := creel.ParseApplicationState(textIn(own.body, "state")); err == nil {
		f.State = state
	}
	f.Logs = creel.ParseLogAggregationStatus(textIn(own.body, "logAggregationStatus"))
	return f
}

// IsUAM implements server.ReportCall.
func (*reportCall) IsUAM(report reply) bool { return isUAM(report.body) }

// Join implements server.ReportCall. Home's answer may be XML, while UAMs' are JSON.
func (c *reportCall) Join(ctx context.Context, own router.Part[reply], uams, without []router.Part[reply]) reply {
	alone := own.Value
	alone.body = ofFederation(alone.body, c.h.server.Share(own.Member))
	if len(uams) == 0 && len(without) == 0 {
		return alone
	}
	report := rawjson.Get(own.Value.body, "app")
	if report == nil {
		m, err := c.h.server.Member(own.Member)
		if err != nil {
			return alone
		}
		again, err := c.UAM(ctx, m, c.app)
		if err != nil {
			return alone
		}
		report = again.body
	}
	missing := make([]router.MissingMember, len(without))
	for i, p := range without {
		missing[i] = router.MissingMember{Member: p.Member, Reason: p.Err.Error()}
	}
	tellMissing(c.w, missing)
	same := []router.Part[[]byte]{{Member: own.Member, Value: report}}
	for _, p := range uams {
		same = append(same, router.Part[[]byte]{Member: p.Member, Value: p.Value.body})
	}
	for i, p := range same {
		same[i].Value = underApplication(ofFederation(p.Value, c.h.server.Share(p.Member)))
	}
	return reply{body: fmt.Appendf(nil, `{"app":%s}`, c.h.yarn.appFields().Join(same))}
}

// Remembered implements server.ReportCall.
func (*reportCall) Remembered(whole reply) []byte {
	json := strings.HasPrefix(whole.head.Get("Content-Type"), "application/json")
	if whole.head == nil || json && whole.status == http.StatusOK {
		return whole.body
	}
	return nil
}

// Old implements server.ReportCall. A header has the age too.
func (c *reportCall) Old(last server.OldReport) (reply, bool) {
	doc, ok := withDiagnostics(last.Bytes, last.Text)
	if !ok {
		return reply{}, false
	}
	old := router.MissingMember{
		Member: last.Home, Reason: fmt.Sprintf("its last report is %s old", units.Age(last.Age.Seconds())),
	}
	c.w.Header().Set("X-Last-Known-SubClusters", oneLine(old.String()))
	return reply{body: doc}, true
}

// textIn returns the text of a field's first occurrence in a JSON or XML document, "" if there is none.
func textIn(doc []byte, name string) string {
	before, after := `"`+name+`":"`, `"`
	if len(doc) > 0 && doc[0] == '<' {
		before, after = "<"+name+">", "<"
	}
	if _, rest, ok := bytes.Cut(doc, []byte(before)); ok {
		text, _, _ := bytes.Cut(rest, []byte(after))
		return string(text)
	}
	return ""
}

// appPath returns the path of an application's report.
func appPath(id creel.ApplicationID) string { return base + "/apps/" + id.String() }

// withDiagnostics adds a text before the diagnostics in an application's document.
func withDiagnostics(doc []byte, words string) ([]byte, bool) {
	var outer, inner map[string]json.RawMessage
	if json.Unmarshal(doc, &outer) != nil || json.Unmarshal(outer["app"], &inner) != nil {
		return nil, false
	}
	said := rawjson.Text(inner["diagnostics"])
	var err error
	if inner["diagnostics"], err = json.Marshal(words + said); err == nil {
		if outer["app"], err = json.Marshal(inner); err == nil {
			doc, err = json.Marshal(outer)
		}
	}
	return doc, err == nil
}
