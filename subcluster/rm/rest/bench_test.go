// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"testing"

	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
)

// nowhere takes an answer as net/http does: each request has its own headers.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(int)             {}
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkShortDocument measures the handler's own cost of a short document, without net/http and socket.
func BenchmarkShortDocument(b *testing.B) {
	s, err := server.New(
		server.Config{
			ClusterID: "test",
			Machine:   rm.Defaults(),
		},
	)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(b.Context()) }() // which ends before the cleanup
	b.Cleanup(func() {
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	<-s.Ready()
	mux := chi.NewRouter()
	rest.New(s, rest.Config{}).Mount(mux)
	for _, page := range []string{"info", "metrics", "userinfo"} {
		b.Run(page, func(b *testing.B) {
			r, err := http.NewRequest(http.MethodGet, base+"/"+page+"?user.name=load", nil)
			if err != nil {
				b.Fatal(err)
			}
			r.RemoteAddr = "127.0.0.1:40000"
			r.Header.Set("Accept", "application/json")
			b.ReportAllocs()
			for b.Loop() {
				mux.ServeHTTP(&nowhere{http.Header{}}, r)
			}
		})
	}
}
