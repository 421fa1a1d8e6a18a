// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/certs"
)

// server answers questions, and counts them.
type server struct {
	*httptest.Server
	calls atomic.Int64
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// says is a server's answer.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func open(url string, change func(*Config)) *Authorizer {
	c := Config{
		URL: url, Cluster: "c1", Client: NewClient(nil), Timeout: 5 * time.Second, Keep: time.Minute, Most: 100,
		Groups: func(user string) []string { return []string{user + "s"} },
		Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	return Open(c)
}

// answered asks one question.
func answered(t *testing.T, a *Authorizer, q Question) Answer {
	t.Helper()
	a.Ask([]Question{q})
	answer, known := a.Known(q)
	if !known {
		t.Fatalf("%+v has no answer", q)
	}
	return answer
}

var question = Question{"ann", Submit, "root.prod"}

func TestQuestionIsInputOfPolicy(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var got any
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		want := `map[input:map[action:submit-app cluster:c1 groups:[anns] queue:root.prod user:ann]]`
		if err != nil || fmt.Sprint(got) != want || r.Method != "POST" || r.URL.Path != "/v1/data/yarn/allow" ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer word" {
			t.Errorf("%s %s: %s, %v, %v", r.Method, r.URL, b, r.Header, err)
		}
		io.WriteString(w, `{"result": true}`)
	})
	a := open(s.URL+"/v1/data/yarn/allow", func(c *Config) { c.Token = func() (string, error) { return "word", nil } })
	if _, known := a.Known(question); known {
		t.Error("an answer is known before the question")
	}
	if got := answered(t, a, question); !got.Allowed {
		t.Errorf("%+v", got)
	}
}

