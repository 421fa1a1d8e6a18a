// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"slices"
	"strings"
	"testing"
)

// A name of Hadoop's about rights, secrets, TLS, identity, stores or exclusivity is in the registry, with its status,
// or has a row of its own. So a new release's name cannot be passed over.
func TestSafetyNamesOfHadoopHaveARow(t *testing.T) {
	checked := 0
	for _, name := range registry().hadoopKeyNames() {
		if !startsWith(name, ownFamilies) || startsWith(name, queueKeys) || !safetyWords.MatchString(name) {
			continue
		}
		checked++
		if _, ok := Find(name); ok {
			continue
		}
		if !slices.ContainsFunc(ignoredRows, func(r ignoredRow) bool { return r.applies(name) }) {
			t.Errorf("%s has no row in ignoredRows", name)
		}
	}
	if checked < 250 {
		t.Errorf("only %d names are about safety", checked)
	}
}

// Each row is reached by its example, states its reason, and names keys that are not in the registry.
func TestRowsOfIgnoredKeysAreReached(t *testing.T) {
	for i, row := range ignoredRows {
		key := row.key
		if key == "" {
			key = row.keys[0]
		}
		if row.why == "" || row.effect == Stops && (row.try == "" || row.example == "") {
			t.Errorf("row of %s lacks a text or an example", key)
		}
		if _, ok := Find(key); ok {
			t.Errorf("%s is in the registry, and its row is never read", key)
		}
		if row.example == "" || strings.Contains(key, "*") {
			continue
		}
		for _, role := range Roles {
			got := loadDefines(t, append([]string{key + "=" + row.example}, row.with...)...).passedOver(role)
			var effects []string
			for _, p := range got {
				if p.Key == key {
					effects = append(effects, p.effect.String()+p.why)
				}
			}
			want := []string{row.effect.String() + row.why}
			if !row.concerns(key, role) {
				want = nil
			}
			if !slices.Equal(effects, want) {
				t.Errorf("row %d, %s=%s at %s: %q, want %q", i, key, row.example, role, effects, want)
			}
		}
	}
}

