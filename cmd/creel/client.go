// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/user"
	"regexp"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/webauth"
	"github.com/creelrm/creel/internal/network"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/spf13/cobra"
)

// clientFlags name the router or ResourceManager that the everyday commands call, and the user they act as.
type clientFlags struct {
	server  string
	user    string
	as      string
	context string
	timeout time.Duration
	printer printer
	verbose bool
	client  *http.Client // made by the first request
}

func (f *clientFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.server, "server", "",
		"web `URL` of a router or ResourceManager (default $CREEL_SERVER, the context's, or "+defaultServer+")")
	fl.StringVar(&f.user, "user", "", "user to act as: `NAME` (default: $HADOOP_USER_NAME, then the context's user, then the current user)")
	fl.StringVar(&f.as, "as", "", asUsage)
	fl.StringVar(&f.context, "context", "", "the `NAME` of a context, see creel context (default $CREEL_CONTEXT)")
	fl.DurationVar(&f.timeout, "request-timeout", 30*time.Second, "give up a request after this long")
	fl.StringVarP(&f.printer.format, "output", "o", "table", outputUsage)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print the code and the request id of an error")
}

const asUsage = "call for another user: `NAME`; the servers let the user of --user do so by " +
	"hadoop.proxyuser.USER.users and .hosts"

// defaultServer is the default web address of `creel up` and of a router on YARN's ports.
const defaultServer = "http://127.0.0.1:8089"

// resolve fills in missing flags from the environment, the context and the defaults, in this order.
func (f *clientFlags) resolve() error {
	if f.server != "" && f.user != "" {
		return nil
	}
	at, err := currentContext(f.context)
	if err != nil {
		return err
	}
	if f.context != "" { // a context named by a flag has precedence over the environment
		f.server, f.user = cmp.Or(f.server, at.Server), cmp.Or(f.user, at.User)
	}
	f.server = cmp.Or(f.server, os.Getenv("CREEL_SERVER"), at.Server, defaultServer)
	if f.user = cmp.Or(f.user, os.Getenv("HADOOP_USER_NAME"), at.User); f.user == "" {
		if u, err := user.Current(); err == nil {
			f.user = u.Username
		}
	}
	return nil
}

// http returns the client of all requests of a command. It logs in by Kerberos where a server asks for it.
func (f *clientFlags) http() *http.Client {
	if f.client == nil {
		jar, err := cookiejar.New(nil)
		if err != nil { // the library returns none
			jar = nil
		}
		plain := http.DefaultTransport.(*http.Transport).Clone()
		plain.TLSClientConfig = &tls.Config{GetClientCertificate: ownCertificate}
		f.client = &http.Client{Jar: jar, Transport: webauth.New(plain, userLogin)}
	}
	return f.client
}

// ownCertificate is the certificate that a command shows to a server that asks for one; none if the environment has
// none.
func ownCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	file, key := os.Getenv("CREEL_TLS_CERTIFICATE"), os.Getenv("CREEL_TLS_KEY")
	if file == "" && key == "" {
		return &tls.Certificate{}, nil
	}
	own, err := certs.Store{Certificate: file, Key: key}.Load(time.Now())
	if err != nil {
		return nil, fmt.Errorf("CREEL_TLS_CERTIFICATE and CREEL_TLS_KEY: %w", err)
	}
	return own, nil
}

// userLogin is the login of the command's user, with MIT's variables.
func userLogin() (*kerberos.Login, error) {
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	return conf.LoginUser(kerberos.Environment{
		Cache: os.Getenv("KRB5CCNAME"), Keytab: os.Getenv("KRB5_CLIENT_KTNAME"), UID: os.Getuid(),
	})
}

