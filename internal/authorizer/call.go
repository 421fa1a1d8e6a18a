// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

const (
	mostAnswer = 64 << 10 // bytes of an answer
	mostReason = 500      // characters of a reason
)

// NewClient makes a client for one server. roots, if not nil, are the authorities that it accepts instead of the
// machine's.
func NewClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxConnsPerHost:     mostOpen,
			MaxIdleConnsPerHost: atOnce,
			ForceAttemptHTTP2:   true,
		},
		// A question with its token goes to the configured server only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// input is what a policy reads about a question.
type input struct {
	Cluster string   `json:"cluster"`
	User    string   `json:"user"`
	Groups  []string `json:"groups"`
	Action  Action   `json:"action"`
	Queue   string   `json:"queue"`
}

// call asks the server.
func (a *Authorizer) call(ctx context.Context, q Question) Answer {
	answer, err := a.post(ctx, q)
	if err != nil {
		var u *url.Error
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("no answer within %v", a.conf.Timeout)
		case errors.As(err, &u):
			err = u.Err // without the URL, which the caller need not see
		}
		return Answer{Failed: true, Why: oneLine(err.Error())}
	}
	return answer
}

func (a *Authorizer) post(ctx context.Context, q Question) (Answer, error) {
	groups := a.conf.Groups(q.User)
	if groups == nil {
		groups = []string{}
	}
	body, err := json.Marshal(map[string]input{"input": {a.conf.Cluster, q.User, groups, q.Action, q.Queue}})
	if err != nil {
		return Answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.conf.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if a.conf.Token != nil {
		token, err := a.conf.Token()
		if err != nil {
			return Answer{}, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := a.conf.Client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, mostAnswer+1))
	switch {
	case err != nil:
		return Answer{}, err
	case w.StatusCode != http.StatusOK:
		return Answer{}, fmt.Errorf("it answered with status %d", w.StatusCode)
	case len(text) > mostAnswer:
		return Answer{}, fmt.Errorf("its answer has more than %d bytes", mostAnswer)
	}
	return parseAnswer(text)
}

// parseAnswer reads an answer. Other fields than the result, such as Open Policy Agent's decision_id, are ignored.
func parseAnswer(text []byte) (Answer, error) {
	var fields map[string]json.RawMessage // unlike a struct's, names differ by case
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return Answer{}, errors.New("its answer is no JSON object")
	}
	result, ok := fields["result"]
	if !ok {
		return Answer{Why: "its policy has no result"}, nil
	}
	switch string(result) {
	case "true":
		return Answer{Allowed: true}, nil
	case "false":
		return Answer{}, nil
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(result, &parts); err != nil || parts == nil {
		return Answer{}, errors.New("its result is neither a boolean nor an object with allow")
	}
	var answer Answer
	switch string(parts["allow"]) {
	case "true":
		answer.Allowed = true
	case "false":
	default:
		return Answer{}, errors.New("its result has no boolean named allow")
	}
	if reason, ok := parts["reason"]; ok && json.Unmarshal(reason, &answer.Why) != nil {
		return Answer{}, errors.New("the reason in its result is no text")
	}
	answer.Why = oneLine(answer.Why)
	return answer, nil
}

// oneLine makes a reason safe for a log and an error: one line of limited length.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if cut := []rune(text); len(cut) > mostReason {
		text = string(cut[:mostReason]) + "…"
	}
	return strings.TrimSpace(text)
}
