// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"golang.org/x/sync/singleflight"

	"github.com/creelrm/creel/internal/gssapi"
)

// Config is a krb5.conf.
type Config struct {
	krb *config.Config
	// Now is the clock, for tests.
	Now func() time.Time
	// send exchanges messages with the KDC of an address, for tests.
	send func(ctx context.Context, address string, request []byte) ([]byte, error)
}

// strong are the types of keys that are used, in the order of preference.
var strong = []int32{20, 19, 18, 17}

// ParseConfig parses the text of a krb5.conf. Empty text means MIT's defaults.
func ParseConfig(text string) (c *Config, err error) {
	defer func() {
		if recover() != nil { // the parser panics at some malformed lines
			c, err = nil, errors.New("a line is malformed")
		}
	}()
	krb, err := config.NewFromString(text)
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, errors.New("a line is malformed")
	}
	keep := func(ids []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !slices.Contains(strong, id) })
	}
	d := &krb.LibDefaults
	d.DefaultTktEnctypeIDs, d.DefaultTGSEnctypeIDs = keep(d.DefaultTktEnctypeIDs), keep(d.DefaultTGSEnctypeIDs)
	if len(d.DefaultTktEnctypeIDs) == 0 || len(d.DefaultTGSEnctypeIDs) == 0 {
		return nil, errors.New("default_tkt_enctypes and default_tgs_enctypes must have a type of AES")
	}
	return &Config{krb: krb, Now: time.Now, send: send}, nil
}

// DefaultRealm is the realm of principals without one.
func (c *Config) DefaultRealm() string { return c.krb.LibDefaults.DefaultRealm }

// Skew is the largest permitted difference of clocks.
func (c *Config) Skew() time.Duration { return c.krb.LibDefaults.Clockskew }

// RealmOf returns the realm of a host by [domain_realm], or the default realm.
func (c *Config) RealmOf(host string) string {
	if r := c.krb.ResolveRealm(host); r != "" {
		return r
	}
	return c.DefaultRealm()
}

// Login is a principal with a way to obtain tickets. It is safe for concurrent use.
type Login struct {
	Principal gssapi.Principal
	conf      *Config
	keys      []gssapi.ServiceKey // none for a login by a ticket cache

	// exchanges with the KDC, one for each service and one for the login. Callers that need the same one share it, and
	// callers with a ticket do not wait for it.
	exchanges singleflight.Group

	mu      sync.Mutex // never held during an exchange
	granted held       // the ticket that grants others
	tickets map[string]held
}

// held is a ticket, and the time at which the next one is requested. The ticket serves until it ends.
type held struct {
	ticket gssapi.Ticket
	next   time.Time
}

// valid reports whether there is a ticket that has not ended.
func (h held) valid(now time.Time) bool { return h.ticket.Encoded != nil && now.Before(h.ticket.End) }

// fresh reports whether no other ticket is needed yet.
func (h held) fresh(now time.Time) bool { return h.valid(now) && now.Before(h.next) }

// obtained is a ticket of this moment. It is replaced after four fifths of its time. So a KDC may be away for the last
// fifth, two hours of ten, without a failed login.
func obtained(t gssapi.Ticket, now time.Time) held { return held{t, now.Add(t.End.Sub(now) * 4 / 5)} }

// retryTime is the pause after a failed attempt to replace a valid ticket.
const retryTime = 30 * time.Second

// maxTickets bounds the cached tickets of a login.
const maxTickets = 1000

// LoginKeytab makes a login by the keys of a keytab. It asks the KDC only when a ticket is needed.
func (c *Config) LoginKeytab(principal gssapi.Principal, keytab *Keytab) (*Login, error) {
	if principal.Realm == "" {
		principal.Realm = c.DefaultRealm()
	}
	keys, err := keytab.Strong(principal)
	if err != nil {
		return nil, err
	}
	return c.LoginKeys(principal, keys), nil
}

// LoginKeys is LoginKeytab with the keys of the principal, AES keys.
func (c *Config) LoginKeys(principal gssapi.Principal, keys []gssapi.ServiceKey) *Login {
	return &Login{Principal: principal, conf: c, keys: keys, tickets: map[string]held{}}
}

// LoginCache makes a login by a ticket cache: a path or a value of KRB5CCNAME. It cannot renew its tickets.
func (c *Config) LoginCache(name string) (*Login, error) {
	cache, err := loadCache(name)
	if err != nil {
		return nil, err
	}
	l := &Login{Principal: cache.principal, conf: c, tickets: map[string]held{}}
	granting := grantingService(cache.principal.Realm, cache.principal.Realm)
	for _, t := range cache.tickets {
		if !t.Client.Equal(l.Principal) {
			continue
		}
		if t.Service.Equal(granting) {
			l.granted.ticket = t
		} else if len(l.tickets) < maxTickets {
			l.tickets[t.Service.String()] = held{t, t.End.Add(-margin)} // when it was issued is unknown
		}
	}
	if l.granted.ticket.Encoded == nil && len(l.tickets) == 0 {
		return nil, fmt.Errorf("ticket cache %s has no ticket of %s", name, l.Principal)
	}
	return l, nil
}

// Environment has the variables by which MIT's library finds the login of a person or of a script.
type Environment struct {
	Cache  string // KRB5CCNAME, the ticket cache that kinit fills
	Keytab string // KRB5_CLIENT_KTNAME
	UID    int    // of the process, in the name of the cache if Cache is empty
}

