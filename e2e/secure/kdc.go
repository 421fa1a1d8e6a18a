// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

// A Realm describes the realm of a KDC.
type Realm struct {
	Name string // CREEL.TEST if empty
	// Enctypes are the encryption types of all keys, as MIT names them. Empty: the AES types of RFC 3962.
	Enctypes string
	// Lifetime is the longest lifetime of a ticket, as MIT writes it. Empty: 10h.
	Lifetime string
	// Skew is the permitted difference of clocks in seconds. Empty: 300.
	Skew string
}

// KDC is a running KDC with its realm.
type KDC struct {
	Realm   string
	Address string // host:port, TCP and UDP
	dir     string
	realm   Realm
	process *process.Process
}

// StartKDC makes a realm and serves it until the test ends.
func StartKDC(t testing.TB, r Realm) *KDC {
	t.Helper()
	if r.Name == "" {
		r.Name = "CREEL.TEST"
	}
	if r.Enctypes == "" {
		r.Enctypes = "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96"
	}
	r.Lifetime, r.Skew = cmp.Or(r.Lifetime, "10h"), cmp.Or(r.Skew, "300")
	k := &KDC{Realm: r.Name, Address: process.FreeAddress(t, "127.0.0.1"), dir: t.TempDir(), realm: r}
	k.write(t)
	k.run(t, "kdb5_util", "create", "-s", "-W", "-r", r.Name, "-P", "master-of-the-tests")
	k.Serve(t)
	return k
}

// Serve starts the KDC, at its start and after its process was stopped.
func (k *KDC) Serve(t testing.TB) {
	t.Helper()
	k.process = process.Start(t, process.Command{
		Name: "krb5kdc", Args: []string{program(t, "krb5kdc"), "-n", "-r", k.Realm}, Env: k.Environment(), Dir: k.dir,
	})
	k.process.WaitPort(t, k.Address)
}

// The configuration of the realm's clients, and of its KDC.
const (
	clientConf = `[libdefaults]
  default_realm = REALM
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  clockskew = SKEW
  udp_preference_limit = 1
  default_tkt_enctypes = ENCTYPES
  default_tgs_enctypes = ENCTYPES
  permitted_enctypes = ENCTYPES
[realms]
  REALM = {
    kdc = ADDRESS
  }
[domain_realm]
  localhost = REALM
`
	kdcConf = `[kdcdefaults]
  kdc_listen = ADDRESS
  kdc_tcp_listen = ADDRESS
[realms]
  REALM = {
    database_name = DIR/principal
    key_stash_file = DIR/stash
    acl_file = DIR/kadm5.acl
    max_life = LIFETIME
    max_renewable_life = 7d
    supported_enctypes = SALTED
  }
[logging]
  kdc = FILE:DIR/kdc.log
  default = FILE:DIR/other.log
`
)

// write writes the two configuration files.
func (k *KDC) write(t testing.TB) {
	t.Helper()
	values := strings.NewReplacer(
		"REALM", k.Realm, "ADDRESS", k.Address, "DIR", k.dir,
		"LIFETIME", k.realm.Lifetime, "SKEW", k.realm.Skew, "ENCTYPES", k.realm.Enctypes,
		"SALTED", strings.ReplaceAll(k.realm.Enctypes, " ", ":normal ")+":normal",
	)
	for name, text := range map[string]string{"krb5.conf": clientConf, "kdc.conf": kdcConf} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(values.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ConfigFile returns the path of the krb5.conf of the realm's clients.
func (k *KDC) ConfigFile() string { return filepath.Join(k.dir, "krb5.conf") }

// Environment returns the variables with which a program of MIT's finds the realm.
func (k *KDC) Environment() []string {
	return []string{"KRB5_CONFIG=" + k.ConfigFile(), "KRB5_KDC_PROFILE=" + filepath.Join(k.dir, "kdc.conf")}
}

// AddPrincipal adds a principal with a random key, and returns the path of a keytab with the key. options are further
// options of MIT's addprinc.
func (k *KDC) AddPrincipal(t testing.TB, name string, options ...string) (keytab string) {
	t.Helper()
	keytab = filepath.Join(k.dir, strings.NewReplacer("/", "_", "@", "_").Replace(name)+".keytab")
	add := append([]string{"-r", k.Realm, "addprinc", "-randkey"}, options...)
	k.run(t, "kadmin.local", append(add, name)...)
	k.run(t, "kadmin.local", "-r", k.Realm, "ktadd", "-k", keytab, "-norandkey", name)
	return keytab
}

// Login fills a new ticket cache from a keytab with MIT's kinit, and returns its path.
func (k *KDC) Login(t testing.TB, name, keytab string, options ...string) (cache string) {
	t.Helper()
	cache = filepath.Join(t.TempDir(), "cache")
	k.run(t, "kinit", append(append([]string{"-c", cache, "-k", "-t", keytab}, options...), name)...)
	return cache
}

// run runs a program of MIT's to its end and returns its output.
func (k *KDC) run(t testing.TB, name string, args ...string) string {
	t.Helper()
	all, code := k.try(t, name, args...)
	if code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", name, strings.Join(args, " "), code, all)
	}
	return all
}

// try is run for a program that may fail.
func (k *KDC) try(t testing.TB, name string, args ...string) (all string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, all, code = process.Run(ctx, t, process.Command{
		Name: name, Args: append([]string{program(t, name)}, args...), Env: k.Environment(), Dir: k.dir,
	})
	return all, code
}

func program(t testing.TB, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	if err != nil {
		t.Fatalf("the Kerberos tests need %s: %v", name, err)
	}
	return path
}
