// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/groups/directory"
	"github.com/creelrm/creel/internal/settings"
)

const (
	groupMapping = "hadoop.security.group.mapping"
	overLDAP     = groupMapping + ".ldap."
	ldapClass    = "org.apache.hadoop.security.LdapGroupsMapping"
	ldapTrust    = overLDAP + "ssl.truststore"
	ldapKeystore = overLDAP + "ssl.keystore"
	ldapPassword = overLDAP + "bind.password"
)

// machineGroups are the names of Hadoop's classes whose group mappings use this machine's groups.
var machineGroups = []string{
	"JniBasedUnixGroupsMapping", "JniBasedUnixGroupsMappingWithFallback", "ShellBasedUnixGroupsMapping",
}

// mappingClass returns the name of the group mapping's class, without its package.
func mappingClass(s *settings.Settings) string {
	class := s.String(groupMapping)
	return class[strings.LastIndexByte(class, '.')+1:]
}

// knownMapping reports whether creel supports the group mapping.
func knownMapping(s *settings.Settings) bool {
	class := mappingClass(s)
	return class == "NullGroupsMapping" || class == "LdapGroupsMapping" || slices.Contains(machineGroups, class)
}

// groupsOf returns the group mapping: hadoop.user.group.static.mapping.overrides (user=group1,group2;user2=…), and
// for other users hadoop.security.group.mapping.
func groupsOf(s *settings.Settings) (*groups.Groups, error) {
	static := map[string][]string{}
	for entry := range strings.SplitSeq(s.String("hadoop.user.group.static.mapping.overrides"), ";") {
		if user, groups, ok := strings.Cut(entry, "="); ok {
			static[strings.TrimSpace(user)] = settings.SplitList(groups)
		}
	}
	keep := s.Duration("hadoop.security.groups.cache.secs")
	mapped := groups.OfMachine
	switch mappingClass(s) {
	case "NullGroupsMapping":
		return groups.New(func(user string) []string { return static[user] }, keep), nil
	case "LdapGroupsMapping":
		d, err := ldapDirectory(s)
		if err != nil {
			return nil, s.Problem(groupMapping, incompleteLDAP+": "+err.Error(), byGroupsPage)
		}
		mapped = d.Groups
	}
	return groups.Open(groups.Config{
		Mapping: func(ctx context.Context, user string) ([]string, error) {
			if groups, ok := static[user]; ok {
				return groups, nil
			}
			return mapped(ctx, user)
		},
		Keep:     keep,
		KeepNone: s.Duration("hadoop.security.groups.negative-cache.secs"),
		Slow:     s.Duration("hadoop.security.groups.cache.warn.after.ms"),
		Logger:   slog.Default(),
	}), nil
}

// ldapDirectory reads the settings of LdapGroupsMapping. It does not call the directory.
func ldapDirectory(s *settings.Settings) (*directory.Directory, error) {
	c := directory.Config{
		BindUser:       s.String(overLDAP + "bind.user"),
		UserBase:       s.String(overLDAP + "userbase"),
		GroupBase:      s.String(overLDAP + "groupbase"),
		UserFilter:     s.String(overLDAP + "search.filter.user"),
		GroupFilter:    s.String(overLDAP + "search.filter.group"),
		Member:         s.String(overLDAP + "search.attr.member"),
		GroupName:      s.String(overLDAP + "search.attr.group.name"),
		MemberOf:       s.String(overLDAP + "search.attr.memberof"),
		UID:            s.String(overLDAP + "posix.attr.uid.name"),
		GID:            s.String(overLDAP + "posix.attr.gid.name"),
		Levels:         s.Int(overLDAP + "search.group.hierarchy.levels"),
		ConnectTime:    s.Duration(overLDAP + "connection.timeout.ms"),
		ReadTime:       s.Duration(overLDAP + "read.timeout.ms"),
		SearchTime:     s.Duration(overLDAP + "directory.search.timeout"),
		Attempts:       s.Int(overLDAP + "num.attempts"),
		BeforeFailover: s.Int(overLDAP + "num.attempts.before.failover"),
	}
	for _, server := range s.List(overLDAP + "url") {
		if rest, plain := strings.CutPrefix(server, "ldap://"); plain && s.Bool(overLDAP+"ssl") {
			server = "ldaps://" + rest
		}
		c.URLs = append(c.URLs, server)
	}
	if len(c.URLs) == 0 {
		return nil, errors.New(overLDAP + "url is not set")
	}
	var err error
	if c.BindPassword, err = bindPassword(s); err != nil {
		return nil, err
	}
	if c.TLS, err = ldapTLS(s); err != nil {
		return nil, err
	}
	return directory.Open(c)
}

