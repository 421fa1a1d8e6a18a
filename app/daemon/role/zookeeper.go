// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/kerberos/rpcauth"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/zkclient"
)

// Keys of sessions in ZooKeeper, of a ResourceManager's state and of a federation's store.
const (
	zkScheme  = "zk://"
	zkAddress = "hadoop.zk.address"
	zkTimeout = "hadoop.zk.timeout-ms"
	zkDigests = "hadoop.zk.auth"
	zkRights  = "hadoop.zk.acl"

	zkTLS            = "hadoop.zk.ssl.enabled"
	zkTLSOfRM        = "yarn.resourcemanager.zk-client-ssl.enabled" // Hadoop's older name
	zkKeystore       = "hadoop.zk.ssl.keystore.location"
	zkKeystoreWord   = "hadoop.zk.ssl.keystore.password"
	zkTruststore     = "hadoop.zk.ssl.truststore.location"
	zkTruststoreWord = "hadoop.zk.ssl.truststore.password"

	zkPrincipal       = "hadoop.zk.kerberos.principal"
	zkKeytab          = "hadoop.zk.kerberos.keytab"
	zkServerPrincipal = "hadoop.zk.server.principal"
)

// zkLogin reads the settings of sessions with the ZooKeeper servers of some addresses. Its error is a settings.Problem.
func zkLogin(s *settings.Settings, addresses []string, log *slog.Logger) (servers zkclient.Servers, err error) {
	servers = zkclient.Servers{Addresses: addresses, Timeout: s.Duration(zkTimeout), Log: log}
	if servers.Auth, err = zkAuth(s.String(zkDigests)); err != nil {
		return servers, s.Problem(zkDigests, err.Error(), "")
	}
	if servers.ACL, err = zkACL(s.String(zkRights)); err != nil {
		return servers, s.Problem(zkRights, err.Error(), "")
	}
	if servers.TLS, err = zkTrust(s, servers.Log); err != nil {
		return servers, s.Problem(zkTLS, err.Error(), byZooKeeperPage)
	}
	if servers.SASL, err = zkTicket(s, addresses); err != nil {
		return servers, s.Problem(zkPrincipal, err.Error(), byZooKeeperPage)
	}
	return servers, nil
}

// byZooKeeperPage is the remedy for incomplete settings.
const byZooKeeperPage = "set the missing keys, by docs/operations/zookeeper.md"

// zkTrust reads the TLS of connections; nil: they are not encrypted. Either of Hadoop's two switches turns it on.
func zkTrust(s *settings.Settings, log *slog.Logger) (*certs.Trust, error) {
	if !s.Bool(zkTLS) && !s.Bool(zkTLSOfRM) {
		return nil, nil
	}
	word, err := passwordOf(s, zkTruststoreWord)
	if err != nil {
		return nil, err
	}
	trust, err := certs.OpenTrust(s.String(zkTruststore), word, cmp.Or(log, slog.Default()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zkTruststore, err)
	}
	own := certs.Store{Keystore: s.String(zkKeystore)}
	if own.Keystore == "" {
		return trust, nil
	}
	if own.Password, err = passwordOf(s, zkKeystoreWord); err != nil {
		return nil, err
	}
	if err := trust.Present(own, time.Now()); err != nil {
		return nil, fmt.Errorf("%s: %w", zkKeystore, err)
	}
	return trust, nil
}

// zkTicket reads the login by Kerberos; nil: there is none.
func zkTicket(s *settings.Settings, addresses []string) (zkclient.Login, error) {
	keytab := s.String(zkKeytab)
	if s.String(zkPrincipal) == "" && keytab == "" {
		return nil, nil
	}
	conf, err := kerberos.LoadConfig(kerberos.ConfigPath())
	if err != nil {
		return nil, err
	}
	self, err := hostPrincipal(s, zkPrincipal, conf.DefaultRealm(), "")
	if err != nil {
		return nil, err
	}
	keys, err := serviceKeys(keytab, self)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zkKeytab, err)
	}
	login := conf.LoginKeys(self, keys)
	pattern, err := gssapi.ParsePrincipal(cmp.Or(s.String(zkServerPrincipal), "zookeeper"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zkServerPrincipal, err)
	}
	for _, address := range addresses {
		host, _, _ := net.SplitHostPort(address)
		if _, err := serverOf(pattern, self.Realm, host); err != nil {
			return nil, err
		}
	}
	return func(host string) (zkclient.Exchange, error) {
		server, err := serverOf(pattern, self.Realm, host)
		if err != nil {
			return nil, err
		}
		unprotected := []gssapi.Protection{gssapi.Authentication} // ZooKeeper has no other
		return rpcauth.Client(login, []gssapi.Principal{server}, unprotected).Begin(server.Names[0], server.Names[1])
	}, nil
}