// call makes one request and decodes the JSON response into out, if not nil; a *[]byte gets the response as it is. The
// response headers list missing members.
func (f *clientFlags) call(
	ctx context.Context,
	method, path string,
	query url.Values,
	in, out any,
) (http.Header, error) {
	if err := errors.Join(f.printer.check(), f.resolve()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if query == nil {
		query = url.Values{}
	}
	if f.user != "" {
		query.Set("user.name", f.user)
	}
	if f.as != "" {
		query.Set("doAs", f.as)
	}
	at := strings.TrimSuffix(f.server, "/")
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, at+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, usage(fmt.Errorf("server %q: %w", f.server, err))
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache") // a list shows all that earlier commands reported
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.http().Do(req)
	var login *webauth.LoginError
	if errors.As(err, &login) {
		return nil, &exitError{exitNotPermitted, login}
	}
	if err != nil {
		return nil, &exitError{
			exitUnreachable,
			fmt.Errorf(
				"%s cannot be reached: %w; start one with `creel up`, or name another with --server",
				f.server,
				network.InWords(err),
			),
		}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 512<<20))
	if err != nil {
		return nil, &exitError{
			exitUnreachable, fmt.Errorf("%s sent a truncated response: %w", f.server, network.InWords(err)),
		}
	}
	if resp.StatusCode >= 300 {
		return resp.Header, answerError(resp.StatusCode, b)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = b
		return resp.Header, nil
	}
	if out != nil && len(bytes.TrimSpace(b)) > 0 {
		if err := json.Unmarshal(b, out); err != nil {
			return resp.Header, fmt.Errorf("unreadable response from %s: %w", f.server, strictjson.Worded(err))
		}
	}
	return resp.Header, nil
}

// javaName matches the class that ResourceManagers write before, and within, the text of some errors.
var javaName = regexp.MustCompile(`\b(?:[a-z]\w*\.)+(?:[A-Z]\w*)?(?:Exception|Error): `)

// missingObject matches errors about an absent queue, node or member. ResourceManagers, Hadoop's too, send them with
// several HTTP statuses.
var missingObject = regexp.MustCompile(
	`^Unknown queue: |^The specified Queue: \S+ doesn't exist|\bthere is no subcluster "`)

// problemError is an error of the native API: its text as printed, and what identifies it.
type problemError struct {
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
	Page      string `json:"type"`
	text      string
}

func (p *problemError) Error() string { return p.text }

// answerError converts an HTTP response to an error with its exit code.
func answerError(status int, body []byte) error {
	var doc struct {
		RemoteException struct {
			Message string `json:"message"`
		}
		problemError
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &doc) == nil {
		switch {
		case doc.RemoteException.Message != "":
			text = doc.RemoteException.Message
		case doc.Title != "":
			text = doc.Title + ": " + doc.Detail
		}
	}
	text = javaName.ReplaceAllString(text, "")
	if len(text) > 2000 {
		text = text[:2000] + "..."
	}
	err := fmt.Errorf("%s (HTTP %d)", text, status)
	if doc.Code != "" {
		doc.text = err.Error()
		err = &doc.problemError
	}
	if missingObject.MatchString(text) {
		return &exitError{exitNotFound, err}
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return &exitError{exitUsage, err}
	case http.StatusNotFound:
		return &exitError{exitNotFound, err}
	case http.StatusUnauthorized, http.StatusForbidden:
		return &exitError{exitNotPermitted, err}
	case http.StatusConflict, http.StatusPreconditionFailed:
		return &exitError{exitConflict, err}
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return &exitError{exitUnreachable, err}
	}
	return err
}

// queueThere returns an error with exit code 3 if no member has the queue. A bare name is a leaf anywhere in the tree.
func (f *clientFlags) queueThere(ctx context.Context, name string) error {
	all, head, err := f.queueSnapshot(ctx)
	if err != nil || head.Get("X-Partial-Result") == "true" { // a missing member may have the queue
		return err
	}
	for _, q := range all {
		if q.Path == name || q.Path == "root."+name || strings.HasSuffix(q.Path, "."+name) {
			return nil
		}
	}
	return &exitError{exitNotFound, fmt.Errorf("there is no queue %s; see `creel queue list`", name)}
}

// partialExit returns exit code 7 after a complete print if members were missing.
func partialExit(c *cobra.Command, head http.Header) error {
	if head.Get("X-Partial-Result") != "true" {
		return nil
	}
	fmt.Fprintf(
		c.ErrOrStderr(),
		"creel: partial: missing %s\n",
		strings.Join(head.Values("X-Missing-SubClusters"), ", "),
	)
	return &exitError{exitPartial, errSilent}
}

// appArgument checks an application id before any request.
func appArgument(text string) (creel.ApplicationID, error) {
	app, err := creel.ParseApplicationID(text)
	if err != nil {
		return app, usage(err)
	}
	return app, nil
}

// hasNoSuch reports whether the server responded that the path does not exist.
func hasNoSuch(err error) bool {
	var code *exitError
	return errors.As(err, &code) && code.code == exitNotFound
}
