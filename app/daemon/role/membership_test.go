// SPDX-License-Identifier: Apache-2.0

package role

import "testing"

func TestPublishedHostIsReachable(t *testing.T) {
	m := &Membership{Host: "rm.example"}
	for bound, want := range map[string]string{
		"[::]:8032":      "rm.example:8032",
		"0.0.0.0:8032":   "rm.example:8032",
		"127.0.0.1:8032": "127.0.0.1:8032",
		"10.1.2.3:8032":  "10.1.2.3:8032",
		"":               "",
	} {
		if got := m.reachable(bound); got != want {
			t.Errorf("%q is told as %q, want %q", bound, got, want)
		}
	}
	if host, err := hostOf("rm.example:8032"); err != nil || host != "rm.example" {
		t.Errorf("the configured host is lost: %q, %v", host, err)
	}
	if host, err := hostOf("0.0.0.0:8032"); err != nil || host == "" || host == "0.0.0.0" {
		t.Errorf("every interface is told as %q, %v", host, err)
	}
}
