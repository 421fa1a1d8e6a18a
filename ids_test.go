// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"errors"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
)

// The texts are those Hadoop's command line prints for the same numbers.
func TestIDsPrintAsYARNPrintsThem(t *testing.T) {
	app := ApplicationID{1410901177871, 1}
	attempt := AttemptID{app, 1}
	for _, c := range []struct {
		got  interface{ String() string }
		want string
	}{
		{app, "application_1410901177871_0001"},
		{ApplicationID{1410901177871, 12345}, "application_1410901177871_12345"},
		{attempt, "appattempt_1410901177871_0001_000001"},
		{ContainerID{attempt, 5}, "container_1410901177871_0001_01_000005"},
		{NewContainerID(attempt, 17, 5), "container_e17_1410901177871_0001_01_000005"},
		{NewContainerID(attempt, 3, 1234567), "container_e03_1410901177871_0001_01_1234567"},
		{NewContainerID(attempt, 1000, 1), "container_e1000_1410901177871_0001_01_000001"},
		{NodeID{"localhost", 45454}, "localhost:45454"},
		{ReservationID{1410901177871, 7}, "reservation_1410901177871_0007"},
		{AttemptID{app, -1}, "appattempt_1410901177871_0001_-00001"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestIDsReadBack(t *testing.T) {
	attempt := AttemptID{ApplicationID{1410901177871, 12}, 3}
	for _, c := range []ContainerID{{attempt, 1}, NewContainerID(attempt, 17, 5), NewContainerID(attempt, 1<<22, 1<<39)} {
		if got, err := ParseContainerID(c.String()); err != nil || got != c {
			t.Errorf("%s read back as %v, %v", c, got, err)
		}
	}
	if got, err := ParseAttemptID(attempt.String()); err != nil || got != attempt {
		t.Errorf("attempt read back as %v, %v", got, err)
	}
	if got, err := ParseNodeID("[::1]:8041"); err != nil || got != (NodeID{"[::1]", 8041}) {
		t.Errorf("IPv6 node read as %v, %v", got, err)
	}
}

func TestInvalidIDErrorNamesExpectedForm(t *testing.T) {
	for _, s := range []string{"", "application", "application_1", "application_x_1", "application_1_2_3", "application_1_99999999999",
		"application_+1_1", "job_1_1", "application_1_ 1", strings.Repeat("9", 1<<20)} {
		if _, err := ParseApplicationID(s); !errors.Is(err, ErrInvalidRequest) || len(err.Error()) > 400 {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	for _, s := range []string{"container_1_1_1", "container_e_1_1_1_1", "container_e-1_1_1_1_1", "container_1_1_1_-1", "container_e99999999_1_1_1_1", "container_1_1_1_1_1"} {
		if _, err := ParseContainerID(s); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"host", ":1", "host:", "host:65536", "host:-1", "host:x"} {
		if _, err := ParseNodeID(s); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// Any accepted input is printed in the one canonical form, which parses to the same id.
func FuzzIDs(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{"application_1410901177871_0001", "appattempt_1410901177871_0001_000001",
		"container_e17_1410901177871_0001_01_000005", "container_1_1_1_1", "localhost:45454", "reservation_1_1", "application_-5_-7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := ParseApplicationID(s); err == nil {
			if b, err := ParseApplicationID(a.String()); err != nil || a != b {
				t.Fatalf("%q: %v, %v, %v", s, a, b, err)
			}
		}
		if a, err := ParseAttemptID(s); err == nil {
			if b, err := ParseAttemptID(a.String()); err != nil || a != b {
				t.Fatalf("%q: %v, %v, %v", s, a, b, err)
			}
		}
		if a, err := ParseContainerID(s); err == nil {
			if b, err := ParseContainerID(a.String()); err != nil || a != b {
				t.Fatalf("%q: %v, %v, %v", s, a, b, err)
			}
		}
		if a, err := ParseNodeID(s); err == nil {
			if b, err := ParseNodeID(a.String()); err != nil || a != b {
				t.Fatalf("%q: %v, %v, %v", s, a, b, err)
			}
		}
		if a, err := ParseReservationID(s); err == nil {
			if b, err := ParseReservationID(a.String()); err != nil || a != b {
				t.Fatalf("%q: %v, %v, %v", s, a, b, err)
			}
		}
	})
}
