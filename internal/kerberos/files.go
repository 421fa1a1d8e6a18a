// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
)

// maxFile bounds keytabs and ticket caches.
const maxFile = 16 << 20

// readFile reads a small file. The error has the reason without Go's words.
func readFile(what, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("%s %s is larger than %d MB", what, path, maxFile>>20)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %s does not exist", what, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s %s is not readable for this user", what, path)
	}
	return nil, fmt.Errorf("%s %s cannot be read", what, path)
}

// cursor reads big-endian fields. After the first missing byte it returns zeros, and bad is true.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() int {
	if b := c.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) u32() int {
	if b := c.take(4); b != nil {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

func (c *cursor) text16() string { return string(c.take(c.u16())) }
func (c *cursor) data32() []byte { return c.take(c.u32()) }

// Keytab is the keys of principals.
type Keytab struct{ entries []entry }

type entry struct {
	principal gssapi.Principal
	key       gssapi.ServiceKey
}

// LoadKeytab reads a keytab.
func LoadKeytab(path string) (*Keytab, error) {
	b, err := readFile("keytab", path)
	if err != nil {
		return nil, err
	}
	k, err := parseKeytab(b)
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %w", path, err)
	}
	return k, nil
}

var errFile = errors.New("the file is damaged, or has another format")

// parseKeytab parses a keytab of version 2.
func parseKeytab(b []byte) (*Keytab, error) {
	c := cursor{rest: b}
	if c.u16() != 0x0502 {
		return nil, errFile
	}
	k := &Keytab{}
	for len(c.rest) > 0 {
		size := c.u32()
		if size < 0 { // a deleted entry
			c.take(-size)
			continue
		}
		one := cursor{rest: c.take(size)}
		if size == 0 || c.bad {
			break
		}
		e, ok := one.entry()
		if !ok {
			return nil, errFile
		}
		k.entries = append(k.entries, e)
	}
	if c.bad {
		return nil, errFile
	}
	return k, nil
}

func (c *cursor) entry() (e entry, ok bool) {
	n := c.u16()
	e.principal.Realm = c.text16()
	for range n {
		if c.bad {
			return e, false
		}
		e.principal.Names = append(e.principal.Names, c.text16())
	}
	c.u32() // type of the name
	c.u32() // time
	e.key.Version = int(c.u8())
	e.key.Key.Type = int32(c.u16())
	e.key.Key.Value = c.take(c.u16())
	if len(c.rest) >= 4 && !c.bad {
		if v := c.u32(); v != 0 {
			e.key.Version = v
		}
	}
	return e, !c.bad
}

// Keys returns the keys of a principal.
func (k *Keytab) Keys(p gssapi.Principal) (keys []gssapi.ServiceKey) {
	for _, e := range k.entries {
		if e.principal.Equal(p) {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// Strong returns the AES keys of a principal. None is an error.
func (k *Keytab) Strong(p gssapi.Principal) ([]gssapi.ServiceKey, error) {
	keys := slices.DeleteFunc(k.Keys(p), func(k gssapi.ServiceKey) bool { return !slices.Contains(strong, k.Key.Type) })
	if len(keys) == 0 {
		return nil, fmt.Errorf("the keytab has no AES key of %s", p)
	}
	return keys, nil
}

// cached is the contents of a ticket cache that a login needs.
type cached struct {
	principal gssapi.Principal
	tickets   []gssapi.Ticket
}

// loadCache reads a ticket cache, by its path or its name in KRB5CCNAME.
func loadCache(name string) (cached, error) {
	path := name
	if kind, rest, ok := strings.Cut(name, ":"); ok && !strings.Contains(kind, "/") {
		if kind != "FILE" {
			return cached{}, fmt.Errorf("ticket cache %s: caches of type %s are not supported, FILE is", name, kind)
		}
		path = rest
	}
	b, err := readFile("ticket cache", path)
	if err != nil {
		return cached{}, err
	}
	c, err := parseCache(b)
	if err != nil {
		return cached{}, fmt.Errorf("ticket cache %s: %w", path, err)
	}
	return c, nil
}

// parseCache parses a ticket cache of version 4 or 3.
func parseCache(b []byte) (out cached, err error) {
	c := cursor{rest: b}
	version := c.u16()
	switch version {
	case 0x0504:
		c.take(c.u16()) // tags
	case 0x0503:
	default:
		return out, errFile
	}
	out.principal = c.principal()
	for len(c.rest) > 0 && !c.bad {
		if ticket, ok := c.credential(version == 0x0503); ok {
			out.tickets = append(out.tickets, ticket)
		}
	}
	if c.bad || len(out.principal.Names) == 0 {
		return out, errFile
	}
	return out, nil
}

func (c *cursor) principal() (p gssapi.Principal) {
	c.u32() // type of the name
	n := c.u32()
	p.Realm = string(c.data32())
	for i := 0; i < n && !c.bad; i++ {
		p.Names = append(p.Names, string(c.data32()))
	}
	return p
}

// configRealm is the realm of entries that are not tickets.
const configRealm = "X-CACHECONF:"

// credential reads an entry; ok is false if it is no ticket.
func (c *cursor) credential(twice bool) (t gssapi.Ticket, ok bool) {
	t.Client, t.Service = c.principal(), c.principal()
	if t.Key.Type = int32(c.u16()); twice {
		c.u16()
	}
	t.Key.Value = c.data32()
	c.u32() // time of the login
	c.u32() // start
	t.End = time.Unix(int64(uint32(c.u32())), 0)
	c.u32() // end of renewal
	own := c.u8() == 0
	c.u32() // flags
	for range 2 {
		for n := c.u32(); n > 0 && !c.bad; n-- { // addresses, then data of authorisation
			c.u16()
			c.data32()
		}
	}
	t.Encoded = c.data32()
	c.data32() // a second ticket
	return t, own && !c.bad && t.Service.Realm != configRealm
}
