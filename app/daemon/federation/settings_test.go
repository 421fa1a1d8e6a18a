// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/app/daemon/federation"
)

// A configuration directory overrides the small-machine defaults of a federation in one process, except the store and
// the journals.
func TestFilesOverrideInProcessFederationDefaults(t *testing.T) {
	dir, conf := t.TempDir(), t.TempDir()
	site := "<configuration>"
	for key, value := range map[string]string{
		"yarn.scheduler.minimum-allocation-mb": "512", "creel.log.level": "debug",
		"creel.store.url": "redis://cluster:6379", "creel.rm.data": "/var/lib/creel/rm",
	} {
		site += "<property><name>" + key + "</name><value>" + value + "</value></property>"
	}
	if err := os.WriteFile(filepath.Join(conf, "yarn-site.xml"), []byte(site+"</configuration>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string][]string{
		"":   {"128", "warn", "memory", dir},
		conf: {"512", "debug", "memory", dir},
	} {
		s, err := federation.Settings(dir, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range []string{
			"yarn.scheduler.minimum-allocation-mb", "creel.log.level", "creel.store.url", "creel.rm.data",
		} {
			if is, _ := s.Lookup(key); is.Raw != want[i] {
				t.Errorf("from %q %s is %q, want %q", from, key, is.Raw, want[i])
			}
		}
		if s, err = federation.Settings(dir, from, []string{"creel.log.level=error"}); err != nil {
			t.Fatal(err)
		}
		if is, _ := s.Lookup("creel.log.level"); is.Raw != "error" {
			t.Errorf("-D creel.log.level=error gives %q", is.Raw)
		}
	}
}
