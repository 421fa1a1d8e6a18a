// SPDX-License-Identifier: Apache-2.0

// Package dash is the router's dashboard: one page, embedded, without a build
// step. It shows the subclusters, the applications and the rate of containers,
// and refreshes itself from the same documents that scripts read: /api/v1 and
// /ws/v1/cluster. It keeps showing what it last knew, and says so, when the
// router does not answer.
package dash

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed page
var page embed.FS

// Mount serves the page at / and /cluster, where the links of YARN's tools
// point, and its files below /dash.
func Mount(r chi.Router) error {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return err
	}
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return err
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'self'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "index.html", time.Time{}, bytes.NewReader(index))
	}
	r.Get("/", serve)
	r.Get("/cluster", serve)
	r.Handle("/dash/*", http.StripPrefix("/dash/", http.FileServerFS(files)))
	return nil
}
