// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/statestore/events"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel/trace"
)

// secure sets the headers that prevent browsers from guessing types and from showing documents in another site's
// frame, as Hadoop's web servers do.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		next.ServeHTTP(w, r)
	})
}

// typed rejects a body that is neither JSON nor XML, nor the form of YARN's pages for the scheduler's logs. Hadoop
// answers 503, after which its clients retry.
func typed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
			kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			form := kind == "application/x-www-form-urlencoded" && strings.HasSuffix(r.URL.Path, "/scheduler/logs")
			if webdoc.KindOf(r) == webdoc.Other && (err != nil || !form) {
				refuse(
					w,
					r,
					http.StatusUnsupportedMediaType,
					"javax.ws.rs.NotSupportedException",
					"a body of type "+r.Header.Get(
						"Content-Type",
					)+" is not read; send application/json or application/xml",
				)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// audit logs one line after each call that makes a change: the user, the address, the call and its result. RPC has
// the same (internal/hrpc/telemetry).
func (h *Handler) audit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			next.ServeHTTP(w, r)
			return
		}
		// The first only issues an id, and the second makes no change.
		if strings.HasSuffix(r.URL.Path, "/apps/new-application") || strings.HasSuffix(r.URL.Path, "/preview") {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		var begin firstBytes
		seen.Tee(&begin)
		ctx, note := audit.WithNote(events.WithOrigin(r.Context(), r.RemoteAddr))
		r = r.WithContext(ctx)
		next.ServeHTTP(seen, r)
		l := audit.Line{
			User: caller(r), From: r.RemoteAddr, Operation: r.Method + " " + operation(r),
			Result: audit.Success, Request: r.Header.Get("X-Request-Id"),
		}
		switch status := seen.Status(); {
		case status == http.StatusServiceUnavailable:
			l.Result = audit.Busy
		case status >= 300:
			l.Result = audit.Failure
		}
		if l.Result != audit.Success {
			l.Error = cmp.Or(whyOf(begin), http.StatusText(seen.Status()))
		}
		l.Target = cmp.Or(note.Target, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, base), "/api/v1"))
		if at := seen.Header().Get("Location"); at != "" { // the application of a submission
			l.Target = at[strings.LastIndexByte(at, '/')+1:]
		}
		if real := r.URL.Query().Get("user.name"); real != l.User {
			l.RealUser = real
		}
		who := httpguard.LoginOf(r.Context())
		l.Auth = who.Method()
		if id, ok := holder(r); ok {
			l.Auth, l.RealUser = audit.Token, id.RealUser
		} else if who.User != "" {
			l.RealUser = who.RealUser
		}
		if sc := trace.SpanContextFromContext(r.Context()); sc.IsValid() {
			l.Trace = sc.TraceID().String()
		}
		l.Log(h.conf.Log, slog.Int("status", seen.Status()), slog.Duration("took", time.Since(began)))
	})
}

// firstBytes stores the first bytes of an answer, since these contain the reason of a rejection.
type firstBytes []byte

func (b *firstBytes) Write(p []byte) (int, error) {
	const room = 4 << 10
	*b = append(*b, p[:min(len(p), room-len(*b))]...)
	return len(p), nil
}

// whyOf returns the reason in an answer that rejects a call, of YARN's or the native API's form; "" if it has none.
func whyOf(answer []byte) string {
	if e := rawjson.Get(answer, "RemoteException"); e != nil {
		answer = e
	}
	return cmp.Or(element(answer, "detail"), element(answer, "message"))
}

// operation returns the route of a call, without its arguments.
func operation(r *http.Request) string {
	c := chi.RouteContext(r.Context())
	if c == nil || c.RoutePattern() == "" || c.RoutePattern() == base+"/*" { // rejected before it was routed
		return strings.TrimPrefix(r.URL.Path, base)
	}
	return strings.Replace(strings.TrimPrefix(c.RoutePattern(), base), "*", c.URLParam("*"), 1)
}
