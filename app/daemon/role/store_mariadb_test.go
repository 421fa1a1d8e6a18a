// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
)

const sqlClass = "org.apache.hadoop.yarn.server.federation.store.impl.SQLFederationStateStore"

func TestSettingsOfAStoreInMariaDB(t *testing.T) {
	load := func(defines ...string) *settings.Settings {
		t.Helper()
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: defines})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := mariaDBStore(load("creel.store.url=mysql://ann@db:3307/fed?tls=true", "creel.store.password-file="+file,
		sqlPassword+"=clear", "yarn.federation.state-store.heartbeat-interval-secs=10"))
	if err != nil || c.Address != "db:3307" || c.Database != "fed" || c.User != "ann" || c.Password != "from-file" ||
		c.TLS != "true" || !c.Confirm || c.HadoopLease != 30*time.Second {
		t.Errorf("the settings are read as %+v, %v", c, err)
	}
	hadoop := []string{
		"yarn.federation.enabled=true", federationClass + "=" + sqlClass, sqlUser + "=bob", sqlPassword + "=clear",
		sqlURL + "=jdbc:mysql://db/FederationStateStore?useSSL=false&connectTimeout=3",
	}
	s := load(hadoop...)
	c, err = mariaDBStore(s)
	if err != nil || c.Address != "db:3306" || c.Database != "FederationStateStore" || c.User != "bob" ||
		c.Password != "clear" || c.TLS != "" {
		t.Errorf("Hadoop's settings are read as %+v, %v", c, err)
	}
	if shown := shownStore(s); shown != "mysql://db/FederationStateStore" {
		t.Errorf("the store is shown as %s", shown)
	}
	for want, defines := range map[string][]string{
		"it has a password, which lists of processes show": {"creel.store.url=mysql://ann:secret-word@db/fed"},
		"it lacks a host, a user":                          {"creel.store.url=mysql://db/fed"},
		"it has the parameter charset":                     {"creel.store.url=mysql://ann@db/fed?charset=utf8"},
		"tls is preferred":                                 {"creel.store.url=mysql://ann@db/fed?tls=preferred"},
		"clear-text-fallback=false forbids it": append(hadoop,
			"hadoop.security.credential.clear-text-fallback=false"),
	} {
		err := checkStore(load(defines...))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%v: %v, want %q", defines, err, want)
		}
	}
}

func TestUnusableStoreInMariaDBIsNamedWithoutPassword(t *testing.T) {
	s, err := settings.Load(settings.Sources{
		ConfDir: t.TempDir(), Defines: []string{"creel.store.url=mysql://ann@127.0.0.1:1/fed", sqlPassword + "=secret-word"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err = OpenStore(ctx, s)
	if !errors.Is(err, creel.ErrUnavailable) || !strings.Contains(err.Error(), "mysql://ann@127.0.0.1:1/fed") ||
		strings.Contains(err.Error(), "secret-word") {
		t.Errorf("a store that does not answer: %v", err)
	}
}
