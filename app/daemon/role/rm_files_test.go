// SPDX-License-Identifier: Apache-2.0

package role

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/settings"
)

func TestHostFilesOfEitherForm(t *testing.T) {
	const sec = time.Second
	cases := map[string]struct {
		name, text string
		hosts      []string
		timeouts   map[string]time.Duration
		why        string // part of the error
	}{
		"words": {name: "out", text: "b  a # c\n\n\ta\n", hosts: []string{"a", "b"}},
		"names": {
			name: "out.XML",
			text: `<?xml version="1.0"?><hosts><host><name>h1</name></host>
				<host><name> h2 </name><timeout>123</timeout></host>
				<host><name>h3</name><timeout> -1 </timeout></host>
				<host><name>h4, h5,h6
					h7,,</name><!-- one hour --><timeout>3600</timeout><name>h8</name></host></hosts>`,
			hosts: []string{"h1", "h2", "h3", "h4", "h5", "h6", "h7"},
			timeouts: map[string]time.Duration{
				"h2": 123 * sec, "h3": -sec, "h4": 3600 * sec, "h5": 3600 * sec, "h6": 3600 * sec, "h7": 3600 * sec,
			},
		},
		"the later element wins": {
			name: "out.xml",
			text: "<h><host><name>a,b</name><timeout>0</timeout></host><host><name>a</name></host>" +
				"<host><timeout>5</timeout></host><name>c</name></h>",
			hosts: []string{"a", "b"}, timeouts: map[string]time.Duration{"b": 0},
		},
		"no hosts":      {name: "out.xml", text: "<hosts/>"},
		"deeper":        {name: "out.xml", text: "<a><b><host><x><name>c</name></x></host></b></a>", hosts: []string{"c"}},
		"empty":         {name: "out.xml", text: " ", why: "no element"},
		"cut off":       {name: "out.xml", text: "<hosts><host><name>a</name>", why: "unexpected EOF"},
		"words as XML":  {name: "out.xml", text: "a b", why: "no element"},
		"XML as words":  {name: "out", text: "<hosts><host><name>a</name></host></hosts>", why: "ends in .xml"},
		"no number":     {name: "out.xml", text: "<a><host><name>a</name><timeout>1h</timeout></host></a>", why: `"1h"`},
		"a large time":  {name: "out.xml", text: "<a><host><timeout>2147483648</timeout></host></a>", why: "2147483648"},
		"host in host":  {name: "out.xml", text: "<a><host><host/></host></a>", why: "inside"},
		"two documents": {name: "out.xml", text: "<a/><b/>", why: "after the first"},
		"a declaration": {name: "out.xml", text: `<!DOCTYPE a [<!ENTITY b "c">]><a/>`, why: "DOCTYPE"},
		"too deep":      {name: "out.xml", text: strings.Repeat("<a>", 33), why: "too deep"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), c.name)
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			hosts, timeouts, err := hostFile(file)
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), file) {
					t.Fatalf("%v, %v: want an error about %q", hosts, err, c.why)
				}
				return
			}
			if err != nil || !slices.Equal(hosts, c.hosts) || !maps.Equal(timeouts, c.timeouts) {
				t.Fatalf("%q, %v, %v", hosts, timeouts, err)
			}
		})
	}
}

// Hadoop reads the paths of both files from the configuration at each refresh.
func TestRefreshReadsPathsOfHostFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	site := func(seconds, include, exclude string) {
		write("yarn-site.xml", "<configuration>"+
			"<property><name>yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs</name><value>"+
			seconds+"</value></property>"+
			"<property><name>yarn.resourcemanager.nodes.include-path</name><value>"+include+"</value></property>"+
			"<property><name>yarn.resourcemanager.nodes.exclude-path</name><value>"+exclude+"</value></property>"+
			"</configuration>")
	}
	site("60", write("in", "a b c"), "")
	s, err := settings.Load(settings.Sources{ConfDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := rmSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Hosts()
	if err != nil || !slices.Equal(h.Include, []string{"a", "b", "c"}) || len(h.Exclude) > 0 || h.Timeout != time.Minute {
		t.Fatalf("%+v, %v", h, err)
	}
	site("5", write("in.xml", "<hosts><host><name>a, b</name></host></hosts>"),
		write("out.xml", "<hosts><host><name>b</name><timeout>7</timeout></host></hosts>"))
	h, err = c.Hosts()
	if err != nil || !slices.Equal(h.Include, []string{"a", "b"}) || !slices.Equal(h.Exclude, []string{"b"}) ||
		h.Timeouts["b"] != 7*time.Second || h.Timeout != 5*time.Second {
		t.Fatalf("%+v, %v", h, err)
	}
	write("yarn-site.xml", "<configuration>")
	if h, err := c.Hosts(); err == nil {
		t.Errorf("%+v of a configuration that cannot be read", h)
	}
}

// A file of any bytes is read or rejected, and every host has a name.
func FuzzHostsOfXML(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte("<hosts><host><name>a, b</name><timeout>5</timeout></host><host><name>c</name></host></hosts>"))
	f.Add([]byte("<a><b><host><x><name>c<y/>d</name></x></host></b></a>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		hosts, timeouts, err := hostsOfXML(b)
		if err != nil {
			return
		}
		for _, h := range hosts {
			if h == "" || h != strings.TrimSpace(h) {
				t.Fatalf("host %q", h)
			}
			delete(timeouts, h)
		}
		if len(timeouts) > 0 {
			t.Fatalf("timeouts of hosts that are not listed: %v", timeouts)
		}
	})
}
