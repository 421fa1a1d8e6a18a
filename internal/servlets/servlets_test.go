// SPDX-License-Identifier: Apache-2.0

package servlets_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/servlets"
	"github.com/go-chi/chi/v5"
)

// site is a web port with the pages, and its log's level.
type site struct {
	*testing.T
	web   string
	level string
}

func newSite(t *testing.T, c servlets.Config) *site {
	s := &site{T: t, level: "info"}
	c.Service, c.Started = "Router", time.Now()
	c.Level, c.SetLevel = func() string { return s.level }, func(name string) error { s.level = name; return nil }
	mux := chi.NewRouter()
	servlets.Mount(mux, c)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.web = server.URL
	return s
}

func (s *site) call(method, path string) (*http.Response, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.web+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res, string(body)
}

func TestPagesAnswerGetHeadAndOptions(t *testing.T) {
	s := newSite(t, servlets.Config{})
	for path, kind := range map[string]string{
		"/conf": "text/xml;charset=utf-8", "/jmx": "application/json; charset=utf8", "/stacks": "text/plain; charset=UTF-8",
		"/logLevel": "text/html;charset=utf-8", "/isActive": "text/plain;charset=utf-8",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			res, body := s.call(method, path)
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != kind || (body == "") != (method == "HEAD") {
				t.Errorf("%s %s: %s %s, %d bytes", method, path, res.Status, res.Header.Get("Content-Type"), len(body))
			}
		}
		if res, _ := s.call("OPTIONS", path); res.StatusCode != 200 || res.Header.Get("Allow") != "OPTIONS,GET,HEAD" {
			t.Errorf("OPTIONS %s: %s, Allow %q", path, res.Status, res.Header.Get("Allow"))
		}
		if res, _ := s.call("POST", path); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %s", path, res.Status)
		}
	}
}

// The level is changed by administrators alone; the other pages are everybody's
// unless they were kept for them too.
func TestPagesCheckAccess(t *testing.T) {
	admin := func(user string) bool { return user == "ann" }
	for _, c := range []struct {
		adminsOnly bool
		query      string
		seen       []string
	}{
		{false, "", []string{"/conf", "/isActive", "/jmx", "/stacks"}},
		{false, "?user.name=bob", []string{"/conf", "/isActive", "/jmx", "/stacks"}},
		{false, "?user.name=ann", []string{"/conf", "/isActive", "/jmx", "/logLevel", "/stacks"}},
		{true, "?user.name=bob", []string{"/isActive"}},
		{true, "?user.name=ann", []string{"/conf", "/isActive", "/jmx", "/logLevel", "/stacks"}},
	} {
		s := newSite(t, servlets.Config{Administers: admin, AdminsOnly: c.adminsOnly})
		var seen []string
		for _, path := range []string{"/conf", "/isActive", "/jmx", "/logLevel", "/stacks"} {
			res, body := s.call("GET", path+c.query)
			if res.StatusCode == http.StatusOK {
				seen = append(seen, path)
			} else if res.StatusCode != http.StatusForbidden || !strings.Contains(body, "authorized to access this page") {
				t.Errorf("%s%s: %s %s", path, c.query, res.Status, body)
			}
		}
		if !slices.Equal(seen, c.seen) {
			t.Errorf("%q with adminsOnly=%v sees %v, not %v", c.query, c.adminsOnly, seen, c.seen)
		}
	}
}

func TestLogsPageNamesThePlaceOfTheLog(t *testing.T) {
	s := newSite(t, servlets.Config{
		Administers: func(user string) bool { return user == "ann" },
		Log:         func() string { return "The log is at home." },
	})
	for _, path := range []string{"/logs", "/logs/", "/logs/rm.log"} {
		res, body := s.call("GET", path+"?user.name=ann")
		if res.StatusCode != http.StatusNotFound || body != "The log is at home. There are no log files to list here.\n" {
			t.Errorf("%s: %s %q", path, res.Status, body)
		}
		if res, body := s.call("GET", path+"?user.name=bob"); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s for a user: %s %q", path, res.Status, body)
		}
	}
}

