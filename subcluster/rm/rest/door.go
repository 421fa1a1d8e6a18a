// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Config of the door.
type Config struct {
	StaticUser string // hadoop.http.staticuser.user: who asks without a name, dr.who
	MaxBody    int64  // bytes of a request, 8 MiB
	// Resources are the names of resource types beyond memory and vcores.
	Resources    []string
	MaxContainer creel.Resource // largest container, told to new applications
}

// Door serves a daemon's documents.
type Door struct {
	d    *rmrpc.Daemon
	conf Config
	rate rate
}

// New makes the door.
func New(d *rmrpc.Daemon, conf Config) *Door {
	if conf.StaticUser == "" {
		conf.StaticUser = "dr.who"
	}
	if conf.MaxBody <= 0 {
		conf.MaxBody = 8 << 20
	}
	return &Door{d: d, conf: conf}
}

// Mount puts the door's routes on r.
func (o *Door) Mount(r chi.Router) {
	r.Route("/ws/v1/cluster", func(r chi.Router) {
		r.Use(middleware.StripSlashes)
		r.Get("/", o.info)
		r.Get("/info", o.info)
		r.Get("/metrics", o.metrics)
		r.Get("/scheduler", o.scheduler)
		r.Get("/nodes", o.nodes)
		r.Get("/nodes/{nodeId}", o.node)
		r.Get("/apps", o.apps)
		r.Post("/apps", o.submit)
		r.Post("/apps/new-application", o.newApplication)
		r.Get("/apps/{appid}", o.app)
		r.Get("/apps/{appid}/state", o.state)
		r.Put("/apps/{appid}/state", o.setState)
	})
}

// caller is who asks: user.name, or the static user of an open cluster.
func (o *Door) caller(r *http.Request) rmrpc.Caller {
	q := r.URL.Query()
	c := rmrpc.Caller{User: q.Get("user.name"), Request: r.Header.Get("X-Request-Id")}
	for name, values := range q {
		if strings.EqualFold(name, "doAs") && len(values) > 0 && values[0] != "" {
			c.RealUser, c.User = c.User, values[0]
		}
	}
	if c.User == "" {
		c.User = o.conf.StaticUser
	}
	c.Remote, _ = netip.ParseAddrPort(r.RemoteAddr) // an address that is none is left out of the audit line
	return c
}

// read runs a question in the machine's goroutine.
func (o *Door) read(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	return o.d.Query(ctx, f)
}

// reply writes a document in the form the client asked for.
func (o *Door) reply(w http.ResponseWriter, r *http.Request, status int, root string, dropRoot bool, fields func(w *writer)) {
	doc := &writer{xml: wantsXML(r), buf: make([]byte, 0, 4<<10)}
	doc.document(root, dropRoot, fields)
	kind := "application/json; charset=utf-8"
	if doc.xml {
		kind = "application/xml; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(doc.buf) // an error here is the client's going away
}

// wantsXML reads Accept as Jersey does for the two types YARN has.
func wantsXML(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	x := strings.Index(accept, "application/xml")
	if x < 0 {
		return false
	}
	j := strings.Index(accept, "application/json")
	return j < 0 || x < j
}
