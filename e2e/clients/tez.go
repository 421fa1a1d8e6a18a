// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

var tez = []Case{
	// Three vertices, in reused containers; the second reads the first one's output on its nodes.
	{"tez_wordcount", func(t *testing.T, c *Cluster) {
		jars := hadoop.TezJars(t)
		client := c.client(t)
		client.Jars = jars
		out := filepath.Join(client.Dir(), "out")
		var args []string
		for _, s := range []string{
			// Nothing is uploaded: all nodes can read the jars, like Hadoop's.
			"tez.ignore.lib.uris=true",
			"tez.cluster.additional.classpath.prefix=" + hadoop.Jars(t, hadoop.V342) + "/*:" + jars + "/*",
			"tez.staging-dir=" + filepath.Join(client.Dir(), "staging"),
			"tez.am.resource.memory.mb=512", "tez.task.resource.memory.mb=256",
			"tez.am.launch.cmd-opts=-Xmx320m -XX:+UseSerialGC " + hadoop.Quick + " " + hadoop.AddOpens,
			"tez.task.launch.cmd-opts=-Xmx160m -XX:+UseSerialGC " + hadoop.Quick,
			"tez.runtime.io.sort.mb=16", "tez.runtime.unordered.output.buffer.size-mb=16",
			"tez.am.tez-ui.webservice.enable=false",
		} {
			args = append(args, "-D", s)
		}
		args = append(args, input(t, client), out, "2")
		all := c.ran(t, client, "org.apache.tez.examples.OrderedWordCount", args...).All
		id := matches(t, all, applicationID)
		// The AM notifies the client before it unregisters from the ResourceManager.
		until(t, "the end of "+id, func() bool { return c.report(t, client, id).State == "FINISHED" })
		c.ends(t, client, id, "FINISHED", "SUCCEEDED")
		files, err := filepath.Glob(filepath.Join(out, "part-*"))
		var words strings.Builder
		for _, file := range files {
			text, e := os.ReadFile(file)
			if e != nil {
				err = e
			}
			words.Write(text)
		}
		if got := words.String(); err != nil || got != "creel\t1\nnode\t2\nqueue\t3\n" {
			t.Errorf("counted %q, %v\n%s", got, err, all)
		}
	}},
}