// bindPassword returns the password of the directory's user.
func bindPassword(s *settings.Settings) (string, error) {
	if alias := s.String(ldapPassword + ".alias"); alias != "" {
		secret, found, err := credential(s, alias)
		if err == nil && !found {
			err = fmt.Errorf("no credential provider has %s, the value of %s.alias", alias, ldapPassword)
		}
		return secret, err
	}
	return storedPassword(s, ldapPassword, ldapPassword+".file")
}

// storedPassword returns a password: of the credential providers, else of the settings, else of a file.
func storedPassword(s *settings.Settings, key, fileKey string) (string, error) {
	file := s.String(fileKey) // also where it is not needed: which settings are read does not depend on their values
	if word, err := passwordOf(s, key); word != "" || err != nil || file == "" {
		return word, err
	}
	return passwordFrom(s, fileKey)
}

// ldapTLS reads the truststore and the keystore of the directory's client.
func ldapTLS(s *settings.Settings) (*tls.Config, error) {
	c := &tls.Config{}
	if path := s.String(ldapTrust); path != "" {
		word, err := storedPassword(s, ldapTrust+".password", ldapTrust+".password.file")
		if err != nil {
			return nil, err
		}
		if c.RootCAs, err = certs.Roots(path, word); err != nil {
			return nil, fmt.Errorf("%s: %w", ldapTrust, err)
		}
	}
	if path := s.String(ldapKeystore); path != "" {
		word, err := storedPassword(s, ldapKeystore+".password", ldapKeystore+".password.file")
		if err != nil {
			return nil, err
		}
		own, err := certs.Store{Keystore: path, Password: word}.Load(time.Now())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ldapKeystore, err)
		}
		c.Certificates = []tls.Certificate{*own}
	}
	return c, nil
}

const (
	incompleteLDAP = "the settings of LdapGroupsMapping are incomplete"
	byGroupsPage   = "set the missing keys, by docs/operations/security.md"
)

// ldapIncomplete reports the missing settings of LdapGroupsMapping.
func ldapIncomplete(s *settings.Settings) (bool, string) {
	if mappingClass(s) != "LdapGroupsMapping" {
		return false, ""
	}
	if _, err := ldapDirectory(s); err != nil {
		return true, err.Error()
	}
	return false, ""
}

// openBind returns a warning if the password of the directory's user is sent without TLS.
func openBind(s *settings.Settings) (out []string) {
	if mappingClass(s) != "LdapGroupsMapping" || s.String(overLDAP+"bind.user") == "" || s.Bool(overLDAP+"ssl") {
		return nil
	}
	for _, server := range s.List(overLDAP + "url") {
		if strings.HasPrefix(server, "ldap://") {
			out = append(out, fmt.Sprintf("the password of %sbind.user and the groups of users are not "+
				"encrypted on the network: write ldaps:// in place of %s", overLDAP, server))
		}
	}
	return out
}

// groupFigures exports lookups of users' groups.
type groupFigures struct{ of *groups.Groups }

var (
	groupLookups = figure("group_lookups_total", "Lookups of a user's groups by result: found, none, failed.", "result")
	groupFailing = figure("group_lookups_failing", "1 if the last lookup of a user's groups failed.")
)

// exportGroups adds the metrics of a group mapping, if there is one.
func exportGroups(h *health.Health, g *groups.Groups) {
	if g != nil {
		h.Register(groupFigures{g})
	}
}

// Describe implements prometheus.Collector.
func (groupFigures) Describe(out chan<- *prometheus.Desc) {
	out <- groupLookups
	out <- groupFailing
}

// Collect implements prometheus.Collector.
func (f groupFigures) Collect(out chan<- prometheus.Metric) {
	for _, r := range []groups.Result{groups.Found, groups.None, groups.Failed} {
		n := float64(f.of.Lookups(r))
		out <- prometheus.MustNewConstMetric(groupLookups, prometheus.CounterValue, n, r.String())
	}
	failing := 0.0
	if f.of.Failing() {
		failing = 1
	}
	out <- prometheus.MustNewConstMetric(groupFailing, prometheus.GaugeValue, failing)
}
