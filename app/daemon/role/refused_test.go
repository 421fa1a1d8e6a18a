// SPDX-License-Identifier: Apache-2.0

package role

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

var update = flag.Bool("update", false, "write docs/reference/refused-starts.md")

// minimal returns the settings that each role needs to start.
func minimal(t *testing.T, defines ...string) *settings.Settings {
	t.Helper()
	s, err := settings.Load(settings.Sources{
		ConfDir: t.TempDir(),
		Defines: append([]string{
			"creel.subcluster.id=sc-1", "creel.nm.simulate=1", "yarn.resourcemanager.ha.rm-ids=rm1,rm2",
			"yarn.resourcemanager.hostname.rm1=one", "yarn.resourcemanager.hostname.rm2=two",
		}, defines...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every value of the table stops the daemons that it names with its reason, and
// no other; without it they start. The page in docs is made of the messages.
func TestWeakeningValuesStopTheStart(t *testing.T) {
	for _, role := range settings.Roles {
		if err := Check(minimal(t), role); err != nil {
			t.Errorf("a %s does not start with the defaults: %v", role, err)
		}
	}
	var page strings.Builder
	page.WriteString("# Refused starts\n\n" +
		"A daemon refuses to start with these values: creel does not support them, and ignoring them would weaken " +
		"security, durability or exclusivity. `creel config check --role ROLE` finds them without a start.\n\n" +
		"This page is generated from the messages: " +
		"`go test ./app/daemon/role -run StopTheStart -update`.\n\n" +
		"| setting | such as | daemons | why | what to do |\n|---|---|---|---|---|\n")
	for _, r := range refusals {
		for _, role := range settings.Roles {
			s := minimal(t, r.key+"="+r.example)
			if slices.Contains(r.roles, role) {
				s = minimal(t, append([]string{r.key + "=" + r.example}, r.with...)...)
			} else if r.key == authentication || r.key == httpPolicy || r.key == webAuthentication { // the other row of this key stops the role
				continue
			}
			err := Check(s, role)
			var p *settings.Problem
			switch stopped := errors.As(err, &p); {
			case slices.Contains(r.roles, role) && (!stopped || p.Key != r.key || !strings.HasPrefix(p.Why, r.why)):
				t.Errorf("a %s with %s=%s: %v", role, r.key, r.example, err)
			case slices.Contains(r.roles, role) && !settings.IsProblem(err):
				t.Errorf("%v is not seen as a mistake of the configuration", err)
			case !slices.Contains(r.roles, role) && err != nil:
				t.Errorf("a %s does not start with %s=%s: %v", role, r.key, r.example, err)
			}
		}
		roles := make([]string, len(r.roles))
		for i, role := range r.roles {
			roles[i] = string(role)
		}
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s |\n",
			r.key, cmp.Or(r.example, "(empty)"), strings.Join(roles, ", "), r.why, r.try)
	}
	for _, k := range settings.RefusedKeys() {
		s := minimal(t, append([]string{k.Key + "=" + k.Example}, k.With...)...)
		roles := make([]string, len(k.Roles))
		for i, role := range k.Roles {
			roles[i] = string(role)
		}
		for _, role := range settings.Roles {
			err := Check(s, role)
			var p *settings.Problem
			stopped := errors.As(err, &p) && p.Key == k.Key && p.Why == k.Why && settings.IsProblem(err)
			if stopped != slices.Contains(k.Roles, role) || !stopped && err != nil {
				t.Errorf("a %s with %s=%s: %v", role, k.Key, k.Example, err)
			}
		}
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s | %s |\n",
			k.Key, k.Example, strings.Join(roles, ", "), k.Why, k.Try)
	}
	page.WriteString("\nA daemon also refuses to start with a key about safety whose name is misspelt, " +
		"such as `yarn.acl.enabled`.\n" +
		"[Settings](settings.md#hadoops-keys-that-creel-does-not-use) has the other keys that it does not use.\n")
	const file = "../../../docs/reference/refused-starts.md"
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page.String() {
		t.Error("docs/reference/refused-starts.md is stale; run the command that stands in it")
	}
}

// A queue file that the daemon would refuse is refused by the check too.
func TestCheckReadsDaemonFiles(t *testing.T) {
	dir := t.TempDir()
	queues := `<configuration><property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>` +
		`<property><name>yarn.scheduler.capacity.root.a.capacity</name><value>much</value></property></configuration>`
	if err := os.WriteFile(dir+"/capacity-scheduler.xml", []byte(queues), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(settings.Sources{ConfDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(s, settings.RM); !settings.IsProblem(err) || !strings.Contains(err.Error(), "root.a.capacity") {
		t.Errorf("an rm with a queue that has capacity \"much\": %v", err)
	}
	if err := Check(s, settings.Router); err != nil {
		t.Errorf("a router, which reads no queues: %v", err)
	}
	for define, want := range map[string]string{
		"creel.store.url=mysql://x":                           "creel.store.url",
		"net.topology.table.file.name=/nowhere/racks":         "net.topology.table.file.name",
		"net.topology.script.file.name=/nowhere/program":      "net.topology.script.file.name",
		"yarn.resourcemanager.epoch=99999999":                 "epoch",
		"yarn.scheduler.maximum-allocation-mb=512":            "below yarn.scheduler.minimum-allocation-mb, 1024",
		"yarn.scheduler.minimum-allocation-vcores=5":          "yarn.scheduler.maximum-allocation-vcores",
		"creel.membership.lease=1s,creel.store.url=redis://x": "lost before each heartbeat",
		"creel.subcluster.id=a/b,creel.store.url=redis://x":   "creel.subcluster.id",
	} {
		if err := Check(minimal(t, strings.Split(define, ",")...), settings.RM); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("an rm with %s: %v", define, err)
		}
	}
}

// A setting that is not in force yet causes a warning in the daemons it concerns, once its value differs from the
// default.
func TestInactiveSettingsWarnAtTheirDaemons(t *testing.T) {
	s := minimal(t, "yarn.resourcemanager.reservation-system.enable=true", "yarn.router.webapp.proxy.enable=true")
	if w := s.WarningsFor(settings.RM); len(w) != 1 ||
		!strings.Contains(w[0], "yarn.resourcemanager.reservation-system.enable=true") ||
		!strings.Contains(w[0], "reservations are rejected") {
		t.Errorf("an rm is told %q", w)
	}
	if w := s.WarningsFor(settings.Router); len(w) != 0 {
		t.Errorf("a router is told %q: the one value is the default, the other is not its own", w)
	}
	for _, p := range properties(s) {
		if p.Name == "yarn.resourcemanager.reservation-system.enable" && !strings.Contains(p.Source, "not in force yet") {
			t.Errorf("/conf says %q of it", p.Source)
		}
	}
}

// /conf shows that creel does not use a key of Hadoop's. Variables are not such keys.
func TestConfMarksUnusedKeys(t *testing.T) {
	for _, p := range properties(minimal(t, "yarn.fail-fast=true", "our.variable=1", "yarn.acl.enable=true",
		"yarn.scheduler.capacity.root.queues=a")) {
		unused := strings.Contains(p.Source, "creel does not use it")
		if unused != (p.Name == "yarn.fail-fast") {
			t.Errorf("%s: %q", p.Name, p.Source)
		}
	}
}

// Queues without a node order of their own use creel.rm.node-order.
func TestNodesInTheOrderAskedFor(t *testing.T) {
	for text, want := range map[string]queues.NodeOrder{"spread": queues.NodeOrderDefault, "pack": queues.Pack} {
		q, err := QueueConfig(minimal(t, "creel.rm.node-order="+text), false)
		if err != nil || q.Queues.Root.NodeOrder != want {
			t.Errorf("%s: %v %v", text, q.Queues.Root.NodeOrder, err)
		}
	}
}

// A member's configuration without rules for the routers' user is found before its start.
func TestMissingProxyUserIsWarnedOf(t *testing.T) {
	const store, user = "creel.store.url=redis://r:6379", "creel.router.proxy-user=creel"
	const hosts, groups = "hadoop.proxyuser.creel.hosts=*", "hadoop.proxyuser.creel.groups=*"
	for _, c := range []struct {
		role    settings.Role
		defines []string
		warns   bool
	}{
		{settings.RM, []string{store, user}, true},
		{settings.RM, []string{store, user, hosts}, true},
		{settings.RM, []string{store, user, groups}, true},
		{settings.RM, []string{store, "creel.router.proxy-user=other", hosts, groups}, true},
		{settings.Agent, []string{store, user}, true},
		{settings.RM, []string{store, user, hosts, groups}, false},
		{settings.RM, []string{store, user, hosts, "hadoop.proxyuser.creel.users=alice"}, false},
		{settings.RM, []string{user}, false}, // no member of a federation
		{settings.Router, []string{store, user}, false},
	} {
		got := Warnings(minimal(t, c.defines...), c.role)
		if (len(got) > 0) != c.warns || c.warns && !strings.Contains(got[0], "hadoop.proxyuser.") {
			t.Errorf("%s %q: %q", c.role, c.defines, got)
		}
	}
}

func TestSecureMemberIsWarnedOfDaemonsThatCannotActForUsers(t *testing.T) {
	const anyHost, anyGroup = "hadoop.proxyuser.%s.hosts=*", "hadoop.proxyuser.%s.groups=*"
	rule := func(user string) []string { return []string{fmt.Sprintf(anyHost, user), fmt.Sprintf(anyGroup, user)} }
	for _, c := range []struct {
		defines []string
		want    []string
	}{
		{nil, []string{"routers", "AM-RM proxies"}},
		{append(rule("router"), "creel.router.proxy-user=nobody"), []string{"AM-RM proxies"}},
		{rule("nm"), []string{"routers"}},
		{append(rule("router"), rule("nm")...), nil},
		{append(rule("nm"), "yarn.router.kerberos.principal="), nil}, // the configuration does not name the routers
		{append(rule("nm"), "yarn.router.kerberos.principal=router/r1@ELSEWHERE"), []string{"routers"}},
	} {
		got := Warnings(secureRouter(t, append(c.defines, "yarn.admin.acl=router")...), settings.RM)
		for i, daemon := range c.want {
			if len(got) != len(c.want) || !strings.HasPrefix(got[i], daemon+" could not act for other users at this member") {
				t.Errorf("%q: %q, want %q", c.defines, got, c.want)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%q: %q", c.defines, got)
		}
	}
}

func TestOverallocationNeedsGapBetweenThresholds(t *testing.T) {
	const prefix, queue = "yarn.nodemanager.overallocation.", "yarn.nodemanager.opportunistic-containers-max-queue-length=9"
	for _, c := range []struct {
		defines []string
		starts  bool
	}{
		{[]string{prefix + "general-utilization-threshold=0.8", queue}, true},
		{[]string{prefix + "general-utilization-threshold=0.8", queue, prefix + "preemption-threshold.cpu=0.8"}, false},
		{[]string{prefix + "cpu-utilization-threshold=0.8"}, true}, // memory has none: nothing is lent
		{[]string{prefix + "cpu-utilization-threshold=0.8", prefix + "memory-utilization-threshold=0.8"}, false},
	} {
		if err := Check(minimal(t, c.defines...), settings.NM); (err == nil) != c.starts {
			t.Errorf("with %v: %v", c.defines, err)
		}
	}
}