// Whatever is no clear answer is not "allowed", and says so.
func TestOnlyClearAnswersAllow(t *testing.T) {
	for text, want := range map[string]Answer{
		`{"result": true}`: {Allowed: true},
		`{"result": false, "decision_id": "4ca6", "metrics": {}}`:    {},
		`{"result": {"allow": true, "reason": "r", "more": 1}}`:      {Allowed: true, Why: "r"},
		`{"result": {"allow": false, "reason": "closed\nat night"}}`: {Why: "closed at night"},
		`{"result": {"allow": false}}`:                               {},
		`{}`:                                                         {Why: "its policy has no result"},
		`{"Result": true}`:                                           {Why: "its policy has no result"},
		`{"result": {"Allow": true}}`:                                {Failed: true, Why: "its result has no boolean named allow"},
		`{"result": {"allow": "true"}}`:                              {Failed: true, Why: "its result has no boolean named allow"},
		`{"result": {"allow": true, "reason": 7}}`:                   {Failed: true, Why: "the reason in its result is no text"},
		`{"result": "true"}`:                                         {Failed: true, Why: "its result is neither a boolean nor an object with allow"},
		`{"result": null}`:                                           {Failed: true, Why: "its result is neither a boolean nor an object with allow"},
		`{"result": [true]}`:                                         {Failed: true, Why: "its result is neither a boolean nor an object with allow"},
		`{"result": 1}`:                                              {Failed: true, Why: "its result is neither a boolean nor an object with allow"},
		`{"result": true`:                                            {Failed: true, Why: "its answer is no JSON object"},
		`{"result": true} {"result": false}`:                         {Failed: true, Why: "its answer is no JSON object"},
		`true`:                                                       {Failed: true, Why: "its answer is no JSON object"},
		`null`:                                                       {Failed: true, Why: "its answer is no JSON object"},
		``:                                                           {Failed: true, Why: "its answer is no JSON object"},
		`{"x": "` + strings.Repeat("x", mostAnswer) + `"}`: {Failed: true, Why: "its answer has more than 65536 bytes"},
	} {
		if got := answered(t, open(serve(t, says(text)).URL, nil), question); got != want {
			t.Errorf("%.60s: %+v, want %+v", text, got, want)
		}
	}
	for name, s := range map[string]http.HandlerFunc{
		"it answered with status 401": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"result": true}`)
		},
		"it answered with status 307": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/other" {
				io.WriteString(w, `{"result": true}`)
				return
			}
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		},
	} {
		if got := answered(t, open(serve(t, s).URL, nil), question); !got.Failed || got.Allowed || got.Why != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnswersAreStoredForTheirTime(t *testing.T) {
	s := serve(t, says(`{"result": true}`))
	a := open(s.URL, func(c *Config) { c.Keep = time.Second })
	for range 3 {
		answered(t, a, question)
	}
	other := question
	other.Action = Administer
	answered(t, a, other)
	if n := s.calls.Load(); n != 2 || a.Calls(Allowed) != 2 {
		t.Errorf("%d calls for two questions, counted %d", n, a.Calls(Allowed))
	}
	time.Sleep(time.Second + 10*time.Millisecond)
	if _, known := a.Known(question); known {
		t.Error("an answer is used after its time")
	}
	answered(t, a, question)
	a.Forget()
	if _, known := a.Known(question); known {
		t.Error("a forgotten answer is used")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := serve(t, says(`{"result": true}`))
	a := open(s.URL, func(c *Config) { c.Most = 10 })
	var all []Question
	for i := range 50 {
		all = append(all, Question{fmt.Sprint("user", i), Submit, "root.a"})
	}
	a.Ask(all)
	if s.calls.Load() != 50 || len(a.known) != 10 || len(a.running) != 0 {
		t.Errorf("%d calls, %d stored, %d running", s.calls.Load(), len(a.known), len(a.running))
	}
}

// Equal questions of many callers are one call. An answer to a question from before Forget is not used.
func TestEqualQuestionsAreOneCall(t *testing.T) {
	begun, answer := make(chan struct{}, 8), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-answer
		io.WriteString(w, `{"result": true}`)
	})
	a := open(s.URL, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { a.Ask([]Question{question, question}) })
	}
	<-begun
	if s.calls.Load() != 1 {
		t.Errorf("%d calls at once", s.calls.Load())
	}
	a.Forget()
	close(answer)
	all.Wait()
	if _, known := a.Known(question); known && s.calls.Load() == 1 {
		t.Error("an answer from before Forget is used")
	}
}

// While the server is away callers wait for one timeout in a second together, and then learn the reason at once.
func TestAwayServerIsAskedOncePerSecond(t *testing.T) {
	stall := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stall:
		case <-r.Context().Done():
		}
		io.WriteString(w, `{"result": true}`)
	})
	a := open(s.URL, func(c *Config) { c.Timeout = 50 * time.Millisecond })
	for i := range 20 {
		got := answered(t, a, Question{fmt.Sprint("user", i), Submit, "root.a"})
		if !got.Failed || got.Allowed || got.Why != "no answer within 50ms" {
			t.Errorf("%+v", got)
		}
	}
	if n := s.calls.Load(); n != 1 || !a.Failing() || a.Calls(Failed) != 1 {
		t.Errorf("%d calls, counted %d, failing %v", n, a.Calls(Failed), a.Failing())
	}
	close(stall)
	time.Sleep(retryAfter)
	if got := answered(t, a, question); !got.Allowed || a.Failing() {
		t.Errorf("after the outage: %+v, failing %v", got, a.Failing())
	}
}

func TestNoServerIsFailure(t *testing.T) {
	s := serve(t, says(`{"result": true}`))
	s.Close()
	if got := answered(t, open(s.URL, nil), question); !got.Failed || !strings.Contains(got.Why, "connection refused") {
		t.Errorf("%+v", got)
	}
	no := func(c *Config) { c.Token = func() (string, error) { return "", errors.New("no token") } }
	if got := answered(t, open(s.URL, no), question); !got.Failed || got.Why != "no token" {
		t.Errorf("%+v", got)
	}
}

// A server whose certificate the configured authorities have not signed decides nothing.
func TestServerProvesItself(t *testing.T) {
	s := httptest.NewTLSServer(says(`{"result": true}`))
	defer s.Close()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if got := answered(t, open(s.URL, nil), question); !got.Failed || got.Allowed || !strings.Contains(got.Why, "certificate") {
		t.Errorf("an unknown certificate: %+v", got)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := certs.Roots(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := answered(t, open(s.URL, func(c *Config) { c.Client = NewClient(roots) }), question); !got.Allowed {
		t.Errorf("a trusted certificate: %+v", got)
	}
}
