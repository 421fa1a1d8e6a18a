// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A real daemon stops at a setting that asks for more safety than creel has, and logs the others before that.
func TestDaemonsStopAtSafetySettings(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ daemon, stop, warn string }{
		{"rm", "yarn.authorization-provider=com.example.Ours", "yarn.acl.reservation-enable=true"},
		{"rm", "yarn.resourcemanager.application-https.policy=STRICT", "yarn.fail-fast=true"},
		{"rm", "yarn.acl.enabled=true", "hadoop.http.rest-csrf.enabled=true"},
		{"router", "hadoop.http.filter.initializers=com.example.Ours", "hadoop.http.header.X-Ours=a"},
		{"router", "hadoop.security.credential.provider.path=kms://http@keys:9600/kms", "hadoop.http.rest-csrf.enabled=true"},
		{"router", "hadoop.security.saslproperties.resolver.class=com.example.Ours", "yarn.web-proxy.keytab=/keytab"},
		{"proxy", "hadoop.security.impersonation.provider.class=com.example.Ours", "yarn.fail-fast=true"},
		{"rebalancer", "hadoop.ssl.require.client.cert=true", "hadoop.http.rest-csrf.enabled=true"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a daemon that does not stop must not hang the test
		defer cancel()
		cmd := exec.CommandContext(ctx, program, c.daemon, "-D", c.stop, "-D", c.warn)
		cmd.Env = append(os.Environ(), "CREEL_TEST_AS_CREEL=1", "HADOOP_CONF_DIR=")
		out, err := cmd.CombinedOutput()
		stop, _, _ := strings.Cut(c.stop, "=")
		warn, _, _ := strings.Cut(c.warn, "=")
		if code := cmd.ProcessState.ExitCode(); err == nil || code != exitUsage {
			t.Errorf("%s with %s: exit code %d, %v", c.daemon, c.stop, code, err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		warned, stopped := false, false
		for _, line := range lines {
			stopped = stopped || strings.HasPrefix(line, "creel: ") && strings.Contains(line, stop)
			warned = warned || strings.Contains(line, "WARN") && strings.Contains(line, warn)
		}
		if !warned || !stopped {
			t.Errorf("%s with %s and %s:\n%s", c.daemon, c.stop, c.warn, out)
		}
	}
}