func loadDefines(t *testing.T, defines ...string) *Settings {
	t.Helper()
	s, err := Load(Sources{
		ConfDir: t.TempDir(),
		Defines: defines,
		System:  func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Settings of Hadoop's that ask for more safety: each stops the daemon or warns at its start, and Hadoop's default is
// silent.
func TestSafetySettingsStopOrWarn(t *testing.T) {
	const csi = "org.apache.hadoop."
	for _, c := range []struct {
		role  Role
		stops bool
		key   string
		value string
		with  string
	}{
		{RM, true, "yarn.authorization-provider", csi + "ranger.RangerYarnAuthorizer", ""},
		{Router, true, "yarn.authorization-provider", csi + "ranger.RangerYarnAuthorizer", ""},
		{RM, true, "hadoop.http.filter.initializers", "com.example.Filter", ""},
		{Router, true, "hadoop.http.filter.initializers", csi + "http.lib.StaticUserWebFilter,com.example.Filter", ""},
		{Rebalancer, true, "hadoop.http.filter.initializers", "com.example.Filter", ""},
		{RM, true, "hadoop.security.impersonation.provider.class", "com.example.Provider", ""},
		{Proxy, true, "hadoop.security.saslproperties.resolver.class", csi + "security.WhitelistBasedResolver", ""},
		{RM, true, "yarn.resourcemanager.application-https.policy", "STRICT", ""},
		{RM, false, "yarn.resourcemanager.application-https.policy", "LENIENT", ""},
		{RM, false, "hadoop.http.rest-csrf.enabled", "true", ""},
		{Router, false, "hadoop.http.rest-csrf.enabled", "true", ""},
		{RM, true, "yarn.resourcemanager.webapp.xfs-filter.xframe-options", "DENY", ""},
		{RM, false, "yarn.resourcemanager.webapp.xfs-filter.xframe-options", "ALLOW-FROM https://a", ""},
		{RM, false, "yarn.webapp.xfs-filter.enabled", "false", ""},
		{RM, true, "yarn.resourcemanager.fs.state-store.uri", "hdfs://nn/rm", "yarn.resourcemanager.recovery.enabled=true"},

		{RM, false, "yarn.resourcemanager.zk-state-store.root-node.acl", "sasl:rm:rwcda", ""},
		{Router, false, "yarn.federation.state-store.sql.jdbc-class", "com.mysql.jdbc.Driver", ""},
		{RM, false, "yarn.acl.reservation-enable", "true", ""},
		{RM, true, "yarn.resourcemanager.webapp.ui-actions.enabled", "false", ""},
		{RM, false, "yarn.resourcemanager.webapp.delegation-token-auth-filter.enabled", "false", ""},
		{RM, true, "yarn.intermediate-data-encryption.enable", "true", ""},
		{RM, true, "yarn.node-labels.exclusive-enforced-partitions", "gpu", ""},
		{RM, true, "yarn.resourcemanager.configuration.provider-class", csi + "yarn.FileSystemBasedConfigurationProvider", ""},
		{RM, true, "yarn.resourcemanager.submission-preprocessor.enabled", "true", ""},
		{RM, false, "yarn.resourcemanager.application-tag-based-placement.username.whitelist", "hive", ""},
		{Router, true, "yarn.router.webapp.interceptor-class.pipeline", "com.example.Quota", ""},
		{Proxy, true, "yarn.nodemanager.amrmproxy.interceptor-class.pipeline", "com.example.Quota", ""},
		{RM, false, "hadoop.ssl.enabled.protocols", "TLSv1.3", ""},
		{RM, false, "hadoop.http.authentication.signer.secret.provider", "zookeeper", ""},
		{RM, false, "hadoop.http.authentication.kerberos.name.rules", "DEFAULT", ""},
		{RM, false, "hadoop.security.group.mapping.ldap.conversion.rule", "to_upper", ""},
		{RM, false, "hadoop.security.group.mapping.ldap.bind.users", "two", ""},
		{RM, true, "hadoop.security.group.mapping.ldap.bind.users", "two", ldapMapping},
		{Router, true, "hadoop.security.group.mapping.ldap.group.search.filter.pattern", "uid", ldapMapping},
		{RM, false, "hadoop.security.crypto.cipher.suite", "SM4/CTR/NoPadding", ""},
		{RM, true, "security.resourcetracker.protocol.acls", "yarn", "hadoop.security.authorization=true"},
		{RM, false, "yarn.web-proxy.keytab", "/etc/proxy.keytab", ""},
		// Misspelt, and keys of releases to come.
		{RM, true, "yarn.acl.enabled", "true", ""},
		{RM, true, "hadoop.security.authorisation", "true", ""},
		{RM, true, "yarn.authorisation-provider", "com.example.Class", ""},
		{RM, false, "yarn.resourcemanager.audit.signature.required", "true", ""},
		{Router, false, "hadoop.security.tls13.required", "true", ""},
	} {
		var with []string
		if c.with != "" {
			with = []string{c.with}
		}
		s := loadDefines(t, append(with, c.key+"="+c.value)...)
		err := s.Refused(c.role)
		if stopped := err != nil && strings.Contains(err.Error(), c.key) && IsProblem(err); stopped != c.stops {
			t.Errorf("%s with %s=%s: %v", c.role, c.key, c.value, err)
		}
		warned := strings.Contains(strings.Join(s.WarningsFor(c.role), "\n"), c.key)
		if warned == c.stops {
			t.Errorf("%s with %s=%s: warnings %q", c.role, c.key, c.value, s.WarningsFor(c.role))
		}
		if text, ok := registry().hadoop[c.key]; ok {
			s := loadDefines(t, append(with, c.key+"="+text)...)
			if err := s.Refused(c.role); err != nil || len(s.WarningsFor(c.role)) > 0 {
				t.Errorf("%s with Hadoop's %s=%s: %v, %q", c.role, c.key, text, err, s.WarningsFor(c.role))
			}
		}
	}
}

// The other keys that creel does not use are in one line; those of other programs are not.
func TestIgnoredKeysAreListedOnce(t *testing.T) {
	s := loadDefines(t, "yarn.fail-fast=true", "yarn.resourcemanager.node-ip-cache.expiry-interval-secs=5",
		"yarn.resourcemanager.adress=x", "yarn.scheduler.fair.max.assign=7",
		"yarn.nodemanager.container-executor.class=C", "yarn.client.failover-retries=3", "dfs.replication=2",
		"yarn.nodemanager.local-dirs=/data", "mapreduce.job.queuename=a", "our.variable=1",
		"yarn.scheduler.skip.node.multiplier=2")
	misspelt := "-D: yarn.resourcemanager.adress=x has no effect: creel does not know it; " +
		"did you mean yarn.resourcemanager.address?"
	want := "creel does not use these keys (creel config explain KEY): yarn.fail-fast (-D), " +
		"yarn.resourcemanager.node-ip-cache.expiry-interval-secs (-D), yarn.scheduler.fair.max.assign (-D)"
	if got := s.WarningsFor(RM); !slices.Equal(got, []string{misspelt, want}) {
		t.Errorf("%q, want %q and %q", got, misspelt, want)
	}
	if got := s.WarningsFor(Router); len(got) != 1 || !strings.HasSuffix(got[0], ": yarn.fail-fast (-D)") {
		t.Errorf("a router: %q", got)
	}
	if got := s.WarningsFor(NM); len(got) > 0 {
		t.Errorf("simulated nodes: %q", got)
	}
}

// Keys that hadoop.security.sensitive-config-keys names are masked, as are those that creel always masks.
func TestSensitiveKeysOfTheOperatorAreMasked(t *testing.T) {
	s := loadDefines(t, sensitiveKeys+"=pin$,\n  ^our\\.",
		"our.word=one", "their.pin=two", "their.pins=three", "a.password=four")
	var masked []string
	for _, e := range s.Effective(false) {
		if e.Value == "****" {
			masked = append(masked, e.Key)
		}
	}
	if want := []string{"a.password", "our.word", "their.pin"}; !slices.Equal(masked, want) {
		t.Errorf("masked %q, want %q", masked, want)
	}
	s = loadDefines(t, "fs.azure.account.key.x=one")
	if e := s.Effective(false); e[0].Value != "****" {
		t.Errorf("%+v by default", e)
	}
	if _, err := Load(Sources{ConfDir: t.TempDir(), Defines: []string{sensitiveKeys + "=(?!a)b"}}); !IsProblem(err) {
		t.Errorf("an expression that cannot be used: %v", err)
	}
}
