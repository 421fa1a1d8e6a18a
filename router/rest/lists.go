// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/snapshot"
	"github.com/creelrm/creel/subcluster/remote"
)

// shared are lists of items T for all viewers of a user, by identity.
type shared[T any] = snapshot.Lists[string, T, []T]

// sharedList makes shared lists. fresh and changed may be zero: see snapshot.Config.
func sharedList[T any](
	ask func(ctx context.Context, who string) []router.Part[[]T],
	merge func(parts []snapshot.Part[T]) []T,
	fresh time.Duration,
	changed func() int64,
) *shared[T] {
	return snapshot.New(snapshot.Config[string, T, []T]{Ask: ask, Merge: merge, Fresh: fresh, Changed: changed})
}

// listOf asks every member for a YARN list and reads each of its items.
func listOf[T any](
	s *server.Server,
	path, root, name string,
	read func(raw []byte, from creel.SubclusterID) T,
) func(ctx context.Context, who string) []router.Part[[]T] {
	return func(ctx context.Context, who string) []router.Part[[]T] {
		return server.Ask(ctx, s, func(ctx context.Context, m *remote.Member) ([]T, error) {
			doc, err := getJSON(m)(ctx, path+"&"+who)
			if err != nil {
				return nil, err
			}
			raw, err := rawjson.ListAt(doc, root, name)
			if err != nil {
				return nil, err
			}
			out := make([]T, len(raw))
			for i := range raw {
				out[i] = read(raw[i], m.ID)
			}
			return out, nil
		})
	}
}

// getJSON returns a function that fetches a member's document, as a part of a list.
func getJSON(m *remote.Member) func(ctx context.Context, path string) ([]byte, error) {
	return func(ctx context.Context, path string) ([]byte, error) {
		head := http.Header{"Accept": {"application/json"}}
		doc, _, err := m.Web(ctx, remote.List, http.MethodGet, path, "", head, nil)
		return doc, err
	}
}

// identity returns the part of a query by which members identify the caller.
func identity(r *http.Request) string {
	who := url.Values{}
	for name, values := range r.URL.Query() {
		if (name == "user.name" || strings.EqualFold(name, "doAs")) && len(values) > 0 {
			who.Set(name, values[0])
		}
	}
	return who.Encode()
}

// missing is a member whose part of a list is old or absent.
type missing struct {
	Member creel.SubclusterID `json:"member"`
	Reason string             `json:"reason"`
	// AgeSeconds is the age of the displayed part; -1 if there is none.
	AgeSeconds float64 `json:"age_s"`
}

func missingOf[T any](parts []snapshot.Part[T], now time.Time) []missing {
	out := []missing{}
	for i := range parts {
		p := &parts[i]
		if p.Err == nil {
			continue
		}
		m := missing{Member: p.Member, Reason: p.Err.Error(), AgeSeconds: -1}
		if !p.At.IsZero() {
			m.AgeSeconds = now.Sub(p.At).Seconds()
		}
		out = append(out, m)
	}
	return out
}
