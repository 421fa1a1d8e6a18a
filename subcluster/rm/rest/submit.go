// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/proto"
)

func (h *appsAPI) newApplication(w http.ResponseWriter, r *http.Request) {
	id, err := h.s.NewApplicationIDs(1)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "NewApplication", natural, func(w *writer) {
		w.Text("application-id", id.String())
		h.resource(w, "maximum-resource-capability", h.conf.MaxContainer)
	})
}

// claimOf returns the claim number of a submission that a router forwards (package router). It returns 0 without a
// claim.
func claimOf(r *http.Request) int64 {
	claim, err := strconv.ParseInt(r.Header.Get("X-Creel-Claim"), 10, 64)
	if err != nil {
		return 0
	}
	return max(claim, 0)
}

// body reads a request's body, up to its limit.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) (webdoc.Body, error) {
	b, err := webdoc.Read(w, r, h.conf.MaxBody)
	return b, unreadable(err)
}

// decode reads a JSON or XML body.
func (h *Handler) decode(w http.ResponseWriter, r *http.Request, to any) error {
	b, err := h.body(w, r)
	if err != nil {
		return err
	}
	return unreadable(b.Decode(to))
}

// unreadable returns the error for an unreadable body; nil if err is nil.
func unreadable(err error) error {
	var big *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, webdoc.ErrMediaType):
		return &refusal{http.StatusUnsupportedMediaType, classWeb, err.Error()} // clients retry Hadoop's 503
	case errors.As(err, &big):
		return badRequest(
			cause + "the request is longer than " + strconv.FormatInt(
				big.Limit,
				10,
			) + " bytes; put files into the file system and name them as local resources",
		)
	}
	text := "javax.xml.bind.UnmarshalException: " + strictjson.Worded(err).Error()
	return &refusal{http.StatusBadRequest, classWeb, text}
}

// The submission document, by its JSON and XML names.
type submission struct {
	webdoc.Submission
	Priority     *webdoc.Int  `json:"priority" xml:"priority"`
	Spec         launchSpec   `json:"am-container-spec" xml:"am-container-spec"`
	Unmanaged    webdoc.Flag  `json:"unmanaged-AM" xml:"unmanaged-AM"`
	CancelTokens *webdoc.Flag `json:"cancel-tokens-when-complete" xml:"cancel-tokens-when-complete"`
	MaxAttempts  webdoc.Int   `json:"max-app-attempts" xml:"max-app-attempts"`
	Keep         webdoc.Flag  `json:"keep-containers-across-application-attempts" xml:"keep-containers-across-application-attempts"`
	Failures     *webdoc.Long `json:"attempt-failures-validity-interval" xml:"attempt-failures-validity-interval"`
	Log          *struct {
		Include       webdoc.Text `json:"log-include-pattern" xml:"log-include-pattern"`
		Exclude       webdoc.Text `json:"log-exclude-pattern" xml:"log-exclude-pattern"`
		RolledInclude webdoc.Text `json:"rolled-log-include-pattern" xml:"rolled-log-include-pattern"`
		RolledExclude webdoc.Text `json:"rolled-log-exclude-pattern" xml:"rolled-log-exclude-pattern"`
		Policy        webdoc.Text `json:"log-aggregation-policy-class-name" xml:"log-aggregation-policy-class-name"`
		Parameters    webdoc.Text `json:"log-aggregation-policy-parameters" xml:"log-aggregation-policy-parameters"`
	} `json:"log-aggregation-context" xml:"log-aggregation-context"`
	Timeouts webdoc.Pairs[webdoc.Long] `json:"application-timeouts" xml:"application-timeouts"`
}

type launchSpec struct {
	Resources   webdoc.Pairs[localResource] `json:"local-resources" xml:"local-resources"`
	Environment webdoc.Pairs[webdoc.Text]   `json:"environment" xml:"environment"`
	Commands    struct {
		Command webdoc.Many[webdoc.Text] `json:"command" xml:"command"`
	} `json:"commands" xml:"commands"`
	ServiceData webdoc.Pairs[webdoc.Text] `json:"service-data" xml:"service-data"`
	Credentials struct {
		Tokens  webdoc.Pairs[webdoc.Text] `json:"tokens" xml:"tokens"`
		Secrets webdoc.Pairs[webdoc.Text] `json:"secrets" xml:"secrets"`
	} `json:"credentials" xml:"credentials"`
	ACLs webdoc.Pairs[webdoc.Text] `json:"application-acls" xml:"application-acls"`
}

