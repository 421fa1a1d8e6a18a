// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"compress/gzip"
	"context"
	"hash/maphash"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/query"
	"github.com/creelrm/creel/subcluster/rm"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Config of the door.
type Config struct {
	StaticUser string // hadoop.http.staticuser.user: who asks without a name, dr.who
	LoginUser  string // who runs this process; the operating system's word when empty
	MaxBody    int64  // bytes of a request, 8 MiB
	// Resources are the names of resource types beyond memory and vcores.
	Resources    []string
	MaxContainer creel.Resource // largest container, told to new applications
	// Properties gives the configuration in force for /conf, secrets masked;
	// nil: the page is empty.
	Properties func() []Property
}

// Property is one configuration key in force.
type Property struct {
	Name, Value string
	Final       bool
	Source      string // the file it was written in, or what stands for one
}

// Door serves a daemon's documents.
type Door struct {
	d    *rmrpc.Daemon
	conf Config
	rate rate

	making     locks
	metricsDoc still
	infoDoc    [2]atomic.Pointer[[]byte] // JSON and XML; nothing of it changes
	sizes      sync.Map                  // of the last document by its root's name, for the next one's buffer

	// Touched within Query only: the machine has one owner at a time.
	use   nodeUse
	useAt time.Time
}

// New makes the door.
func New(d *rmrpc.Daemon, conf Config) *Door {
	conf.StaticUser = cmp.Or(conf.StaticUser, "dr.who")
	if conf.MaxBody <= 0 {
		conf.MaxBody = 8 << 20
	}
	if conf.LoginUser == "" {
		if u, err := user.Current(); err == nil {
			conf.LoginUser = u.Username
		}
	}
	return &Door{d: d, conf: conf, making: locks{seed: maphash.MakeSeed()}}
}

// Mount puts the door's routes on r.
func (o *Door) Mount(r chi.Router) {
	r.Route("/ws/v1/cluster", func(r chi.Router) {
		r.Use(middleware.StripSlashes, middleware.GetHead, o.identify)
		r.NotFound(noRoute)
		r.MethodNotAllowed(o.wrongMethod)
		r.Get("/", o.info)
		r.Get("/info", o.info)
		r.Get("/userinfo", o.userinfo)
		r.Get("/metrics", o.metrics)
		r.Get("/scheduler", o.kept(o.scheduler))
		r.Get("/scheduler-overview", o.overview)
		r.Get("/nodes", o.kept(o.nodes))
		r.Get("/nodes/{nodeId}", o.node)
		r.Post("/nodes/{nodeId}/resource", o.setNodeResource)
		r.Get("/queues/{queue}/access", o.queueAccess)

		r.Get("/apps", o.kept(o.apps))
		r.Post("/apps", o.submit)
		r.Post("/apps/new-application", o.newApplication)
		r.Get("/appstatistics", o.statistics)
		r.Get("/apps/{appid}", o.app)
		r.Get("/apps/{appid}/appattempts", o.attempts)
		r.Get("/apps/{appid}/appattempts/{attemptid}", o.attempt)
		r.Get("/apps/{appid}/appattempts/{attemptid}/containers", o.containers)
		r.Get("/apps/{appid}/appattempts/{attemptid}/containers/{containerid}", o.container)
		r.Get("/apps/{appid}/state", o.state)
		r.Put("/apps/{appid}/state", o.setState)
		r.Get("/apps/{appid}/queue", o.queue)
		r.Put("/apps/{appid}/queue", o.setQueue)
		r.Get("/apps/{appid}/priority", o.priority)
		r.Put("/apps/{appid}/priority", o.setPriority)
		r.Get("/apps/{appid}/timeouts", o.timeouts)
		r.Get("/apps/{appid}/timeouts/{type}", o.timeout)
		r.Put("/apps/{appid}/timeout", o.setTimeout)
		r.Post("/containers/{containerid}/signal/{command}", o.signal)
		o.mountOff(r)
	})
	// What dashboards poll has a way past the mount, which costs these more than
	// they themselves do. It is of this path and method alone: with a slash at
	// the end or as a HEAD they are found below the mount.
	r.With(o.identify).Get("/ws/v1/cluster/info", o.info)
	r.With(o.identify).Get("/ws/v1/cluster/metrics", o.metrics)
	r.Get("/jmx", o.jmx)
	r.Get("/conf", o.configuration)
	r.Get("/isActive", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain;charset=utf-8")
		io.WriteString(w, "I am Active!") // an error here is the client's going away
	})
	r.HandleFunc("/proxy/{appid}", o.proxy)
	r.HandleFunc("/proxy/{appid}/*", o.proxy)
	r.Get("/cluster", o.page)
	r.Get("/cluster/app/{appid}", o.appPage)
}

