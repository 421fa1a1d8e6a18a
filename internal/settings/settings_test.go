// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/settings"
)

var update = flag.Bool("update", false, "rewrite docs/reference/settings.md")

// conf writes files into a configuration directory.
func conf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func none(string) (string, bool) { return "", false }

// sources keeps the machine's own environment out of a test.
func sources(dir string) settings.Sources {
	return settings.Sources{ConfDir: dir, Env: none, System: func(name string) (string, bool) {
		if name == "user.name" {
			return "alice", true
		}
		return "", false
	}}
}

func load(t *testing.T, src settings.Sources) *settings.Settings {
	t.Helper()
	s, err := settings.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func site(properties ...string) string {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for i := 0; i < len(properties); i += 2 {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", properties[i], properties[i+1])
	}
	b.WriteString("</configuration>\n")
	return b.String()
}

func TestEveryDefaultParsesAndEveryRowIsWhole(t *testing.T) {
	s := load(t, sources(""))
	seen := map[string]bool{}
	for _, row := range settings.All() {
		if seen[row.Key] {
			t.Errorf("%s is in the registry twice", row.Key)
		}
		seen[row.Key] = true
		if !strings.HasSuffix(row.Doc, ".") || strings.Contains(row.Doc, "|") || strings.Contains(row.Doc, "\n") {
			t.Errorf("%s: the sentence is not one: %q", row.Key, row.Doc)
		}
		if row.Type == settings.Enum && len(row.Choices) == 0 {
			t.Errorf("%s: an enum without choices", row.Key)
		}
		if row.Type == settings.Address && row.Default != "" && row.Port < 0 {
			t.Errorf("%s: the default address has no port", row.Key)
		}
		if found, ok := settings.Find(row.Key); !ok || found != row {
			t.Errorf("%s is not found under its own name", row.Key)
		}
	}
	if got := s.Address("yarn.resourcemanager.scheduler.address"); got != "127.0.0.1:8030" {
		t.Errorf("scheduler address by default is %q", got)
	}
	for _, row := range settings.All() {
		if row.Type == settings.Address && strings.Contains(s.Address(row.Key), "0.0.0.0") {
			t.Errorf("%s is open to the network by default", row.Key)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	const key = "yarn.nm.liveness-monitor.expiry-interval-ms"
	dir := conf(t, map[string]string{
		"core-site.xml": site(key, "1000"),
		"yarn-site.xml": site(key, "2s", "creel.store.url", "redis://from-file"),
	})
	src := sources(dir)
	if got := load(t, src).Duration(key); got != 2*time.Second {
		t.Errorf("yarn-site over core-site: %v", got)
	}
	src.Defines = []string{key + "=3m"}
	s := load(t, src)
	if got := s.Duration(key); got != 3*time.Minute {
		t.Errorf("-D over files: %v", got)
	}
	src.Flags = []settings.Flag{{Name: "--store", Key: "creel.store.url", Value: "redis://from-flag"}}
	s = load(t, src)
	if got := s.String("creel.store.url"); got != "redis://from-flag" {
		t.Errorf("flag over file: %v", got)
	}
	v, _ := s.Lookup("creel.store.url")
	if v.Origin.String() != "--store" || len(v.Overridden) != 2 || v.Overridden[0].Origin.Line != 3 {
		t.Errorf("origin %v covers %v", v.Origin, v.Overridden)
	}
}

func TestFinalResistsFilesNotCommandLine(t *testing.T) {
	const key = "yarn.resourcemanager.am.max-attempts"
	dir := conf(t, map[string]string{
		"core-site.xml": "<configuration><property><name>" + key + "</name><value>7</value><final>true</final></property></configuration>",
		"yarn-site.xml": site(key, "9"),
	})
	s := load(t, sources(dir))
	if got := s.Int(key); got != 7 {
		t.Errorf("a final value was replaced: %d", got)
	}
	if w := s.WarningsFor(settings.RM); len(w) != 1 || !strings.Contains(w[0], "yarn-site.xml:2") ||
		!strings.Contains(w[0], "final") {
		t.Errorf("warnings %q", w)
	}
	src := sources(dir)
	src.Defines = []string{key + "=5"}
	if got := load(t, src).Int(key); got != 5 {
		t.Errorf("-D did not win over final: %d", got)
	}
}

func TestVariables(t *testing.T) {
	env := map[string]string{"NM_HOST": "127.0.0.2", "EMPTY": ""}
	for _, tc := range []struct{ raw, want string }{
		{"${hadoop.tmp.dir}/x", "/tmp/hadoop-alice/x"},
		{"${user.name}", "alice"},
		{"${env.NM_HOST}", "127.0.0.2"},
		{"${env.NM_HOST:-127.0.0.1}:8049", "127.0.0.2:8049"},
		{"${env.NONE:-127.0.0.1}:8049", "127.0.0.1:8049"},
		{"${env.EMPTY:-x}", "x"},
		{"${env.EMPTY-x}", ""},
		{"${env.NONE-x}", "x"},
		{"${env.NONE}", "${env.NONE}"},
		{"${nobody.sets.this}", "${nobody.sets.this}"},
		{"a ${unclosed", "a ${unclosed"},
		{"${with space}", "${with space}"},
		{"${}", "${}"},
		{"cost $5", "cost $5"},
		{"${half${user.name}", "${halfalice"},
	} {
		src := sources(conf(t, map[string]string{"yarn-site.xml": site("my.value", tc.raw)}))
		src.Env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		v, _ := load(t, src).Lookup("my.value")
		if v.Text != tc.want {
			t.Errorf("%q became %q, not %q", tc.raw, v.Text, tc.want)
		}
	}
}

func TestLoopsAndBombsAreErrorsWithTheirLine(t *testing.T) {
	wide := strings.Repeat("${a9}", 10)
	files := []string{"creel.store.prefix", "${a0}", "a9", strings.Repeat("x", 1000)}
	for i := 8; i >= 0; i-- {
		next := strings.ReplaceAll(wide, "a9", fmt.Sprintf("a%d", i+1))
		files = append(files, fmt.Sprintf("a%d", i), next)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"loop":  {site("creel.store.prefix", "${b}", "b", "${c}", "c", "x${b}"), "yarn-site.xml:2: creel.store.prefix: value \"${b}\": defined by itself: ${b} -> ${c} -> ${b}"},
		"self":  {site("creel.store.prefix", "${creel.store.prefix}x"), "defined by itself"},
		"laugh": {site(files...), "yarn-site.xml:2: creel.store.prefix: value"},
	} {
		_, err := settings.Load(sources(conf(t, map[string]string{"yarn-site.xml": tc.text})))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllErrorsAreReportedWithLineAndName(t *testing.T) {
	dir := conf(t, map[string]string{"yarn-site.xml": `<configuration>
  <property>
    <name>creel.store.ulr</name>
    <value>redis://localhost</value>
  </property>
  <property>
    <name>yarn.nm.liveness-monitor.expiry-interval-ms</name>
    <value>soon</value>
  </property>
  <property><name>yarn.resourcemanager.address</name><value>host:99999</value></property>
  <property><name>yarn.acl.enable</name><value>yes</value></property>
  <property><name>yarn.http.policy</name><value>HTTPS</value></property>
  <property><name>creel.rebalancer.max-change</name><value>120</value></property>
  <property><name>yarn.scheduler.minimum-allocation-mb</name><value>99999999999</value></property>
  <property><name>creel.zebra.crossing.quux</name><value>1</value></property>
</configuration>`})
	src := sources(dir)
	src.Defines = []string{"novalue", "creel.router.forward-timeout=1 fortnight"}
	s, err := settings.Load(src)
	if err == nil {
		t.Fatal("accepted")
	}
	file := filepath.Join(dir, "yarn-site.xml")
	for _, want := range []string{
		file + ":3: unknown setting creel.store.ulr; did you mean creel.store.url?",
		file + ":7: yarn.nm.liveness-monitor.expiry-interval-ms: value \"soon\": not a time",
		file + ":10: yarn.resourcemanager.address: value \"host:99999\": \"99999\" is not a port",
		file + ":11: yarn.acl.enable: value \"yes\": neither true nor false",
		file + ":12: yarn.http.policy: value \"HTTPS\": not one of HTTP_ONLY, HTTPS_ONLY",
		file + ":13: creel.rebalancer.max-change: value \"120\": not a percentage",
		file + ":14: yarn.scheduler.minimum-allocation-mb: value \"99999999999\": does not fit 32 bits",
		file + ":15: unknown setting creel.zebra.crossing.quux; `creel config print`",
		"-D novalue: write -D key=value",
		"-D: creel.router.forward-timeout: value \"1 fortnight\": not a time",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if got := s.Duration("yarn.nm.liveness-monitor.expiry-interval-ms"); got != 10*time.Minute {
		t.Errorf("what could be read: %v", got)
	}
}

// A meaningless number would otherwise be silently replaced by a default.
func TestNumbersThatMeanNothingAreRefused(t *testing.T) {
	load := func(key, value string) error {
		_, err := settings.Load(settings.Sources{Defines: []string{key + "=" + value}})
		return err
	}
	for _, row := range settings.All() {
		switch row.Type {
		case settings.Int, settings.Long, settings.Float, settings.Percent, settings.Duration, settings.Bytes:
		default:
			continue
		}
		if strings.HasPrefix(row.Key, "creel.") && row.Least == settings.Unbound {
			t.Errorf("%s: nothing says what it must at least be", row.Key)
		}
		if row.Least == settings.Unbound {
			continue
		}
		if err := load(row.Key, "-1"); err == nil || !strings.Contains(err.Error(), row.Key) {
			t.Errorf("%s=-1: %v", row.Key, err)
		}
		if err := load(row.Key, "0"); (err == nil) != (row.Least != settings.Positive) {
			t.Errorf("%s=0: %v", row.Key, err)
		}
		if err := load(row.Key, "1"); err != nil {
			t.Errorf("%s=1: %v", row.Key, err)
		}
	}
	err := load("creel.membership.lease", "-5s")
	if err == nil || !strings.Contains(err.Error(), `creel.membership.lease: value "-5s": must be more than 0`) {
		t.Errorf("a lease that is over before it begins: %v", err)
	}
	for _, more := range []string{"1.5", "50", "NaN", "Inf"} {
		if err := load("creel.trace.sample", more); err == nil || !strings.Contains(err.Error(), "creel.trace.sample") {
			t.Errorf("a share of %s: %v", more, err)
		}
	}
}

func TestIncludesAndTheirLimits(t *testing.T) {
	const open = `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">`
	dir := conf(t, map[string]string{
		"yarn-site.xml": open + `
<xi:include href="more.xml"/>
<xi:include href="absent.xml"><xi:fallback><property><name>creel.store.prefix</name><value>fb</value></property></xi:fallback></xi:include>
<xi:include href="more.xml"><xi:fallback><property><name>creel.store.prefix</name><value>unused</value></property></xi:fallback></xi:include>
<property name="creel.rm.inbox" value="5"/>
</configuration>`,
		"more.xml":   "<configuration>\n\n<property><name>yarn.cluster.max-application-priority</name><value>10</value></property></configuration>",
		"loop.xml":   open + "\n\n<xi:include href='loop2.xml'/></configuration>",
		"loop2.xml":  open + "<xi:include href='./loop.xml'/></configuration>",
		"remote.xml": open + "<xi:include href='http://example.org/x.xml'/></configuration>",
		"absent2.xml": open + `
<xi:include href="nowhere.xml"/></configuration>`,
	})
	s := load(t, sources(dir))
	v, _ := s.Lookup("yarn.cluster.max-application-priority")
	if v.Text != "10" || filepath.Base(v.Origin.File) != "more.xml" || v.Origin.Line != 3 {
		t.Errorf("included value %q from %v", v.Text, v.Origin)
	}
	if s.String("creel.store.prefix") != "fb" || s.Int("creel.rm.inbox") != 5 {
		t.Errorf("fallback %q, short form %d", s.String("creel.store.prefix"), s.Int("creel.rm.inbox"))
	}
	for file, want := range map[string]string{
		"loop.xml":    "loop2.xml:1: include \"./loop.xml\": the file includes itself",
		"remote.xml":  "remote.xml:1: include \"http://example.org/x.xml\": only local files may be included",
		"absent2.xml": "absent2.xml:2: included file",
	} {
		if _, err := settings.ReadFile(filepath.Join(dir, file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := settings.ParseXML("mem", []byte(open+"<xi:include href='/etc/passwd'/></configuration>")); err == nil {
		t.Error("an include was followed from memory")
	}
}

func TestHostileAndBrokenXML(t *testing.T) {
	bomb := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;">]><configuration><property><name>a</name><value>&lol2;</value></property></configuration>`
	for name, tc := range map[string]struct{ text, want string }{
		"entities":   {bomb, "x.xml:1: a DOCTYPE with declarations is refused"},
		"external":   {`<!DOCTYPE c SYSTEM "file:///etc/passwd" [<!ENTITY x SYSTEM "file:///etc/passwd">]><configuration/>`, "DOCTYPE"},
		"undeclared": {"<configuration>\n<property><name>a</name><value>&x;</value></property></configuration>", "x.xml:2: not well-formed XML: invalid character entity &x;"},
		"unclosed":   {"<configuration>\n<property>\n<name>a</name>", "x.xml:3: not well-formed XML"},
		"mismatch":   {"<configuration>\n<property>\n<name>a</nome>", "x.xml:3: not well-formed XML"},
		"empty":      {"", "x.xml:1: no <configuration> element"},
		"wrong root": {"<allocations/>", "x.xml:1: the root element is <allocations>, not <configuration>"},
		"no name":    {"<configuration>\n<property><value>1</value></property></configuration>", "x.xml:2: a <property> without a <name>"},
		"stray":      {"<configuration>\n<proprety/></configuration>", "x.xml:2: <proprety> is not known inside <configuration>"},
		"inside":     {"<configuration>\n<property><name>a<b/></name></property></configuration>", "x.xml:2: <b> inside <name>"},
		"twice":      {"<configuration/>\n<configuration/>", "x.xml:2: <configuration> after the end"},
		"deep":       {strings.Repeat("<configuration>", 100), "x.xml:1: elements nested deeper"},
		"encoding":   {`<?xml version="1.0" encoding="KOI8-R"?><configuration/>`, "encoding \"KOI8-R\" is not supported"},
		"binary":     {"\x00\x01\x02", "x.xml:1"},
	} {
		props, err := settings.ParseXML("x.xml", []byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", name, props, err)
			continue
		}
		var fe *settings.FileError
		if !errors.As(err, &fe) || fe.File != "x.xml" || fe.Line < 1 {
			t.Errorf("%s: no place in %#v", name, err)
		}
	}
	big := filepath.Join(t.TempDir(), "big.xml")
	if err := os.WriteFile(
		big,
		append([]byte("<configuration><!--"), bytes.Repeat([]byte("x"), 9<<20)...),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := settings.ReadFile(big); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("big file: %v", err)
	}
}

func TestHadoopsOwnHabitsAreTaken(t *testing.T) {
	props, err := settings.ParseXML("x.xml", []byte(`<?xml version="1.0" encoding="ISO-8859-1"?>
<?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
<!DOCTYPE configuration>
<!-- a comment -->
<configuration>
  <property><name> spaced </name><value> kept as written </value><description>with <b>markup</b></description><source>me</source><tag>YARN</tag></property>
  <property><name>novalue</name></property>
  <property><name>empty</name><value></value></property>
  <configuration><property><name>nested</name><value>M`+"\xfc"+`nchen</value></property></configuration>
</configuration>`))
	if err != nil {
		t.Fatal(err)
	}
	want := []settings.Property{
		{Name: "spaced", Value: " kept as written ", File: "x.xml", Line: 6},
		{Name: "empty", File: "x.xml", Line: 8},
		{Name: "nested", Value: "München", File: "x.xml", Line: 9},
	}
	if len(props) != len(want) {
		t.Fatalf("%d properties: %v", len(props), props)
	}
	for i := range want {
		if props[i] != want[i] {
			t.Errorf("property %d is %+v", i, props[i])
		}
	}
}

func TestDurationsAsHadoopReadsThem(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250": 250 * time.Millisecond, "250ms": 250 * time.Millisecond, "10s": 10 * time.Second, " 5 m ": 5 * time.Minute,
		"1h": time.Hour, "2d": 48 * time.Hour, "7us": 7 * time.Microsecond, "9ns": 9, "-1": -time.Millisecond, "0": 0,
	} {
		if got, err := settings.ParseDuration(text, time.Millisecond); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if got, _ := settings.ParseDuration("86400", time.Second); got != 24*time.Hour {
		t.Errorf("the key's own unit: %v", got)
	}
	for _, bad := range []string{"", "s", "1.5s", "10 sec", "ten", "9999999999999h", "1w"} {
		if got, err := settings.ParseDuration(bad, time.Millisecond); err == nil {
			t.Errorf("%q was taken for %v", bad, got)
		}
	}
}

func TestSizesAndAddresses(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "1k": 1024, "1MB": 1 << 20, "64m": 64 << 20, "2GiB": 2 << 30, "1t": 1 << 40, "-1": -1} {
		if got, err := settings.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "k", "1.5g", "9999999999999999g", "1x"} {
		if got, err := settings.ParseBytes(bad); err == nil {
			t.Errorf("%q was taken for %d", bad, got)
		}
	}
	for text, want := range map[string]string{"h:1": "h:1", "h": "h:8032", "[::1]:5": "[::1]:5", "::1": "[::1]:8032", "0.0.0.0:0": "0.0.0.0:0"} {
		s := load(t, settings.Sources{Defines: []string{"yarn.resourcemanager.address=" + text}, Env: none})
		if got := s.Address("yarn.resourcemanager.address"); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
	s := load(
		t,
		settings.Sources{
			Defines: []string{"yarn.resourcemanager.bind-host=0.0.0.0", "yarn.resourcemanager.hostname=rm.example"},
			Env:     none,
		},
	)
	if got := s.Listen("yarn.resourcemanager.address", "yarn.resourcemanager.bind-host"); got != "0.0.0.0:8032" {
		t.Errorf("listens on %q", got)
	}
	if got := s.Address("yarn.resourcemanager.address"); got != "rm.example:8032" {
		t.Errorf("is reached at %q", got)
	}
}

func TestDeprecatedNamesWorkAndAreReported(t *testing.T) {
	s := load(t, sources(conf(t, map[string]string{"yarn-site.xml": site("yarn.resourcemanager.am.max-retries", "6")})))
	if got := s.Int("yarn.resourcemanager.am.max-attempts"); got != 6 {
		t.Errorf("the old name gave %d", got)
	}
	if w := s.WarningsFor(settings.RM); len(w) != 1 || !strings.Contains(w[0], "deprecated") {
		t.Errorf("warnings %q", w)
	}
}

func TestKeysAreDistinct(t *testing.T) {
	for key, want := range map[string]settings.Kind{
		"yarn.resourcemanager.address":                        settings.Understood,
		"hadoop.proxyuser.spark.hosts":                        settings.Understood,
		"yarn.resource-types.yarn.io/gpu.minimum-allocation":  settings.Understood,
		"creel.scheduler.root.a.b.node-order":                 settings.Understood,
		"yarn.nodemanager.webapp.spnego-keytab-file":          settings.Ignored,
		"yarn.nodemanager.aux-services.mapreduce_shuffle.foo": settings.Ignored,
		"dfs.replication":                                     settings.Ignored,
		"yarn.resourcemanager.adress":                         settings.Unknown,
		"creel.nothing":                                       settings.Unknown,
		"hadoop.proxyuser.hosts":                              settings.Ignored,
	} {
		if got := settings.Classify(key); got != want {
			t.Errorf("%s is %v, not %v", key, got, want)
		}
	}
	s := load(t, sources(conf(t, map[string]string{"yarn-site.xml": site(
		"yarn.resourcemanager.adress",
		"x:1",
		"yarn.nodemanager.container-executor.class",
		"C",
		"yarn.acl.enable",
		"true",
	)})))
	r := s.Check()
	if len(r.Understood) != 1 || len(r.Ignored) != 1 || len(r.Unknown) != 1 ||
		r.Unknown[0].Nearest != "yarn.resourcemanager.address" {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if want := "  unknown         yarn.resourcemanager.adress  (yarn-site.xml:2); did you mean yarn.resourcemanager.address?\n"; !strings.Contains(
		b.String(),
		want,
	) {
		t.Errorf("check printed\n%s", b.String())
	}
}

func TestPrintAndExplainHideSecrets(t *testing.T) {
	dir := conf(
		t,
		map[string]string{
			"yarn-site.xml": site(
				"creel.store.url",
				"redis://bob:hunter2@localhost:6379/0",
				"my.password",
				"hunter2",
				"creel.store.prefix",
				"p-${user.name}",
			),
		},
	)
	s := load(t, sources(dir))
	var b bytes.Buffer
	if err := s.Print(&b, false, true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "hunter2") ||
		!strings.Contains(b.String(), "creel.store.url=redis://bob:xxxxx@localhost:6379/0") ||
		!strings.Contains(b.String(), "# "+filepath.Join(dir, "yarn-site.xml:2")) {
		t.Errorf("printed\n%s", b.String())
	}
	if strings.Contains(b.String(), "yarn.acl.enable") {
		t.Error("a default was printed among what was set")
	}
	b.Reset()
	if err := s.Explain(&b, "creel.store.prefix"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default  creel\n", "value    p-alice\n", "written  p-${user.name}\n", "yarn-site.xml:4", "covers   creel (default)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("explain lacks %q:\n%s", want, b.String())
		}
	}
	if err := s.Explain(
		&b,
		"creel.store.prefx",
	); !errors.Is(err, settings.ErrUnknownSetting) ||
		!strings.Contains(err.Error(), "creel.store.prefix") {
		t.Errorf("explain of a misspelt key: %v", err)
	}
	if err := s.Explain(&b, "yarn.nodemanager.container-executor.class"); err != nil {
		t.Errorf("explain of a Hadoop key that is not used: %v", err)
	}
}

func TestExplainDoesNotCallUnknownNamesHadoops(t *testing.T) {
	s := load(t, sources(conf(t, map[string]string{"yarn-site.xml": site("cluster.name", "north")})))
	for key, want := range map[string]string{
		"yarn.nodemanager.container-executor.class": "Hadoop's; creel does not use it",
		"hadoop.http.colour":                        "not in Hadoop 3.4's defaults",
		"cluster.name":                              "neither creel nor Hadoop 3.4 knows it",
	} {
		var b bytes.Buffer
		if err := s.Explain(&b, key); err != nil || !strings.Contains(b.String(), want) ||
			strings.Contains(b.String(), "  Hadoop's;") != strings.HasPrefix(want, "Hadoop's") {
			t.Errorf("explain %s: %v\n%s", key, err, b.String())
		}
	}
	for _, key := range []string{"cluster.colour", "mapred.nosuch"} {
		if err := s.Explain(io.Discard, key); !errors.Is(err, settings.ErrUnknownSetting) {
			t.Errorf("explain %s: %v, want %v", key, err, settings.ErrUnknownSetting)
		}
	}
}

func TestCapacityPropertiesLayerAsInHadoop(t *testing.T) {
	dir := conf(t, map[string]string{
		"yarn-site.xml": site(
			"yarn.scheduler.capacity.root.a.capacity",
			"1",
			"yarn.scheduler.capacity.root.acl_submit_applications",
			"x",
			"size",
			"40",
		),
		"capacity-scheduler.xml": site(
			"yarn.scheduler.capacity.root.queues",
			"a,b",
			"yarn.scheduler.capacity.root.a.capacity",
			"${size}",
			"rest",
			"60",
			"yarn.scheduler.capacity.root.b.capacity",
			"${rest}",
		),
	})
	src := sources(dir)
	src.Defines = []string{"yarn.scheduler.capacity.root.queues=b,a"}
	s := load(t, src)
	props, err := s.CapacityScheduler()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range props {
		got[strings.TrimPrefix(p.Name, "yarn.scheduler.capacity.root.")] = p.Value + "@" + filepath.Base(p.Where())
	}
	for key, want := range map[string]string{"queues": "b,a@-D", "a.capacity": "40@capacity-scheduler.xml:3", "b.capacity": "60@capacity-scheduler.xml:5", "acl_submit_applications": "x@yarn-site.xml:3"} {
		if got[key] != want {
			t.Errorf("%s is %q, not %q", key, got[key], want)
		}
	}
	if err := os.WriteFile(
		filepath.Join(dir, "capacity-scheduler.xml"),
		[]byte(site("yarn.scheduler.capacity.root.c.capacity", "1")),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	again, err := s.ReloadCapacityScheduler()
	if err != nil || len(again) != 4 {
		t.Errorf("after a reload %v, %v", again, err)
	}
}

func TestFairSchedulerFileIsHandedOn(t *testing.T) {
	dir := conf(t, map[string]string{"fair-scheduler.xml": "<allocations/>"})
	path, data, err := load(t, sources(dir)).FairSchedulerFile()
	if err != nil || string(data) != "<allocations/>" || path != filepath.Join(dir, "fair-scheduler.xml") {
		t.Errorf("%s %q %v", path, data, err)
	}
	if _, data, err := load(t, sources("")).FairSchedulerFile(); data != nil || err != nil {
		t.Errorf("without a directory: %q %v", data, err)
	}
}

func TestDirectoryFromTheEnvironment(t *testing.T) {
	dir := conf(t, map[string]string{"yarn-site.xml": site("creel.rm.inbox", "3")})
	s := load(t, settings.Sources{Env: func(name string) (string, bool) { return dir, name == "HADOOP_CONF_DIR" }})
	if s.Dir() != dir || s.Int("creel.rm.inbox") != 3 {
		t.Errorf("dir %q inbox %d", s.Dir(), s.Int("creel.rm.inbox"))
	}
	if _, err := settings.Load(sources(filepath.Join(dir, "no-such"))); err == nil {
		t.Error("a directory that is not there was accepted")
	}
}

func TestAMistakeInTheProgramPanics(t *testing.T) {
	s := load(t, sources(""))
	for name, f := range map[string]func(){
		"unknown": func() { s.Int("yarn.no.such.key") },
		"type":    func() { s.Int("yarn.acl.enable") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestReferencePageIsUpToDate(t *testing.T) {
	const page = "../../docs/reference/settings.md"
	var b bytes.Buffer
	if err := settings.Reference(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Error(
			"docs/reference/settings.md does not match the registry; run go test ./internal/settings -run Reference -update",
		)
	}
}

func FuzzParseXML(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(site("a", "b")))
	f.Add([]byte(`<configuration><property name="a" value="b" final="true"/><configuration/></configuration>`))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]><configuration>&b;</configuration>`))
	f.Add([]byte(`<configuration><xi:include href="x"><xi:fallback/></xi:include></configuration>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		props, err := settings.ParseXML("f", data)
		if err != nil {
			var fe *settings.FileError
			if !errors.As(err, &fe) || props != nil {
				t.Fatalf("%v with %d properties", err, len(props))
			}
			return
		}
		for _, p := range props {
			if p.Name == "" || p.Line < 1 || p.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func FuzzExpand(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("${a}", "${b}", "c")
	f.Add("${env.X:-${a}}", "${${b}}", "${c")
	f.Add("${a}${a}${a}", "${b}${b}", "${a}")
	f.Fuzz(func(t *testing.T, first, a, b string) {
		src := sources("")
		src.Defines = []string{"first=" + first, "a=" + a, "b=" + b}
		s, err := settings.Load(src)
		if err != nil {
			t.Fatal(err) // free names are accepted
		}
		if v, _ := s.Lookup("first"); len(v.Text) > 1<<20 {
			t.Fatalf("%d bytes", len(v.Text))
		}
	})
}

// Clusters name the history server's principal in MapReduce's file. The rest of it is for jobs, and no setting of creel's.
func TestHistoryPrincipalIsReadFromMapReduce(t *testing.T) {
	s := load(t, sources(conf(t, map[string]string{"mapred-site.xml": site(
		"mapreduce.jobhistory.principal", "jhs/_HOST@REALM",
		"yarn.acl.enable", "true",
		"mapreduce.nosuch", "1",
	)})))
	if is := s.String("mapreduce.jobhistory.principal"); is != "jhs/_HOST@REALM" {
		t.Errorf("the principal is %q", is)
	}
	if r := s.Check(); s.Bool("yarn.acl.enable") || len(r.Unknown)+len(r.Ignored) > 0 {
		t.Errorf("the rest is read: %+v", r)
	}
}
