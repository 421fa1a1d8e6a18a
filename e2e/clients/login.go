// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

// Login is the Kerberos login of a cluster's user, the operating system's. Spark, Flink and Skein log in by the keytab.
// Hadoop's clients and curl use the cache. Programs find the realm by KRB5_CONFIG and JDK_JAVA_OPTIONS of the test.
type Login struct {
	Principal string // with its realm
	Keytab    string
	Cache     string // of tickets
	Realm     string // path of the krb5.conf
}

// environment returns the variables of programs that use the cache.
func (l *Login) environment() []string {
	if l == nil {
		return nil
	}
	return []string{"KRB5CCNAME=" + l.Cache}
}

// java returns the option by which a JVM finds the realm, after a space.
func (l *Login) java() string {
	if l == nil {
		return ""
	}
	return " -Djava.security.krb5.conf=" + l.Realm
}

// spark returns the arguments of spark-submit.
func (l *Login) spark() []string {
	if l == nil {
		return nil
	}
	return []string{"--principal", l.Principal, "--keytab", l.Keytab}
}

// flink returns the lines of Flink's configuration.
func (l *Login) flink() []string {
	if l == nil {
		return nil
	}
	return []string{
		"security.kerberos.login.use-ticket-cache: false",
		"security.kerberos.login.principal: " + l.Principal,
		"security.kerberos.login.keytab: " + l.Keytab,
	}
}

// skein returns the arguments of skein_user.py. cookie is that of the cluster's web port.
func (l *Login) skein(cookie string) []string {
	if l == nil {
		return nil
	}
	return []string{l.Principal, l.Keytab, cookie}
}

// noTickets returns the variable of a cache without tickets, for programs that log in by the keytab.
func (l *Login) noTickets(dir string) []string {
	if l == nil {
		return nil
	}
	return []string{"KRB5CCNAME=" + filepath.Join(dir, "no-tickets")}
}

// curl gets a path of the REST API by `curl --negotiate`, and returns the headers and the body.
func (c *Cluster) curl(t *testing.T, path string) (headers, body string, err error) {
	t.Helper()
	curl, err := programs.Path("curl")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	out, all, code := process.Run(ctx, t, process.Command{
		Name: "curl", Dir: t.TempDir(), Env: c.Login.environment(),
		Args: []string{
			curl, "--negotiate", "--user", ":", "--silent", "--show-error", "--fail-with-body",
			"--include", "--location", "--header", "Accept: application/json",
			"http://" + c.Web + path,
		},
	})
	if code != 0 {
		return "", "", fmt.Errorf("curl: exit code %d\n%s", code, all)
	}
	last := strings.LastIndex(out, "HTTP/1.1 200")
	headers, body, whole := strings.Cut(out[max(last, 0):], "\r\n\r\n")
	if last < 0 || !whole {
		return "", "", fmt.Errorf("curl: no answer\n%s", out)
	}
	return headers, body, nil
}

// getByTicket reads a JSON document of the REST API.
func (c *Cluster) getByTicket(t *testing.T, path string, v *map[string]any) error {
	t.Helper()
	_, body, err := c.curl(t, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		return fmt.Errorf("%w\n%s", err, body)
	}
	return nil
}

var cookieHeader = regexp.MustCompile(`(?i)\nSet-Cookie: (hadoop\.auth=[^;\r\n]+)`)

// cookie returns the cookie of a login, for web clients that cannot send tickets; "" without Kerberos.
func (c *Cluster) cookie(t *testing.T) string {
	t.Helper()
	if c.Login == nil {
		return ""
	}
	headers, _, err := c.curl(t, "/ws/v1/cluster/info")
	if err != nil {
		t.Fatal(err)
	}
	return matches(t, headers, cookieHeader.String())
}