// param is a part of the path, decoded: clients may write a node's colon as %3A.
func param(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return strings.TrimSpace(text)
}

// Header values that never change, shared by all answers: nobody writes to them.
var (
	noCache       = []string{"no-cache"}
	sameOrigin    = []string{"SAMEORIGIN"}
	noSniff       = []string{"nosniff"}
	varyEncoding  = []string{"Accept-Encoding"}
	asJSON, asXML = []string{typeJSON}, []string{typeXML}
)

// identify refuses who may not act for another. Its headers are on every
// answer, set as they are and not by name: small answers are asked for often.
func (o *Door) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Cache-Control"] = noCache
		h["X-Frame-Options"] = sameOrigin
		h["X-Content-Type-Options"] = noSniff
		if user, real := o.who(r); real != "" {
			if err := o.d.MayActFor(real, user, remote(r).Addr()); err != nil {
				o.refuse(w, r, &refusal{http.StatusForbidden, classAuthorization, err.Error()})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// who asks: user.name, or the static user of an open cluster, or whom that one,
// who is real then, acts for.
func (o *Door) who(r *http.Request) (user, real string) {
	user = cmp.Or(query.First(r.URL.RawQuery, "user.name"), o.conf.StaticUser)
	as := ""
	for name, value := range query.Pairs(r.URL.RawQuery) {
		if strings.EqualFold(name, "doAs") {
			as = value
			break
		}
	}
	if as != "" && as != user {
		return as, user
	}
	return user, ""
}

// remote is a client's address; one that is none is left out of the audit line.
func remote(r *http.Request) netip.AddrPort {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a
}

func (o *Door) caller(r *http.Request) rmrpc.Caller {
	user, real := o.who(r)
	return rmrpc.Caller{User: user, RealUser: real, Remote: remote(r), Request: r.Header.Get("X-Request-Id")}
}

// read has the machine's owner run a question.
func (o *Door) read(ctx context.Context, f func(m *rm.Machine, now time.Time)) error {
	return o.d.Query(ctx, f)
}

const (
	typeJSON = "application/json;charset=utf-8"
	typeXML  = "application/xml; charset=utf-8"
)

func contentType(r *http.Request) []string {
	if wantsXML(r) {
		return asXML
	}
	return asJSON
}

// reply writes a document in the form the client asked for.
func (o *Door) reply(
	w http.ResponseWriter,
	r *http.Request,
	status int,
	root string,
	form regime,
	fields func(w *writer),
) {
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, status, o.document(r, root, form, fields))
}

// document makes a document in the form the client asked for. Its buffer begins
// as large as the last one of its kind was: to grow a long one costs as much as
// to write it.
func (o *Door) document(r *http.Request, root string, form regime, fields func(w *writer)) []byte {
	size := 4 << 10
	if last, ok := o.sizes.Load(root); ok {
		size = max(size, last.(int))
	}
	doc := &writer{xml: wantsXML(r), buf: make([]byte, 0, size)}
	doc.document(root, form, fields)
	if n := len(doc.buf); n > size || n < size/2 && size > 64<<10 {
		o.sizes.Store(root, n+n/8)
	}
	return doc.buf
}

// text is one of the answers that YARN gives as a plain sentence, whatever its
// Content-Type says.
func (o *Door) text(w http.ResponseWriter, r *http.Request, status int, s string) {
	w.Header()["Content-Type"] = contentType(r)
	send(w, r, status, []byte(s))
}

// worthPacking is the size from which compressing saves more than it costs.
const worthPacking = 8 << 10

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is a valid one
	return z
}}

// send writes a body, compressed for who can read that when it is long.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header()["Vary"] = varyEncoding
	if len(body) < worthPacking || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		w.Write(body) // an error here is the client's going away
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	z.Reset(w)
	z.Write(body)
	z.Close()
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