type localResource struct {
	URL        webdoc.Text `json:"resource" xml:"resource"`
	Type       webdoc.Text `json:"type" xml:"type"`
	Visibility webdoc.Text `json:"visibility" xml:"visibility"`
	Size       webdoc.Long `json:"size" xml:"size"`
	Timestamp  webdoc.Long `json:"timestamp" xml:"timestamp"`
}

// context converts the document to the message of a submission by RPC.
func (s *submission) context() (*yarnpb.ApplicationSubmissionContextProto, error) {
	id, err := creel.ParseApplicationID(string(s.ID))
	if err != nil {
		return nil, badRequest(cause + "Could not parse application id " + string(s.ID))
	}
	c := s.Submission.Context(id)
	c.UnmanagedAm = proto.Bool(bool(s.Unmanaged))
	c.MaxAppAttempts = proto.Int32(int32(s.MaxAttempts))
	c.KeepContainersAcrossApplicationAttempts = proto.Bool(bool(s.Keep))
	if s.Priority != nil && *s.Priority >= 0 {
		c.Priority = yarnpb.FromPriority(int32(*s.Priority))
	}
	if s.CancelTokens != nil {
		c.CancelTokensWhenComplete = proto.Bool(bool(*s.CancelTokens))
	}
	if s.Failures != nil {
		c.AttemptFailuresValidityInterval = proto.Int64(int64(*s.Failures))
	}
	if l := s.Log; l != nil {
		c.LogAggregationContext = &yarnpb.LogAggregationContextProto{
			IncludePattern:           (*string)(&l.Include),
			ExcludePattern:           (*string)(&l.Exclude),
			RolledLogsIncludePattern: (*string)(&l.RolledInclude),
			RolledLogsExcludePattern: (*string)(&l.RolledExclude),
		}
		if l.Policy != "" {
			c.LogAggregationContext.LogAggregationPolicyClassName = (*string)(&l.Policy)
			c.LogAggregationContext.LogAggregationPolicyParameters = (*string)(&l.Parameters)
		}
	}
	if s.Reservation != "" {
		if _, err := creel.ParseReservationID(string(s.Reservation)); err != nil {
			return nil, badRequest(cause + "Could not parse reservation id " + string(s.Reservation))
		}
	}
	for _, e := range s.Timeouts.Entry {
		if e.Key != lifetime {
			return nil, unknownWord("application timeout", string(e.Key), lifetime)
		}
		{
			c.ApplicationTimeouts = append(c.ApplicationTimeouts, &yarnpb.ApplicationTimeoutMapProto{
				ApplicationTimeoutType: yarnpb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				Timeout:                proto.Int64(int64(e.Value)),
			})
		}
	}
	c.AmContainerSpec, err = s.Spec.message()
	return c, err
}

var accessTypes = map[string]yarnpb.ApplicationAccessTypeProto{
	"VIEW_APP":   yarnpb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP,
	"MODIFY_APP": yarnpb.ApplicationAccessTypeProto_APPACCESS_MODIFY_APP,
}

// unknownWord rejects a word that is not in a list. Hadoop reads some such words as null, and the launch fails later.
func unknownWord(of, word, known string) error {
	return badRequest(cause + "Unknown " + of + ": " + strconv.Quote(word) + " is not " + known)
}

// lower converts tags to lower case: comparisons ignore case.
func lower(tags []string) []string {
	out := make([]string, len(tags))
	for i, t := range tags {
		out[i] = strings.ToLower(t)
	}
	return out
}

