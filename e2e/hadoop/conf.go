// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"encoding/xml"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Conf is a set of Hadoop properties. A property's name decides its file in a configuration directory.
type Conf map[string]string

// With returns a copy with the properties of the others; later ones have precedence. An empty value removes a property.
func (c Conf) With(others ...Conf) Conf {
	out := maps.Clone(c)
	if out == nil {
		out = Conf{}
	}
	for _, o := range others {
		for name, value := range o {
			if value == "" {
				delete(out, name)
			} else {
				out[name] = value
			}
		}
	}
	return out
}

func fileOf(name string) string {
	switch {
	case strings.HasPrefix(name, "yarn.scheduler.capacity."):
		return "capacity-scheduler.xml"
	case strings.HasPrefix(name, "mapreduce."), strings.HasPrefix(name, "yarn.app.mapreduce."):
		// Required: mapred-default.xml is loaded after yarn-site.xml and would override it.
		return "mapred-site.xml"
	case strings.HasPrefix(name, "yarn."), strings.HasPrefix(name, "creel."):
		return "yarn-site.xml"
	case strings.HasPrefix(name, "dfs."):
		return "hdfs-site.xml"
	case strings.HasPrefix(name, "security."):
		return "hadoop-policy.xml"
	case strings.HasPrefix(name, "ssl.server."):
		return "ssl-server.xml"
	case strings.HasPrefix(name, "ssl.client."):
		return "ssl-client.xml"
	default:
		return "core-site.xml"
	}
}

// Write writes the configuration directory. It contains five XML files, those of HDFS and TLS if there are such
// settings, and a log4j configuration that logs INFO to standard error.
func (c Conf) Write(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	all := map[string][]property{
		"core-site.xml": nil, "yarn-site.xml": nil, "mapred-site.xml": nil, "capacity-scheduler.xml": nil,
		"hadoop-policy.xml": nil,
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all[fileOf(name)] = append(all[fileOf(name)], property{name, c[name]})
	}
	for file, properties := range all {
		text, err := xml.MarshalIndent(struct {
			XMLName    xml.Name `xml:"configuration"`
			Properties []property
		}{Properties: properties}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		// encoding/xml names the elements after the slice's field.
		text = []byte(
			strings.NewReplacer("<Properties>", "<property>", "</Properties>", "</property>").Replace(string(text)),
		)
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte(log4j), 0o644); err != nil {
		t.Fatal(err)
	}
}

const log4j = `log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
`

// Addresses are the addresses of a ResourceManager (creel's or Hadoop's) or of a Router. Each is "host:port" or empty.
type Addresses struct {
	Client, Scheduler, Tracker, Admin, Web string
}

// Conf returns the address properties for clients, AMs and nodes.
func (a Addresses) Conf() Conf {
	return Conf{}.With(Conf{
		"yarn.resourcemanager.address":                  a.Client,
		"yarn.resourcemanager.scheduler.address":        a.Scheduler,
		"yarn.resourcemanager.resource-tracker.address": a.Tracker,
		"yarn.resourcemanager.admin.address":            a.Admin,
		"yarn.resourcemanager.webapp.address":           a.Web,
	})
}

// OSUser returns the user of the tests, and so of every daemon and client.
func OSUser(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// common returns the settings of every configuration directory: a local file system, short reconnects, and this user's
// right to act for others.
func common(t testing.TB, dir string) Conf {
	u := OSUser(t)
	return Conf{
		"fs.defaultFS": "file:///",
		// The same files under another name: Skein requires a file system with a host.
		"fs.viewfs.mounttable.nodes.linkMergeSlash": "file:///",
		"hadoop.tmp.dir":                                           filepath.Join(dir, "tmp"),
		"hadoop.http.staticuser.user":                              u,
		"hadoop.proxyuser." + u + ".hosts":                         "*",
		"hadoop.proxyuser." + u + ".groups":                        "*",
		"yarn.resourcemanager.connect.max-wait.ms":                 "20000",
		"yarn.resourcemanager.connect.retry-interval.ms":           "500",
		"yarn.client.application-client-protocol.poll-interval-ms": "200",
		"yarn.client.nodemanager-connect.max-wait-ms":              "20000",
		"yarn.client.nodemanager-connect.retry-interval-ms":        "500",
		"yarn.node-attribute.fs-store.root-dir":                    "file://" + filepath.Join(dir, "node-attribute"),
		"yarn.node-labels.fs-store.root-dir":                       "file://" + filepath.Join(dir, "node-labels"),
		"ipc.client.connect.retry.interval":                        "200",
		"ipc.client.connect.max.retries":                           "3",
		"yarn.dispatcher.drain-events.timeout":                     "1000",
		"yarn.app.mapreduce.client-am.ipc.max-retries":             "1",
		"yarn.app.mapreduce.client.job.max-retries":                "0",
		"yarn.app.mapreduce.client-am.ipc.max-retries-on-timeouts": "1",
		// an unused port: clients must not wait for a history server
		"mapreduce.jobhistory.address":                     "127.0.0.1:1",
		"mapreduce.client.completion.pollinterval":         "500",
		"mapreduce.client.progressmonitor.pollinterval":    "200",
		"mapreduce.job.userlog.retain.hours":               "1",
		"mapreduce.jobhistory.loadedjob.tasks.max":         "1",
		"yarn.timeline-service.enabled":                    "false",
		"hadoop.security.groups.negative-cache.secs":       "0",
		"hadoop.caller.context.enabled":                    "true",
		"yarn.resourcemanager.application.max-tags":        "10",
		"yarn.nodemanager.disk-health-checker.interval-ms": "60000",
		"yarn.client.failover-sleep-base-ms":               "200",
	}
}

// containers returns the settings for an application's containers to find Hadoop. The paths are literal, so they do not
// depend on the launcher's environment.
func containers(jars, conf, dir string) Conf {
	const opens = " --add-opens=java.base/java.lang=ALL-UNNAMED"
	const small = " -XX:+UseSerialGC " + Quick
	return Conf{
		"yarn.application.classpath":                              conf + "," + jars + "/*",
		"mapreduce.application.classpath":                         jars + "/*",
		"mapreduce.framework.name":                                "yarn",
		"yarn.app.mapreduce.am.staging-dir":                       filepath.Join(dir, "staging"),
		"yarn.app.mapreduce.am.resource.mb":                       "512",
		"yarn.app.mapreduce.am.command-opts":                      "-Xmx320m" + small + opens,
		"mapreduce.map.memory.mb":                                 "256",
		"mapreduce.map.java.opts":                                 "-Xmx160m" + small,
		"mapreduce.reduce.memory.mb":                              "256",
		"mapreduce.reduce.java.opts":                              "-Xmx160m" + small,
		"mapreduce.task.io.sort.mb":                               "16", // the default of 100 does not fit the heap
		"yarn.app.mapreduce.am.staging-dir.erasurecoding.enabled": "false",
	}
}
