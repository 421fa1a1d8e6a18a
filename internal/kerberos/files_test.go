// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/propertytest"
)

// file builds a keytab or a ticket cache.
type file []byte

func (f file) u8(v byte) file       { return append(f, v) }
func (f file) u16(v int) file       { return binary.BigEndian.AppendUint16(f, uint16(v)) }
func (f file) u32(v int) file       { return binary.BigEndian.AppendUint32(f, uint32(v)) }
func (f file) text16(s string) file { return append(f.u16(len(s)), s...) }
func (f file) data32(s string) file { return append(f.u32(len(s)), s...) }
func (f file) sized(body file) file { return append(f.u32(len(body)), body...) }
func (f file) bytes(b ...byte) file { return append(f, b...) }
func (f file) name(p ...string) file { // the realm comes first
	f = f.u32(1).u32(len(p) - 1).data32(p[0])
	for _, s := range p[1:] {
		f = f.data32(s)
	}
	return f
}

// entryOf is a keytab's entry for yarn/localhost@CREEL.TEST.
func entryOf(kind int, key string) file {
	return file{}.u16(2).text16("CREEL.TEST").text16("yarn").text16("localhost").u32(1).u32(1700000000).u8(3).
		u16(kind).text16(key)
}

func goodKeytab() file {
	return file{}.u16(0x0502).sized(entryOf(17, strings.Repeat("a", 16))).
		u32(-8).bytes(1, 2, 3, 4, 5, 6, 7, 8). // a deleted entry
		sized(entryOf(18, strings.Repeat("b", 32)).u32(300)).
		sized(entryOf(23, strings.Repeat("c", 16)))
}

func credential(f file, service ...string) file {
	return f.name("CREEL.TEST", "alice").name(service...).u16(18).data32(strings.Repeat("k", 32)).
		u32(1700000000).u32(1700000000).u32(1700036000).u32(0).u8(0).u32(0).
		u32(1).u16(2).data32("addr").u32(0).data32("ticket for " + service[1]).data32("")
}

func goodCache() file {
	f := file{}.u16(0x0504).u16(12).u16(1).u16(8).u32(0).u32(0).name("CREEL.TEST", "alice")
	f = credential(f, "X-CACHECONF:", "krb5_ccache_conf_data", "fast_avail")
	f = credential(f, "CREEL.TEST", "krbtgt", "CREEL.TEST")
	return credential(f, "CREEL.TEST", "yarn", "localhost")
}

func TestKeytabIsParsed(t *testing.T) {
	k, err := parseKeytab(goodKeytab())
	if err != nil {
		t.Fatal(err)
	}
	keys := k.Keys(gssapi.Principal{Names: []string{"yarn", "localhost"}, Realm: "CREEL.TEST"})
	if len(keys) != 3 || keys[0].Version != 3 || keys[0].Key.Type != 17 || keys[1].Version != 300 ||
		string(keys[1].Key.Value) != strings.Repeat("b", 32) {
		t.Errorf("%+v", keys)
	}
	if keys := k.Keys(gssapi.Principal{Names: []string{"yarn"}, Realm: "CREEL.TEST"}); keys != nil {
		t.Errorf("another principal has %+v", keys)
	}
}

func TestTicketCacheIsParsed(t *testing.T) {
	c, err := parseCache(goodCache())
	if err != nil {
		t.Fatal(err)
	}
	if c.principal.String() != "alice@CREEL.TEST" || len(c.tickets) != 2 ||
		c.tickets[1].Service.String() != "yarn/localhost@CREEL.TEST" || string(c.tickets[1].Encoded) != "ticket for yarn" ||
		!c.tickets[1].End.Equal(time.Unix(1700036000, 0)) {
		t.Errorf("%+v", c)
	}
}

func TestTruncatedFilesAreRejected(t *testing.T) {
	keytab, cache := goodKeytab(), goodCache()
	whole := map[int]bool{len(cache): true} // lengths at which an entry ends
	for _, f := range []file{
		file{}.u16(0x0504).u16(12).u16(1).u16(8).u32(0).u32(0).name("CREEL.TEST", "alice"),
	} {
		for _, service := range [][]string{
			{"X-CACHECONF:", "krb5_ccache_conf_data", "fast_avail"}, {"CREEL.TEST", "krbtgt", "CREEL.TEST"},
		} {
			whole[len(f)] = true
			f = credential(f, service...)
		}
		whole[len(f)] = true
	}
	for n := range cache {
		if _, err := parseCache(cache[:n]); (err == nil) != whole[n] {
			t.Errorf("%d bytes of a ticket cache: %v", n, err)
		}
	}
	for n := range keytab {
		if k, err := parseKeytab(keytab[:n]); err == nil && len(k.entries) > 2 {
			t.Errorf("%d bytes of a keytab: %+v", n, k)
		}
	}
	for _, bad := range []string{
		"", "\x05", "\x05\x01", "#!/bin/sh", "\x05\x02\x7f\xff\xff\xff", "\x05\x02\x80\x00\x00\x00",
	} {
		if _, err := parseKeytab([]byte(bad)); err == nil {
			t.Errorf("keytab %q was accepted", bad)
		}
		if _, err := parseCache([]byte(bad)); err == nil {
			t.Errorf("cache %q was accepted", bad)
		}
	}
}

