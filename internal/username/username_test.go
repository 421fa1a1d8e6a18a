// SPDX-License-Identifier: Apache-2.0

package username_test

import (
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/username"
)

// The expectations are the answers of UserGroupInformation.createRemoteUser(name).getShortUserName() of Hadoop 3.4.2.
func TestShortNamesAsHadoopHasThem(t *testing.T) {
	for name, want := range map[string]string{
		"alice": "alice", "alice@REALM": "alice", "svc/host@REALM": "svc", "svc/host": "svc", "a b@R": "a b",
		"a/b/c": "a/b/c", "/x": "/x", " alice ": " alice ", `DOM\alice`: `DOM\alice`, "": "",
	} {
		if got, err := username.Short(name); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"@R", "a@b@c", "a/b/c@R", "alice@", "a@R/x", "a/@R", "@", "/@R"} {
		if got, err := username.Short(name); err == nil {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// A short name stays as it is, unless it is no principal at all.
func FuzzShort(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, name := range []string{"alice@REALM", "svc/host@REALM", "a/b/c", "@/"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		short, err := username.Short(name)
		if err != nil {
			return
		}
		if again, err := username.Short(short); err != nil || again != short || !strings.HasPrefix(name, short) {
			t.Fatalf("%q is %q, which is %q, %v", name, short, again, err)
		}
	})
}
