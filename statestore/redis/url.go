// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/statestore"
)

// Config of a store on Redis. Only URL is required.
type Config struct {
	// URL names the deployment:
	//
	//	redis://[user[:password]@]host:port[/db]
	//	rediss://...                                        the same over TLS
	//	redis-sentinel://[user[:password]@]host:port,host:port/master[?db=N]
	//	redis-cluster://[user[:password]@]host:port,host:port
	//
	// Parameters: prefix=, wait= (replicas), wait_timeout=, timeout=, max_wait= as below; tls=true;
	// and sentinel_user=, sentinel_password= for Sentinels with a separate login.
	URL string

	// Password and SentinelPassword are used if the URL has none, such as those of files. A URL with a password and
	// another Password are an error.
	Password, SentinelPassword string

	Prefix string       // of all keys and the channel; "creel". Letters, digits, . _ - :
	TLS    *certs.Trust // of connections, if the URL asks for TLS; nil: the machine's signers, and no certificate

	// Wait is the number of replicas that must acknowledge a change, 0 for none; WaitTimeout limits
	// the wait, 1s by default. It prevents the loss at failover (see the package), and costs one
	// replica round trip for each pipeline.
	Wait        int
	WaitTimeout time.Duration

	// Timeout limits one exchange with a server, 1s by default. After it the call is repeated over a new connection.
	Timeout time.Duration
	// MaxWait limits a call whose context has no deadline, 10s by default.
	MaxWait time.Duration

	// Confirm stops an empty store from serving homes until Reopen: the store may have lost its records, and the
	// running members must report first. Without it an empty store counts as new.
	Confirm bool

	// Observe is called after each operation with its total duration, repeats included. operation is a script's name,
	// Redis' name of another command, or "list" for many reads in one. It must not block. nil: not called.
	Observe func(operation string, took time.Duration, err error)

	MaxBatch int // calls in one pipeline: 256
	MaxQueue int // calls waiting for a pipeline, for each server: 16384
	Flights  int // pipelines in flight, for each server: 2, with Wait 16

	Validate statestore.Validate // of policy documents; nil accepts all
	Log      *slog.Logger        // receives the client library's messages, at debug level; nil: silent
	// Dial replaces the dialer, for tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// OverTLS reports whether the URL asks for TLS.
func (c Config) OverTLS() bool {
	t, err := c.parse()
	return err == nil && t.tls
}

// target is a parsed URL.
type target struct {
	kind                           string // redis, sentinel, cluster
	addrs                          []string
	master                         string
	db                             int
	user, password                 string
	sentinelUser, sentinelPassword string
	tls                            bool
}

var goodPrefix = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

func badURL(raw, why string) error {
	if u, err := url.Parse(raw); err == nil {
		if q := u.Query(); q.Has("sentinel_password") {
			q.Set("sentinel_password", "xxxxx")
			u.RawQuery = q.Encode()
		}
		raw = u.Redacted()
	} else {
		raw = "(unreadable)" // it may contain a password
	}
	return &creel.Error{
		Kind: creel.ErrInvalidRequest,
		What: fmt.Sprintf("invalid state store URL %q", raw),
		Why:  why,
		Try:  "use redis://host:port, rediss://host:port, redis-sentinel://host:port,host:port/master or redis-cluster://host:port,host:port",
	}
}

// parameter reads one parameter of the URL's query.
func (c *Config) parameter(t *target, name, v string) (known bool, err error) {
	switch name {
	case "db":
		t.db, err = strconv.Atoi(v)
		if err == nil && (t.db < 0 || t.kind == "cluster" && t.db != 0) {
			err = fmt.Errorf("out of range")
		}
	case "prefix":
		c.Prefix = v
	case "wait":
		c.Wait, err = strconv.Atoi(v)
	case "wait_timeout":
		c.WaitTimeout, err = time.ParseDuration(v)
	case "timeout":
		c.Timeout, err = time.ParseDuration(v)
	case "max_wait":
		c.MaxWait, err = time.ParseDuration(v)
	case "tls":
		t.tls, err = strconv.ParseBool(v)
	case "sentinel_user":
		t.sentinelUser = v
	case "sentinel_password":
		t.sentinelPassword = v
	default:
		return false, nil
	}
	return true, err
}

// parse reads the URL into a target and the Config's own fields.
func (c *Config) parse() (target, error) {
	raw := c.URL
	fail := func(why string, args ...any) (target, error) { return target{}, badURL(raw, fmt.Sprintf(why, args...)) }
	// net/url rejects a list of hosts with ports, so parse it separately.
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return fail("it has no scheme")
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	userinfo, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		userinfo, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse(scheme + "://" + userinfo + "host" + tail)
	if err != nil {
		return fail("it is not a URL")
	}
	t := target{user: u.User.Username()}
	t.password, _ = u.User.Password()
	port := "6379"
	switch u.Scheme {
	case "redis", "rediss":
		t.kind, t.tls = "redis", u.Scheme == "rediss"
	case "redis-sentinel":
		t.kind, port = "sentinel", "26379"
	case "redis-cluster":
		t.kind = "cluster"
	default:
		return fail("scheme %q is unknown", u.Scheme)
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h == "" {
			return fail("it has an empty host")
		}
		host, p, err := net.SplitHostPort(h)
		if err != nil {
			host, p = strings.Trim(h, "[]"), port
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 || host == "" {
			return fail("%q is not host:port", h)
		}
		t.addrs = append(t.addrs, net.JoinHostPort(host, p))
	}
	if t.kind == "redis" && len(t.addrs) > 1 {
		return fail("several hosts need redis-cluster:// or redis-sentinel://")
	}
	path := strings.Trim(u.Path, "/")
	switch {
	case t.kind == "sentinel" && path == "":
		return fail("it names no master after the hosts")
	case t.kind == "sentinel":
		t.master = path
	case t.kind == "cluster" && path != "":
		return fail("a cluster has no databases")
	case path != "":
		if t.db, err = strconv.Atoi(path); err != nil || t.db < 0 {
			return fail("database %q is not a number", path)
		}
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("its parameters cannot be read")
	}
	for name, values := range q {
		v := values[len(values)-1]
		known, err := c.parameter(&t, name, v)
		if !known {
			return fail("parameter %q is unknown", name)
		}
		if err != nil {
			return fail("parameter %s=%q is invalid", name, v)
		}
	}
	if t.password != "" && c.Password != "" || t.sentinelPassword != "" && c.SentinelPassword != "" {
		return fail("it has a password, and there is a second one")
	}
	t.password = cmp.Or(t.password, c.Password)
	t.sentinelPassword = cmp.Or(t.sentinelPassword, c.SentinelPassword)
	return t, c.complete(raw)
}

// complete sets defaults and checks the other fields.
func (c *Config) complete(raw string) error {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.WaitTimeout, time.Second)
	def(&c.Timeout, time.Second)
	def(&c.MaxWait, 10*time.Second)
	flights := 2
	if c.Wait > 0 {
		flights = 16 // a WAIT occupies its connection
	}
	for n, v := range map[*int]int{&c.MaxBatch: 256, &c.MaxQueue: 16384, &c.Flights: flights} {
		if *n == 0 {
			*n = v
		}
	}
	if c.Prefix == "" {
		c.Prefix = "creel"
	}
	switch {
	case !goodPrefix.MatchString(c.Prefix):
		return badURL(
			raw,
			fmt.Sprintf("prefix %q must have 1 to 64 letters, digits, dots, dashes, colons or underscores", c.Prefix),
		)
	case c.Wait < 0 || c.WaitTimeout < time.Millisecond || c.Timeout < time.Millisecond || c.MaxWait < 0:
		return badURL(raw, "a timeout or the number of replicas is negative or too short")
	case c.MaxBatch < 1 || c.MaxQueue < 1 || c.Flights < 1:
		return badURL(raw, "batch, queue and flights must be positive")
	}
	return nil
}
