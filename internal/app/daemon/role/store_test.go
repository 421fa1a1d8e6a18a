// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"net/url"
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
