// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

var flink = []Case{
	// The job's main method runs in the AM, which asks for containers as the job needs them.
	{"flink_application", func(t *testing.T, c *Cluster) {
		f := c.flink(t)
		all := f.run(t, "run", "-t", "yarn-application").All
		id := matches(t, all, applicationID)
		until(t, "the end of "+id, func() bool { return c.report(t, f.Client, id).State == "FINISHED" })
		c.ends(t, f.Client, id, "FINISHED", "SUCCEEDED")
		f.counted(t, all)
	}},
	// An AM that outlives its jobs, releases its containers between them, and requests others.
	{"flink_session", func(t *testing.T, c *Cluster) {
		f := c.flink(t)
		all := f.Run(t, "org.apache.flink.yarn.cli.FlinkYarnSessionCli", "-d").OK(t).All
		id := matches(t, all, applicationID)
		for range 2 {
			f.counted(t, f.run(t, "run", "-t", "yarn-session", "-Dyarn.application.id="+id).All)
			// Its page, by the web proxy of the cluster.
			until(t, "idle containers are given back by "+id, func() bool {
				return c.get(t, "/proxy/"+id+"/overview")["taskmanagers"] == 0.0
			})
		}
		stop := f.Client
		stop.Stdin = strings.NewReader("stop\n")
		stop.Run(t, "org.apache.flink.yarn.cli.FlinkYarnSessionCli", "-id", id).OK(t)
		until(t, "the end of "+id, func() bool { return c.report(t, f.Client, id).State == "FINISHED" })
		c.ends(t, f.Client, id, "FINISHED", "SUCCEEDED")
	}},
}

// flinkClient is a client machine with Flink on it.
type flinkClient struct {
	hadoop.Client
	out      string
	restarts bool // see Cluster
}

func (c *Cluster) flink(t *testing.T) flinkClient {
	t.Helper()
	client := c.client(t)
	home := hadoop.FlinkHome(t)
	client.Jars = filepath.Join(home, "lib")
	const opens = hadoop.AddOpens +
		" --add-opens=java.base/java.util=ALL-UNNAMED --add-exports=java.base/sun.net.util=ALL-UNNAMED"
	conf := filepath.Join(client.Dir(), "flink")
	client.Env = append(client.Env, "FLINK_CONF_DIR="+conf, "FLINK_LIB_DIR="+client.Jars,
		"FLINK_PLUGINS_DIR="+filepath.Join(home, "plugins"),
		// The session's id is written to the temporary directory. Another client must not read it.
		"JDK_JAVA_OPTIONS="+opens+" -Djava.io.tmpdir="+client.Dir()+c.Login.java())
	lines := append(c.Login.flink(),
		"env.java.opts.all: -XX:+UseSerialGC "+hadoop.Quick+" "+opens,
		"jobmanager.memory.process.size: 512m",
		"jobmanager.memory.jvm-metaspace.size: 128m",
		"jobmanager.memory.jvm-overhead.min: 32m",
		"jobmanager.memory.jvm-overhead.max: 32m",
		"jobmanager.memory.off-heap.size: 32m",
		"taskmanager.memory.process.size: 512m",
		"taskmanager.memory.framework.heap.size: 64m",
		"taskmanager.memory.framework.off-heap.size: 96m",
		"taskmanager.memory.jvm-metaspace.size: 96m",
		"taskmanager.memory.jvm-overhead.min: 32m",
		"taskmanager.memory.jvm-overhead.max: 32m",
		"taskmanager.memory.managed.size: 16m",
		"taskmanager.memory.network.min: 16m",
		"taskmanager.memory.network.max: 16m",
		"taskmanager.numberOfTaskSlots: 1",
		"parallelism.default: 2",
		"resourcemanager.taskmanager-timeout: 3 s",
		"yarn.application-attempts: 1",
	)
	if err := os.Mkdir(conf, 0o755); err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Join(lines, "\n") + "\n")
	if err := os.WriteFile(filepath.Join(conf, "config.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return flinkClient{client, filepath.Join(client.Dir(), "out"), c.Restarts}
}

// run runs an action of Flink's command line with the word-count job.
func (f *flinkClient) run(t *testing.T, action ...string) hadoop.Result {
	t.Helper()
	if err := os.RemoveAll(f.out); err != nil {
		t.Fatal(err)
	}
	args := append(action, "-c", "org.apache.flink.streaming.examples.wordcount.WordCount", hadoop.FlinkExamples(t),
		"--input", input(t, f.Client), "--output", f.out)
	r := f.Run(t, "org.apache.flink.client.cli.CliFrontend", args...)
	if f.restarts && r.Code != 0 && strings.Contains(r.All, "Couldn't retrieve Yarn cluster") {
		t.Log("its AM had not told a ResourceManager that was restarted where it is, which this client does not wait for: again")
		return f.run(t, action...)
	}
	return r.OK(t)
}

// counted fails unless the job has counted the words of its input. The job writes each new count of a word.
func (f *flinkClient) counted(t *testing.T, all string) {
	t.Helper()
	var words strings.Builder
	err := filepath.WalkDir(f.out, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(filepath.Base(path), "part-") {
			return err
		}
		text, err := os.ReadFile(path)
		words.Write(text)
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, all)
	}
	for word, n := range map[string]int{"(creel,1)": 1, "(node,2)": 1, "(queue,3)": 1, "(": 6} {
		if got := strings.Count(words.String(), word); got != n {
			t.Errorf("%s stands %d times, not %d, in what was counted:\n%s\n%s", word, got, n, words.String(), all)
		}
	}
}