// `yarn daemonlog` prints the lines with the marker, without the text between < and >.
func TestLogLevelIsReportedAndSet(t *testing.T) {
	s := newSite(t, servlets.Config{})
	printed := func(query url.Values) string {
		_, body := s.call("GET", "/logLevel?"+query.Encode())
		var out strings.Builder
		for line := range strings.SplitSeq(body, "\n") {
			if strings.HasPrefix(line, "<!-- OUTPUT -->") {
				out.WriteString(regexp.MustCompile("<[^>]*>").ReplaceAllString(line, "") + "\n")
			}
		}
		return out.String()
	}
	if got := printed(url.Values{"log": {"a"}}); !strings.HasSuffix(got, "\nEffective Level: INFO\n") {
		t.Errorf("asked: %s", got)
	}
	if got := printed(url.Values{"log": {"a"}, "level": {"TRACE"}}); s.level != "debug" ||
		!strings.HasSuffix(got, "Setting Level to DEBUG ...\nEffective Level: DEBUG\n") {
		t.Errorf("set: %s, %s", s.level, got)
	}
	if got := printed(url.Values{"log": {"a"}, "level": {"loud"}}); s.level != "debug" || !strings.Contains(got, "Bad Level : loud\n") {
		t.Errorf("a level that is none: %s, %s", s.level, got)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.web+"/logLevel?log=a&level=ERROR", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden || s.level != "debug" {
		t.Errorf("a page of another site sets the level: %s, %s", res.Status, s.level)
	}
	if _, body := s.call("GET", "/logLevel?log="+url.QueryEscape("<script>")); strings.Contains(body, "<script>") {
		t.Error("what was asked is in the page as it came")
	}
}

func TestSettingsAreReported(t *testing.T) {
	s := newSite(t, servlets.Config{Properties: func() []servlets.Property {
		return []servlets.Property{{Name: "a", Value: "<1>", Source: "yarn-site.xml"}, {Name: "b", Value: "x & y", Final: true}}
	}})
	var doc struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
			Final bool   `xml:"final"`
		} `xml:"property"`
	}
	_, body := s.call("GET", "/conf")
	if err := xml.Unmarshal([]byte(body), &doc); err != nil || len(doc.Property) != 2 || doc.Property[0].Value != "<1>" || !doc.Property[1].Final {
		t.Errorf("%v: %+v in %s", err, doc, body)
	}
	if _, body := s.call("GET", "/conf?format=json&name=b"); body != `{"property":{"key":"b","value":"x & y","isFinal":true,"resource":""}}` {
		t.Errorf("one key: %s", body)
	}
	if res, _ := s.call("GET", "/conf?name=c"); res.StatusCode != http.StatusNotFound {
		t.Errorf("a key that is not there: %s", res.Status)
	}
}

func TestBeansOfTheDaemonAndOfItsProcess(t *testing.T) {
	var failed error
	s := newSite(t, servlets.Config{Beans: func(*http.Request) ([]servlets.Bean, error) {
		b := servlets.Metrics("Router", "RouterMetrics", "router")
		b.Set("Count", 7)
		b.Set("Share", 1.0)
		return []servlets.Bean{b}, failed
	}})
	var doc struct{ Beans []map[string]any }
	_, body := s.call("GET", "/jmx?qry=Hadoop:service=Router,*")
	if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Beans) != 2 || doc.Beans[0]["Count"] != 7.0 ||
		doc.Beans[1]["tag.ProcessName"] != "Router" || doc.Beans[1]["ThreadsWaiting"].(float64) < 1 ||
		doc.Beans[1]["ThreadsRunnable"].(float64) < 1 || !strings.Contains(body, `"Share" : 1.0`) {
		t.Errorf("%v: %s", err, body)
	}
	if _, body := s.call("GET", "/jmx?get=nonsense"); !strings.Contains(body, "query format is not as expected") {
		t.Errorf("nonsense: %s", body)
	}
	failed = errors.New("stopping")
	if res, _ := s.call("GET", "/jmx"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a daemon that does not answer: %s", res.Status)
	}
}