// LoginUser makes the login of the environment: by the keytab, as its first principal, or else by the ticket cache.
func (c *Config) LoginUser(env Environment) (*Login, error) {
	if env.Keytab != "" {
		keytab, err := LoadKeytab(strings.TrimPrefix(env.Keytab, "FILE:"))
		if err != nil {
			return nil, err
		}
		if len(keytab.entries) == 0 {
			return nil, fmt.Errorf("keytab %s is empty", env.Keytab)
		}
		return c.LoginKeytab(keytab.entries[0].principal, keytab)
	}
	l, err := c.LoginCache(cmp.Or(env.Cache, fmt.Sprintf("/tmp/krb5cc_%d", env.UID)))
	if err != nil {
		return nil, fmt.Errorf("%w; log in by kinit, or name a keytab in KRB5_CLIENT_KTNAME", err)
	}
	return l, nil
}

// grantingService is the principal that grants tickets of a realm to clients of another one.
func grantingService(realm, of string) gssapi.Principal {
	return gssapi.Principal{Names: []string{"krbtgt", realm}, Realm: of}
}

// margin is the time before its end at which a ticket of a cache is replaced.
const margin = time.Minute

// Ticket returns a ticket for a service, from the KDC if none is cached. The realm of the service may be empty. No
// caller waits for the replacement of a ticket that is still valid.
func (l *Login) Ticket(ctx context.Context, service gssapi.Principal) (gssapi.Ticket, error) {
	if service.Realm == "" && len(service.Names) > 1 {
		service.Realm = l.conf.RealmOf(service.Names[1])
	}
	name := service.String()
	have := l.cached(name)
	if have.fresh(l.conf.Now()) {
		return have.ticket, nil
	}
	exchange := func(ctx context.Context) (gssapi.Ticket, error) { return l.obtain(ctx, name, service) }
	if have.valid(l.conf.Now()) {
		l.begin(ctx, "ticket "+name, exchange)
		return have.ticket, nil
	}
	return l.share(ctx, "ticket "+name, exchange)
}

// obtain gets a ticket for a service from the KDC.
func (l *Login) obtain(ctx context.Context, name string, service gssapi.Principal) (gssapi.Ticket, error) {
	have := l.cached(name)
	if have.fresh(l.conf.Now()) { // by an exchange that just ended
		return have.ticket, nil
	}
	granting, err := l.grantingTicket(ctx)
	if err == nil {
		var t gssapi.Ticket
		if t, err = l.follow(ctx, granting, service); err == nil {
			l.keep(name, obtained(t, l.conf.Now()))
			return t, nil
		}
	}
	if now := l.conf.Now(); have.valid(now) {
		l.keep(name, held{have.ticket, now.Add(retryTime)})
	}
	return gssapi.Ticket{}, err
}

func (l *Login) cached(name string) held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets[name]
}

func (l *Login) keep(name string, h held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tickets) >= maxTickets {
		clear(l.tickets)
	}
	l.tickets[name] = h
}

// share makes an exchange, or waits for the same one of another caller. The end of one caller's context does not end
// the exchange of the others; the exchange itself is bounded by exchangeTime for each KDC.
func (l *Login) share(
	ctx context.Context, key string, exchange func(context.Context) (gssapi.Ticket, error),
) (gssapi.Ticket, error) {
	select {
	case <-ctx.Done():
		return gssapi.Ticket{}, fmt.Errorf("asking the KDC of realm %s: %w", l.Principal.Realm, ctx.Err())
	case r := <-l.begin(ctx, key, exchange):
		t, _ := r.Val.(gssapi.Ticket)
		return t, r.Err
	}
}

// begin starts an exchange, unless the same one runs already, and does not wait for it.
func (l *Login) begin(
	ctx context.Context, key string, exchange func(context.Context) (gssapi.Ticket, error),
) <-chan singleflight.Result {
	return l.exchanges.DoChan(key, func() (any, error) { return exchange(context.WithoutCancel(ctx)) })
}

// grantingTicket returns the ticket that grants others. A login by a keytab is repeated after four fifths of its time;
// if the KDC is away then, the old ticket serves until it expires.
func (l *Login) grantingTicket(ctx context.Context) (gssapi.Ticket, error) {
	l.mu.Lock()
	have := l.granted
	l.mu.Unlock()
	now := l.conf.Now()
	if len(l.keys) == 0 {
		if !have.valid(now) {
			return have.ticket, fmt.Errorf("the login of %s has expired: log in by kinit", l.Principal)
		}
		return have.ticket, nil
	}
	if have.fresh(now) {
		return have.ticket, nil
	}
	t, err := l.share(ctx, "login", func(ctx context.Context) (gssapi.Ticket, error) {
		t, err := l.conf.login(ctx, l.Principal, l.keys)
		now, next := l.conf.Now(), have
		if err == nil {
			next = obtained(t, now)
		} else {
			next.next = now.Add(retryTime)
		}
		l.mu.Lock()
		l.granted = next
		l.mu.Unlock()
		return t, err
	})
	if err != nil && have.valid(now) {
		return have.ticket, nil
	}
	return t, err
}

// maxReferrals bounds the realms between a client and a service.
const maxReferrals = 5

// follow asks for a ticket, and follows the KDC to other realms.
func (l *Login) follow(ctx context.Context, granting gssapi.Ticket, service gssapi.Principal) (gssapi.Ticket, error) {
	realm := l.Principal.Realm
	for range maxReferrals {
		want := service
		if service.Realm != realm {
			want = grantingService(service.Realm, realm)
		}
		t, err := l.conf.ask(ctx, realm, granting, want)
		if err != nil {
			return gssapi.Ticket{}, err
		}
		if want.Equal(service) && t.Service.Equal(service) {
			return t, nil
		}
		granting, realm = t, t.Service.Names[1]
	}
	return gssapi.Ticket{}, fmt.Errorf("more than %d realms lie between %s and %s", maxReferrals, l.Principal, service)
}