func (l *launchSpec) message() (*yarnpb.ContainerLaunchContextProto, error) {
	m := &yarnpb.ContainerLaunchContextProto{Command: webdoc.Texts(l.Commands.Command)}
	for _, e := range l.Environment.Entry {
		m.Environment = append(m.Environment, &yarnpb.StringStringMapProto{
			Key: (*string)(&e.Key), Value: (*string)(&e.Value),
		})
	}
	for _, e := range l.Resources.Entry {
		r, err := e.Value.message()
		if err != nil {
			return nil, err
		}
		m.LocalResources = append(m.LocalResources, &yarnpb.StringLocalResourceMapProto{
			Key: (*string)(&e.Key), Value: r,
		})
	}
	for _, e := range l.ServiceData.Entry {
		b, err := decodeBase64(string(e.Value))
		if err != nil {
			return nil, badRequest(cause + "service data of " + string(e.Key) + " is not base64")
		}
		m.ServiceData = append(m.ServiceData, &yarnpb.StringBytesMapProto{Key: (*string)(&e.Key), Value: b})
	}
	for _, e := range l.ACLs.Entry {
		kind, ok := accessTypes[string(e.Key)]
		if !ok {
			return nil, unknownWord("application ACL", string(e.Key), "VIEW_APP or MODIFY_APP")
		}
		m.Application_ACLs = append(
			m.Application_ACLs,
			&yarnpb.ApplicationACLMapProto{AccessType: kind.Enum(), Acl: (*string)(&e.Value)},
		)
	}
	var creds token.Credentials
	for _, e := range l.Credentials.Tokens.Entry {
		t, err := token.ParseURLString(string(e.Value))
		if err != nil {
			return nil, badRequest(cause + "Could not parse credentials data; exception message = " + err.Error())
		}
		creds.Tokens = append(creds.Tokens, token.AliasedToken{Alias: string(e.Key), Token: t})
	}
	for _, e := range l.Credentials.Secrets.Entry {
		b, err := decodeBase64(string(e.Value))
		if err != nil {
			return nil, badRequest(
				cause + "Could not parse credentials data; exception message = secret " + string(e.Key) + " is not base64",
			)
		}
		creds.Secrets = append(creds.Secrets, token.Secret{Alias: string(e.Key), Value: b})
	}
	if len(creds.Tokens)+len(creds.Secrets) > 0 {
		m.Tokens = creds.Append(nil)
	}
	return m, nil
}

func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if b, err := base64.RawURLEncoding.DecodeString(s); err == nil {
		return b, nil
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// message converts a local resource. A URL without a port has port -1, which Java reads as "no port".
func (l *localResource) message() (*yarnpb.LocalResourceProto, error) {
	u, err := url.Parse(string(l.URL))
	if err != nil || l.URL == "" {
		return nil, badRequest(cause + "local resource " + strconv.Quote(string(l.URL)) + " is not a URI")
	}
	p := &yarnpb.URLProto{File: proto.String(u.Path), Port: proto.Int32(-1)}
	if u.Scheme != "" {
		p.Scheme = &u.Scheme
	}
	if h := u.Hostname(); h != "" {
		p.Host = &h
	}
	if n, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
		p.Port = proto.Int32(int32(n))
	}
	if u.User != nil {
		p.UserInfo = proto.String(u.User.String())
	}
	kind, ok := yarnpb.LocalResourceTypeProto_value[cmp.Or(strings.TrimSpace(string(l.Type)), "FILE")]
	if !ok {
		return nil, unknownWord("type of local resource "+string(l.URL), string(l.Type), "ARCHIVE, FILE or PATTERN")
	}
	word := cmp.Or(strings.TrimSpace(string(l.Visibility)), "APPLICATION")
	seen, ok := yarnpb.LocalResourceVisibilityProto_value[word]
	if !ok {
		return nil, unknownWord("visibility of local resource "+string(l.URL), string(l.Visibility), "PUBLIC, PRIVATE or APPLICATION")
	}
	return &yarnpb.LocalResourceProto{
		Resource:  p,
		Size:      proto.Int64(int64(l.Size)),
		Timestamp: proto.Int64(int64(l.Timestamp)),
		Type: yarnpb.LocalResourceTypeProto(kind).
			Enum(),
		Visibility: yarnpb.LocalResourceVisibilityProto(seen).Enum(),
	}, nil
}

func (h *appsAPI) submit(w http.ResponseWriter, r *http.Request) {
	var doc submission
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	c, err := doc.context()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if !h.conf.KeepTagCase {
		c.ApplicationTags = lower(c.ApplicationTags)
	}
	if most := h.conf.MaxContainer; !most.IsZero() {
		switch {
		case int64(doc.Resource.Memory) > most.MemoryMB:
			err = badRequest(cause + "Requested more memory than configured max")
		case int64(doc.Resource.VCores) > most.VCores:
			err = badRequest(cause + "Requested more cores than configured max")
		}
	}
	if err == nil {
		h.s.KeepTrace(r.Context(), c)
		_, err = do(h.Handler, r, h.s.Submit(h.caller(r), c, server.Forwarding{Claim: claimOf(r)}))
		var e *refusal
		if err != nil && !errors.As(err, &e) && !errors.Is(err, creel.ErrBusy) &&
			!errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrReadOnly) &&
			!errors.Is(err, creel.ErrEnded) &&
			r.Context().Err() == nil {
			err = badRequest(
				cause + err.Error(),
			) // here any rejection by a ResourceManager is a bad request
		}
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w.Header().Set("Location", webdoc.Origin(r)+strings.TrimSuffix(r.URL.Path, "/")+"/"+string(doc.ID))
	w.Header()["Content-Type"] = contentType(r)
	w.WriteHeader(http.StatusAccepted)
}
