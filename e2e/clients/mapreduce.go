// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// jobApplication matches the application of a job in a client's output.
func jobApplication(t *testing.T, text string) string {
	t.Helper()
	return "application_" + matches(t, text, `job_(\d+_\d+)`)
}

// runJob runs a job that must succeed and returns its client's output.
func runJob(t *testing.T, c *Cluster, client hadoop.Client, class string, args ...string) string {
	t.Helper()
	all := c.ran(t, client, class, args...).All
	says(t, all, "completed successfully")
	c.ends(t, client, jobApplication(t, all), "FINISHED", "SUCCEEDED")
	return all
}

// input makes three files of words and returns their directory.
func input(t *testing.T, client hadoop.Client) string {
	t.Helper()
	dir := filepath.Join(client.Dir(), "in")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "creel node queue\n", "b": "node queue\n", "c": "queue\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func counted(t *testing.T, dir string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "part-r-00000"))
	if err != nil || string(got) != "creel\t1\nnode\t2\nqueue\t3\n" {
		t.Errorf("counted %q, %v", got, err)
	}
}

var mapreduce = []Case{
	{"mr_sleep", func(t *testing.T, c *Cluster) {
		all := runJob(t, c, c.client(t), hadoop.SleepJob, "-m", "4", "-r", "0", "-mt", "200")
		if !c.Restarts {
			says(t, all, "Launched map tasks=4")
		}
	}},
	{"mr_pi", func(t *testing.T, c *Cluster) {
		all := runJob(t, c, c.client(t), hadoop.Examples, "pi", "3", "100")
		says(t, all, "Estimated value of Pi is 3.1", "Shuffled Maps =3")
		if !c.Restarts {
			says(t, all, "Launched reduce tasks=1")
		}
	}},
	{"mr_sleep_red", func(t *testing.T, c *Cluster) {
		all := runJob(t, c, c.client(t), hadoop.SleepJob, "-m", "3", "-r", "2", "-mt", "200", "-rt", "200")
		if !c.Restarts {
			says(t, all, "Launched map tasks=3", "Launched reduce tasks=2", "Failed Shuffles=0")
		}
	}},
	{"mr_wordcount", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		out := filepath.Join(client.Dir(), "out")
		runJob(t, c, client, hadoop.Examples, "wordcount", input(t, client), out)
		counted(t, out)
	}},
	{"mr_uber", func(t *testing.T, c *Cluster) {
		client := c.client(
			t,
			hadoop.Conf{"mapreduce.job.ubertask.enable": "true", "yarn.app.mapreduce.am.resource.mb": "768"},
		)
		out := filepath.Join(client.Dir(), "out")
		all := runJob(t, c, client, hadoop.Examples, "wordcount", input(t, client), out)
		says(t, all, "running in uber mode : true")
		counted(t, out)
	}},
	{"mr_fail", func(t *testing.T, c *Cluster) {
		client := c.client(
			t,
			hadoop.Conf{"mapreduce.map.java.opts": "-XX:NoSuchOption", "mapreduce.map.maxattempts": "2"},
		)
		r := client.Run(t, hadoop.SleepJob, "-m", "1", "-r", "0", "-mt", "200")
		if r.Code == 0 {
			t.Errorf("exit code 0\n%s", r.All)
		}
		c.ends(t, client, jobApplication(t, r.All), "FINISHED", "FAILED")
	}},
	{"mr_opportunistic", func(t *testing.T, c *Cluster) { OpportunisticMaps(t, c) }},
	{"mr_kill", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		p := client.Start(t, hadoop.SleepJob, "-m", "2", "-r", "0", "-mt", "600000")
		p.WaitLine(t, "map 0% reduce 0%")
		id := jobApplication(t, p.Output())
		// The AM's own REST API, through the web proxy.
		info, _ := c.get(t, "/proxy/"+id+"/ws/v1/mapreduce/info")["info"].(map[string]any)
		if info["appId"] != id {
			t.Errorf("the page of %s says %v", id, info)
		}
		says(
			t,
			client.Run(t, hadoop.JobClient, "-kill", strings.Replace(id, "application", "job", 1)).OK(t).All,
			"Killed job",
		)
		if err := p.Exit(); err == nil {
			t.Errorf("the killed job's client ended well\n%s", p.Tail(40))
		}
		until(t, "the killed job's end", func() bool { return c.report(t, client, id).State != "RUNNING" })
		// The AM ends itself as killed, or the RM kills it.
		if r := c.report(t, client, id); r.Final != "KILLED" {
			t.Errorf("%s is %s, %s", id, r.State, r.Final)
		}
	}},
}
