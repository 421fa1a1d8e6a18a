// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A store that cannot be used at the start is named without its password, with
// the setting that names it and the store's own reason.
func TestUnusableStoreErrorHasItsReason(t *testing.T) {
	const nobody = "127.0.0.1:1"
	for store, reason := range map[string]string{
		"redis://bob:hunter2@" + nobody + "?timeout=100ms":                   "connection refused: no server listens there; start it",
		"redis://bob:hunter2@" + redistest.Start(t).Addr + "/0":              "WRONGPASS invalid username-password pair or user is disabled.; check user, password",
		"redis-sentinel://" + nobody + "/m?sentinel_password=hunter2&tls=no": "",
	} {
		s, err := settings.Load(settings.Sources{
			ConfDir: t.TempDir(),
			Defines: []string{"creel.store.url=" + store, "creel.store.timeout=100ms"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for given := 2 * time.Second; given < time.Minute; given *= 2 { // a slow machine learns the reason later
			ctx, cancel := context.WithTimeout(t.Context(), given)
			_, _, err = OpenStore(ctx, s)
			cancel()
			if err == nil {
				t.Fatalf("%s opens", store)
			}
			if strings.Contains(err.Error(), reason) {
				break
			}
		}
		text := err.Error()
		for _, bad := range []string{"hunter2", "%!", "<nil>", "dial tcp"} {
			if strings.Contains(text, bad) {
				t.Errorf("the error shows %q: %s", bad, text)
			}
		}
		u, _ := url.Parse(store)
		for _, want := range []string{reason, u.Host, "creel.store.url"} {
			if !strings.Contains(text, want) {
				t.Errorf("the error lacks %q: %s", want, text)
			}
		}
		if reason != "" && !errors.Is(err, creel.ErrUnavailable) {
			t.Errorf("%v is not of the kind unavailable", err)
		}
	}
}

// Two federations are given one Redis by mistake. Their members would become one federation.
func TestStoreOfAnotherFederationIsRejected(t *testing.T) {
	server := redistest.Start(t)
	open := func(defines ...string) error {
		t.Helper()
		s, err := settings.Load(settings.Sources{
			ConfDir: t.TempDir(), Defines: append(defines, "creel.store.url="+server.URL()),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := OpenStore(t.Context(), s)
		if err == nil {
			err = done()
		}
		return err
	}
	for i, defines := range [][]string{
		nil,
		{"creel.federation.name=north"},
		{"creel.federation.name=north"},
		nil,
		{"creel.federation.name=south", "creel.store.prefix=south"},
	} {
		if err := open(defines...); err != nil {
			t.Errorf("start %d with %q: %v", i, defines, err)
		}
	}
	err := open("creel.federation.name=south")
	if err == nil || !strings.Contains(err.Error(), `"south"`) || !strings.Contains(err.Error(), "creel.store.prefix") {
		t.Errorf("the store of another federation: %v", err)
	}
}

// The password of Redis is read from a file of one line, and from nowhere else at the same time.
func TestStorePasswordIsReadFromItsFile(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "creel", "on", ">right word", "~*", "&*", "+@all")
	server.Do("CONFIG", "SET", "requirepass", "right word")
	file := filepath.Join(t.TempDir(), "password")
	open := func(store string, defines ...string) error {
		t.Helper()
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: append(defines,
			"creel.store.url="+store, "creel.store.password-file="+file, "creel.store.timeout=5s")})
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := OpenStore(t.Context(), s)
		if err == nil {
			err = done()
		}
		return err
	}
	for _, c := range []struct{ text, store, want string }{
		{"right word", server.URL(), ""},
		{"right word\r\n", "redis://creel@" + server.Addr, ""},
		{"wrong", server.URL(), "WRONGPASS"},
		{"right word", "redis://creel:right%20word@" + server.Addr, "there is a second one"},
		{"\n", server.URL(), "it does not contain one line"},
		{"right word\nmore", server.URL(), "it does not contain one line"},
		{strings.Repeat("a", 5000), server.URL(), "it does not contain one line"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := open(c.store)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q with %s: %v", c.text, c.store, err)
		}
		if err != nil && strings.Contains(err.Error(), "right") {
			t.Errorf("the password is in %v", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := open(server.URL()); !settings.IsProblem(err) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}

// Passwords are read from keystores of Hadoop's before files. No message contains one.
func TestStorePasswordIsReadFromKeystore(t *testing.T) {
	const keystores = "../../../internal/jceks/testdata/"
	here, err := filepath.Abs(keystores)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"of-keystore": "s3cret\n", "plain": "in clear text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none, guarded := "jceks://file"+here+"/none.jceks", "localjceks://file"+here+"/guarded.jceks"
	const path = "hadoop.security.credential.provider.path="
	right := "hadoop.security.credstore.java-keystore-provider.password-file=" + filepath.Join(dir, "of-keystore")
	const noFallback = "hadoop.security.credential.clear-text-fallback=false"
	plain := "creel.store.password-file=" + filepath.Join(dir, "plain")
	for _, c := range []struct {
		name, variable  string
		defines         []string
		want, sentinels string
		problem         string
	}{
		{name: "without providers", defines: []string{plain}, want: "in clear text"},
		{name: "password none", defines: []string{path + none, plain, noFallback}, want: "first secret", sentinels: "second"},
		{name: "password file", defines: []string{path + guarded, right}, want: "guarded"},
		{name: "variable", variable: "s3cret", defines: []string{path + guarded}, want: "guarded"},
		{name: "two providers", variable: "s3cret", defines: []string{path + guarded + "," + guarded}, want: "guarded"},
		{name: "wrong password", variable: "other", defines: []string{path + guarded}, problem: "password is another one"},
		{name: "no keystore", defines: []string{path + "jceks://file" + dir + "/away.jceks"}, problem: "no such file"},
		{name: "not a keystore", defines: []string{path + "jceks://file" + dir + "/plain"}, problem: "too short"},
		{name: "fallback forbidden", defines: []string{noFallback, "creel.store.url=redis://u:pw@h"}, problem: "forbids"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(keystoreVariable, c.variable)
			}
			s, err := settings.Load(settings.Sources{
				ConfDir: t.TempDir(), Defines: append([]string{"creel.store.url=redis://h"}, c.defines...),
			})
			if err != nil {
				t.Fatal(err)
			}
			conf, _, err := storeConfig(s)
			switch {
			case c.problem == "" && err != nil, c.problem != "" && (!settings.IsProblem(err) || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("%v, want %q", err, c.problem)
			case c.problem == "" && (conf.Password != c.want || conf.SentinelPassword != c.sentinels):
				t.Errorf("%q and %q", conf.Password, conf.SentinelPassword)
			}
		})
	}
}

// The keystore's password file is searched beside the configuration file that names it, as Hadoop does.
func TestKeystorePasswordFileIsBesideConfiguration(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs("../../../internal/jceks/testdata/guarded.jceks")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"pw": " s3cret\n",
		"core-site.xml": "<configuration><property><name>" + credentialProviders + "</name><value>jceks://file" + here +
			"</value></property><property><name>" + keystorePassword + "</name><value>pw</value></property></configuration>",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: []string{"creel.store.url=redis://h"}})
	if err != nil {
		t.Fatal(err)
	}
	conf, _, err := storeConfig(s)
	if err != nil || conf.Password != "guarded" {
		t.Errorf("%q, %v", conf.Password, err)
	}
	if secrets := secretFiles(s); !slices.Contains(secrets, here) || !slices.Contains(secrets, filepath.Join(dir, "pw")) {
		t.Errorf("the files with secrets: %v", secrets)
	}
}

// Sentinels with a password of their own are asked with the one in its file.
func TestSentinelPasswordIsReadFromItsFile(t *testing.T) {
	group := redistest.StartSentinels(t)
	for _, sentinel := range group.Sentinels {
		sentinel.Do("ACL", "SETUSER", "default", "resetpass", ">word", "on")
	}
	file := filepath.Join(t.TempDir(), "password")
	for _, c := range []struct{ text, want string }{{"word\n", ""}, {"other\n", "cannot be used"}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: []string{
			"creel.store.url=" + group.URL(), "creel.store.sentinel-password-file=" + file, "creel.store.timeout=1s",
		}})
		if err != nil {
			t.Fatal(err)
		}
		patience := time.Minute
		if c.want != "" {
			patience = 3 * time.Second
		}
		limited, cancel := context.WithTimeout(t.Context(), patience)
		_, done, err := OpenStore(limited, s)
		cancel()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
		if err == nil {
			if err := done(); err != nil {
				t.Error(err)
			}
		}
	}
}