// serverOf returns the principal of the ZooKeeper server of a host. Of the name of a service alone Java's client makes
// such a principal too, in its own realm.
func serverOf(pattern gssapi.Principal, realm, host string) (gssapi.Principal, error) {
	if len(pattern.Names) == 1 {
		pattern.Names = []string{pattern.Names[0], "_HOST"}
	}
	pattern.Realm = cmp.Or(pattern.Realm, realm)
	p, err := pattern.WithHost(host)
	switch {
	case err != nil:
		return p, err
	case len(p.Names) != 2:
		return p, fmt.Errorf("%s: %s does not have the form zookeeper/_HOST@REALM", zkServerPrincipal, p)
	case net.ParseIP(host) != nil && !p.Equal(pattern):
		return p, fmt.Errorf("%s needs the server's host name, not %s: name it in %s", pattern, host, zkAddress)
	}
	return p, nil
}

// zkURL reads zk://HOST:PORT,HOST:PORT/PATH. The path begins with / and does not end with it, and is "" without one.
func zkURL(url string) (addresses []string, path string, err error) {
	rest, isZK := strings.CutPrefix(url, zkScheme)
	list, path, found := strings.Cut(rest, "/")
	switch {
	case !isZK:
		return nil, "", fmt.Errorf("it does not have the form zk://HOST:PORT,HOST:PORT/PATH")
	case strings.ContainsAny(list, "@?"):
		return nil, "", fmt.Errorf("it has a login or parameters: set %s instead", zkDigests)
	case found:
		path = "/" + strings.Trim(path, "/")
	}
	addresses, err = zkServers(strings.Split(list, ","))
	return addresses, path, err
}

// zkServers reads host:port pairs. Like Hadoop's, a host alone has ZooKeeper's usual port.
func zkServers(list []string) (out []string, err error) {
	for _, address := range list {
		switch host, port, err := net.SplitHostPort(address); {
		case address == "":
		case err != nil && !strings.Contains(address, ":"):
			out = append(out, net.JoinHostPort(address, "2181"))
		case err != nil || host == "" || port == "" || strings.Contains(port, "/"):
			return nil, fmt.Errorf("%q is not host:port", address)
		default:
			out = append(out, address)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no ZooKeeper server is named")
	}
	return out, nil
}

// zkFile returns the content of the file that a value names after @, or the value.
func zkFile(value string) (string, error) {
	path, isFile := strings.CutPrefix(strings.TrimSpace(value), "@")
	if !isFile {
		return value, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s", fileReason(err))
	}
	return string(b), nil
}

// zkAuth reads proofs of identity: scheme:secret, separated by commas.
func zkAuth(value string) (out []zkclient.Auth, err error) {
	if value, err = zkFile(value); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		scheme, secret, found := strings.Cut(part, ":")
		if !found || scheme != "digest" || !strings.Contains(secret, ":") {
			return nil, fmt.Errorf("each part must be digest:USER:PASSWORD; a login by Kerberos is %s", zkPrincipal)
		}
		out = append(out, zkclient.Auth{Scheme: scheme, Secret: secret})
	}
	return out, nil
}

// zkACL reads rights: scheme:id:rights, separated by commas.
func zkACL(value string) (out []zk.ACL, err error) {
	if value, err = zkFile(value); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		first, last := strings.Index(part, ":"), strings.LastIndex(part, ":")
		if first == last {
			return nil, fmt.Errorf("%q is not scheme:id:rights", part)
		}
		a := zk.ACL{Scheme: part[:first], ID: part[first+1 : last]}
		if a.Scheme == "digest" {
			_, hash, _ := strings.Cut(a.ID, ":")
			if _, err := base64.StdEncoding.DecodeString(hash); err != nil || hash == "" {
				return nil, fmt.Errorf("%q is not digest:USER:HASH:rights", part)
			}
		}
		for _, right := range part[last+1:] {
			i := strings.IndexRune("rwcda", right)
			if i < 0 {
				return nil, fmt.Errorf("%q is not a right of ZooKeeper, which are r, w, c, d and a", right)
			}
			a.Perms |= 1 << i
		}
		out = append(out, a)
	}
	return out, nil
}