const conf = `[libdefaults]
  default_realm = CREEL.TEST
  clockskew = 120
[realms]
  CREEL.TEST = {
    kdc = 127.0.0.1:88
  }
[domain_realm]
  .far.test = FAR.TEST
`

func TestConfigurationIsParsed(t *testing.T) {
	c, err := ParseConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultRealm() != "CREEL.TEST" || c.Skew() != 2*time.Minute || c.RealmOf("a.far.test") != "FAR.TEST" ||
		c.RealmOf("b") != "CREEL.TEST" {
		t.Errorf("%s, %s, %s", c.DefaultRealm(), c.Skew(), c.RealmOf("a.far.test"))
	}
	for _, id := range c.krb.LibDefaults.DefaultTGSEnctypeIDs {
		if id < 17 || id > 20 {
			t.Errorf("type %d is used", id)
		}
	}
	for text, want := range map[string]string{
		"[libdefaults]\n default_tgs_enctypes = arcfour-hmac-md5\n": "must have a type of AES",
		"[libdefaults]\n clockskew = soon\n":                        "a line is malformed",
	} {
		if _, err := ParseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent")
	if _, err := LoadKeytab(path); err == nil || err.Error() != "keytab "+path+" does not exist" {
		t.Error(err)
	}
	if c, err := LoadConfig(path); err != nil || c.DefaultRealm() != "" {
		t.Error(c, err)
	}
	c, err := ParseConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.LoginCache(path); err == nil || err.Error() != "ticket cache "+path+" does not exist" {
		t.Error(err)
	}
	if _, err := c.LoginCache("KEYRING:x"); err == nil || !strings.Contains(err.Error(), "KEYRING are not supported") {
		t.Error(err)
	}
}

// The cached tickets are used while they are valid; after that only a new kinit helps.
func TestExpiredCacheAsksForKinit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(path, goodCache(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1700000000, 0)
	c.Now = func() time.Time { return now }
	l, err := c.LoginCache(path)
	if err != nil {
		t.Fatal(err)
	}
	service := gssapi.Principal{Names: []string{"yarn", "localhost"}}
	if ticket, err := l.Ticket(t.Context(), service); err != nil || string(ticket.Encoded) != "ticket for yarn" {
		t.Fatal(ticket, err)
	}
	now = time.Unix(1700036000, 0)
	if _, err := l.Ticket(t.Context(), service); err == nil ||
		err.Error() != "the login of alice@CREEL.TEST has expired: log in by kinit" {
		t.Error(err)
	}
}

// A keytab is used as its first principal, before a ticket cache.
func TestUserLogsInByEnvironment(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := ParseConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	keytab, cache, absent := write("keytab", string(goodKeytab())), write("cache", string(goodCache())), filepath.Join(dir, "absent")
	parsed, err := parseKeytab(goodKeytab())
	if err != nil {
		t.Fatal(err)
	}
	first := parsed.entries[0].principal.String()
	for name, x := range map[string]struct {
		env  Environment
		want string
	}{
		"a cache":         {Environment{Cache: "FILE:" + cache}, "alice@CREEL.TEST"},
		"a keytab":        {Environment{Keytab: "FILE:" + keytab}, first},
		"both":            {Environment{Keytab: keytab, Cache: cache}, first},
		"no cache":        {Environment{Cache: absent}, absent + " does not exist; log in by kinit, or name a keytab in KRB5_CLIENT_KTNAME"},
		"no own cache":    {Environment{UID: 1 << 30}, "ticket cache /tmp/krb5cc_1073741824 does not exist; log in by kinit"},
		"no keytab":       {Environment{Keytab: absent, Cache: cache}, "keytab " + absent + " does not exist"},
		"an empty keytab": {Environment{Keytab: write("empty", "\x05\x02"), Cache: cache}, "is empty"},
		"another cache":   {Environment{Cache: "KCM:0"}, "KCM are not supported, FILE is; log in by kinit"},
	} {
		l, err := c.LoginUser(x.env)
		if err == nil && l.Principal.String() != x.want || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %+v, %v; want %s", name, l, err, x.want)
		}
	}
}

func TestKeytabWithoutPrincipalIsRejected(t *testing.T) {
	k, err := parseKeytab(goodKeytab())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(conf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.LoginKeytab(gssapi.Principal{Names: []string{"alice"}}, k); err == nil ||
		err.Error() != "the keytab has no AES key of alice@CREEL.TEST" {
		t.Error(err)
	}
}

func FuzzFiles(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(goodKeytab()))
	f.Add([]byte(goodCache()))
	f.Add([]byte(conf))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := parseKeytab(b); err == nil {
			for _, e := range k.entries {
				if len(k.Keys(e.principal)) == 0 {
					t.Errorf("%v is not found", e.principal)
				}
			}
		}
		if c, err := parseCache(b); err == nil && len(c.tickets) > len(b)/10 {
			t.Errorf("%d tickets in %d bytes", len(c.tickets), len(b))
		}
		if c, err := ParseConfig(string(b)); err == nil && c.krb == nil {
			t.Error("no configuration and no error")
		}
	})
}
