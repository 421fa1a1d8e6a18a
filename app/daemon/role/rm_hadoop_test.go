// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

func TestPlaceOfHadoopsStateIsAURL(t *testing.T) {
	for url, want := range map[string][]string{
		"zk://z1:2181,z2/rmstore": {"z1:2181", "z2:2181", "/rmstore"},
		"zk://z1:2000/a/b/":       {"z1:2000", "/a/b"},
		"zk://z1/":                {"z1:2181", "/"},
	} {
		hosts, path, err := zkURL(url)
		if got := append(hosts, path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %q (%v)", url, got, err)
		}
	}
	s := minimal(t)
	for _, url := range []string{"", "z1:2181/rmstore", "redis://z1/0", "zk://z1:2181", "zk:///rmstore", "zk://:1/rmstore"} {
		if _, err := ReadHadoop(t.Context(), s, url); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%q: %v", url, err)
		}
	}
	s = minimal(t, "hadoop.zk.auth=sasl:a")
	if _, err := ReadHadoop(t.Context(), s, "zk://127.0.0.1:1/rmstore"); err == nil || !strings.Contains(err.Error(), "hadoop.zk.auth") {
		t.Errorf("a login that creel lacks: %v", err)
	}
}
