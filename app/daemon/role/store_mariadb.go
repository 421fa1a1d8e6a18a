// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/mariadb"
)

const (
	mysqlScheme = "mysql://"
	sqlUser     = "yarn.federation.state-store.sql.username"
	sqlPassword = "yarn.federation.state-store.sql.password"
	sqlURL      = "yarn.federation.state-store.sql.url"
)

// overMariaDB reports whether the state store is in MariaDB.
func overMariaDB(s *settings.Settings) bool {
	return strings.HasPrefix(s.String("creel.store.url"), mysqlScheme)
}

// mariaDBStore reads the settings of a state store in MariaDB: mysql://USER@HOST:PORT/DATABASE?tls=true.
func mariaDBStore(s *settings.Settings) (conf mariadb.Config, err error) {
	const key = "creel.store.url"
	u, err := url.Parse(s.String(key))
	if err != nil {
		return conf, s.Problem(key, "it is not a URL", "write mysql://USER@HOST:PORT/DATABASE")
	}
	if _, has := u.User.Password(); has {
		return conf, s.Problem(key, "it has a password, which lists of processes show",
			"set creel.store.password-file, or hadoop credential create "+sqlPassword+" -provider jceks://file/PATH")
	}
	user := cmp.Or(u.User.Username(), s.String(sqlUser))
	database := cmp.Or(strings.Trim(u.Path, "/"), "FederationStateStore")
	if u.Hostname() == "" || user == "" || strings.Contains(database, "/") {
		return conf, s.Problem(key, "it lacks a host, a user or the name of one database",
			"write mysql://USER@HOST:PORT/DATABASE, or set "+sqlUser)
	}
	tls := mariadb.TLS(u.Query().Get("tls"))
	for name := range u.Query() {
		if name != "tls" {
			return conf, s.Problem(key, "it has the parameter "+name, "tls=true and tls=skip-verify are the only ones")
		}
	}
	switch tls {
	case "false":
		tls = mariadb.TLSOff
	case mariadb.TLSOff, mariadb.TLSVerified, mariadb.TLSUnverified:
	default:
		return conf, s.Problem(key, "tls is "+string(tls), "write tls=true, tls=skip-verify or tls=false")
	}
	password, err := mariaDBPassword(s)
	if err != nil {
		return conf, err
	}
	return mariadb.Config{
		Address: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), Database: database,
		User: user, Password: password, TLS: tls, Validate: ValidPolicy, Confirm: true,
		HadoopLease: hadoopLease(s),
		HadoopHTTPS: httpsOnly(s),
	}, nil
}

// namesDatabase reports whether Hadoop's key names the database of creel.store.url, or none.
func namesDatabase(s *settings.Settings) bool {
	other := s.String(sqlURL)
	u, err := url.Parse(s.String("creel.store.url"))
	return other == "" || err == nil && strings.Contains(other, "//"+u.Host+u.Path)
}

// hadoopLease is the lease of members that Hadoop's ResourceManagers registered: three of their heartbeats.
func hadoopLease(s *settings.Settings) time.Duration {
	return min(time.Hour, 3*s.Duration("yarn.federation.state-store.heartbeat-interval-secs"))
}

// mariaDBPassword reads the password by creel's settings, or else by Hadoop's.
func mariaDBPassword(s *settings.Settings) (string, error) {
	password, err := storePassword(s, "creel.store.password", "creel.store.password-file")
	if password != "" || err != nil {
		return password, err
	}
	if password, found, err := credential(s, sqlPassword); found || err != nil {
		return password, err
	}
	password = s.String(sqlPassword)
	if password != "" && !s.Bool("hadoop.security.credential.clear-text-fallback") {
		return "", s.Problem(sqlPassword, "hadoop.security.credential.clear-text-fallback=false forbids it",
			"hadoop credential create "+sqlPassword+" -provider jceks://file/PATH")
	}
	return password, nil
}
