// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-ldap/ldap/v3"
)

const (
	mostLookups = 16   // at a time
	mostGroups  = 5000 // of one search
)

// Config configures a Directory; the names are those of Hadoop's keys.
type Config struct {
	URLs []string    // ldap://HOST:PORT or ldaps://HOST:PORT; after failures the next one is called
	TLS  *tls.Config // of ldaps; the server's name is that of the URL

	BindUser, BindPassword string // no user: an anonymous bind

	UserBase, GroupBase     string // DNs
	UserFilter, GroupFilter string // {0} is the user in the first, and its DN in the second
	Member                  string // a group's attribute with its members' DNs
	GroupName               string // a group's attribute with its name
	MemberOf                string // a user's attribute with its groups' DNs, or "": a second search
	UID, GID                string // a user's attributes, for posixAccount and posixGroup
	Levels                  int    // of groups in groups that count

	ConnectTime, ReadTime, SearchTime time.Duration

	Attempts       int // of one lookup
	BeforeFailover int // attempts at one server
}

// Directory is safe for concurrent use.
type Directory struct {
	conf  Config
	posix bool
	next  atomic.Int64 // index of the server to call
	slots chan struct{}
}

// Open checks a configuration. It does not call the directory.
func Open(c Config) (*Directory, error) {
	if len(c.URLs) == 0 {
		return nil, errors.New("no server is named")
	}
	for _, text := range c.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.Hostname() == "" || u.User != nil ||
			strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
			return nil, fmt.Errorf("%q is not ldap://HOST:PORT or ldaps://HOST:PORT", text)
		}
	}
	d := &Directory{
		conf: c, slots: make(chan struct{}, mostLookups),
		posix: strings.Contains(c.GroupFilter, "posixGroup") && strings.Contains(c.UserFilter, "posixAccount"),
	}
	if !strings.Contains(c.UserFilter, "{0}") {
		return nil, fmt.Errorf("the user filter %q has no {0} for the user", c.UserFilter)
	}
	for _, filter := range []string{fill(c.UserFilter, "x"), d.groupsOf("cn=x"), d.posixGroups("1", "x")} {
		if _, err := ldap.CompileFilter(filter); err != nil {
			return nil, fmt.Errorf("the filter %q is invalid", filter)
		}
	}
	if c.BindUser != "" && c.BindPassword == "" {
		return nil, fmt.Errorf("the password of %s is not set: the login would be anonymous", c.BindUser)
	}
	return d, nil
}

// fill writes escaped values into a filter's {0}, {1}.
func fill(filter string, values ...string) string {
	var pairs []string
	for i, v := range values {
		pairs = append(pairs, fmt.Sprintf("{%d}", i), ldap.EscapeFilter(v))
	}
	return strings.NewReplacer(pairs...).Replace(filter)
}

// groupsOf is the filter of the groups of a DN.
func (d *Directory) groupsOf(dn string) string {
	return fill("(&"+d.conf.GroupFilter+"("+d.conf.Member+"={0}))", dn)
}

// posixGroups is the filter of the groups of a posixAccount.
func (d *Directory) posixGroups(gid, uid string) string {
	return fill("(&"+d.conf.GroupFilter+"(|("+d.conf.GID+"={0})("+d.conf.Member+"={1})))", gid, uid)
}

// Groups returns a user's groups, none for a user that the directory does not have.
func (d *Directory) Groups(ctx context.Context, user string) ([]string, error) {
	if user == "" {
		return nil, nil
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var err error
	for tried := 1; ; tried++ {
		at := d.next.Load()
		server := d.conf.URLs[at%int64(len(d.conf.URLs))]
		var groups []string
		if groups, err = d.find(ctx, server, user); err == nil {
			return groups, nil
		}
		err = fmt.Errorf("%s: %w", server, err)
		if tried%max(d.conf.BeforeFailover, 1) == 0 {
			d.next.CompareAndSwap(at, at+1)
		}
		if tried >= d.conf.Attempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

// find calls one server.
func (d *Directory) find(ctx context.Context, server, user string) ([]string, error) {
	conn, err := d.connect(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("no connection: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if d.conf.BindUser != "" {
		if err := conn.Bind(d.conf.BindUser, d.conf.BindPassword); err != nil {
			return nil, fmt.Errorf("the login of %s failed: %w", d.conf.BindUser, err)
		}
	}
	s := search{d, conn}
	wanted := []string{d.conf.GroupName, d.conf.UID, d.conf.GID}
	if d.conf.MemberOf != "" {
		wanted = append(wanted, d.conf.MemberOf)
	}
	entries, err := s.do(d.conf.UserBase, fill(d.conf.UserFilter, user), 2, wanted)
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) || len(entries) > 1:
		return nil, errors.New("the user filter finds several entries")
	case err != nil || len(entries) == 0:
		return nil, err
	}
	var found names
	if d.conf.MemberOf != "" {
		found = d.namesIn(entries[0])
	}
	if len(found) == 0 || d.conf.Levels > 0 {
		if found, err = s.groups(entries[0]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// connect opens a connection. Timeouts are those of Hadoop's keys.
func (d *Directory) connect(ctx context.Context, server string) (*ldap.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.conf.ConnectTime)
	defer cancel()
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	secure := u.Scheme == "ldaps"
	port := ldap.DefaultLdapPort
	if secure {
		port = ldap.DefaultLdapsPort
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	var c net.Conn
	if secure {
		conf := &tls.Config{}
		if d.conf.TLS != nil {
			conf = d.conf.TLS.Clone()
		}
		conf.ServerName, conf.MinVersion = u.Hostname(), tls.VersionTLS12
		c, err = (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", address)
	} else {
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	conn := ldap.NewConn(c, secure)
	conn.Start()
	conn.SetTimeout(d.conf.ReadTime)
	return conn, nil
}

// namesIn returns the groups in a user's MemberOf attribute, none unless all of them name themselves in their DN.
func (d *Directory) namesIn(user *ldap.Entry) (found names) {
	for _, text := range user.GetEqualFoldAttributeValues(d.conf.MemberOf) {
		dn, err := ldap.ParseDN(text)
		if err != nil || len(dn.RDNs) == 0 || len(dn.RDNs[0].Attributes) == 0 {
			return nil
		}
		first := dn.RDNs[0].Attributes[0]
		if !strings.EqualFold(first.Type, d.conf.GroupName) {
			return nil
		}
		found.add(first.Value)
	}
	return found
}

// names is a list without duplicates.
type names []string

func (n *names) add(name string) {
	if !slices.Contains(*n, name) {
		*n = append(*n, name)
	}
}

// search has the searches of one lookup.
type search struct {
	*Directory
	conn *ldap.Conn
}

func (s search) do(base, filter string, most int, attributes []string) ([]*ldap.Entry, error) {
	seconds := int(math.Ceil(s.conf.SearchTime.Seconds()))
	r, err := s.conn.Search(ldap.NewSearchRequest(base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, most, seconds,
		false, filter, attributes, nil))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject):
		return nil, fmt.Errorf("the base %q does not exist", base)
	case err != nil:
		return nil, fmt.Errorf("search %s: %w", filter, err)
	}
	return r.Entries, nil
}

// groups searches the groups of a user, and those that have them as members.
func (s search) groups(user *ldap.Entry) (names, error) {
	filter := s.groupsOf(user.DN)
	if s.posix {
		gid, uid := user.GetEqualFoldAttributeValue(s.conf.GID), user.GetEqualFoldAttributeValue(s.conf.UID)
		if gid == "" || uid == "" {
			return nil, fmt.Errorf("%s lacks %s or %s", user.DN, s.conf.GID, s.conf.UID)
		}
		filter = s.posixGroups(gid, uid)
	}
	var found names
	seen := map[string]bool{}
	for level := 0; ; level++ {
		entries, err := s.do(s.conf.GroupBase, filter, mostGroups, []string{s.conf.GroupName})
		if err != nil {
			return nil, err
		}
		var parents strings.Builder
		for _, e := range entries {
			name := e.GetEqualFoldAttributeValue(s.conf.GroupName)
			if name == "" {
				return nil, fmt.Errorf("the group %s lacks %s", e.DN, s.conf.GroupName)
			}
			found.add(name)
			if !seen[e.DN] {
				seen[e.DN] = true
				parents.WriteString("(" + s.conf.Member + "=" + ldap.EscapeFilter(e.DN) + ")")
			}
		}
		if parents.Len() == 0 || s.posix || level == s.conf.Levels {
			return found, nil
		}
		filter = "(&" + s.conf.GroupFilter + "(|" + parents.String() + "))"
	}
}
