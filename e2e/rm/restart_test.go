// SPDX-License-Identifier: Apache-2.0

package rm

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

//go:embed spark_waves.py
var sparkWaves []byte

var (
	someMaps    = regexp.MustCompile(`map [1-9]\d?% reduce`)
	application = regexp.MustCompile(`application_\d+_\d+`)
)

// rounds is how often the ResourceManager is killed: CREEL_ROUNDS, or 2.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CREEL_ROUNDS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CREEL_ROUNDS=%s: give a number above 0", text)
	}
	return n
}

// kill -9 of the ResourceManager while a MapReduce job and a Spark job are in
// their middle. It comes back; both end well, in their first attempt, with every
// task run once.
func TestJobsOutliveTheResourceManager(t *testing.T) {
	rm, c := cluster(t, nil)
	for round := range rounds(t) {
		// Spark in client mode has its driver here, in cluster mode in its
		// AM.
		mode := []string{"client", "cluster"}[round%2]
		if !t.Run(fmt.Sprintf("round%d", round+1), func(t *testing.T) { killInTheMiddle(t, rm, c, mode) }) {
			return
		}
	}
}

func killInTheMiddle(t *testing.T, rm *Creel, c *clients.Cluster, mode string) {
	// Nine maps, two at a time: a middle that cannot be missed.
	pi := hadoop.Client{Conf: c.Conf.With(hadoop.Conf{"mapreduce.job.running.map.limit": "2"})}.Setup(t)
	shell := hadoop.Client{Conf: c.Conf}.Setup(t)
	dir := t.TempDir()
	script := filepath.Join(shell.Dir(), "waves.py")
	if err := os.WriteFile(script, sparkWaves, 0o644); err != nil {
		t.Fatal(err)
	}
	spark := process.Start(t, clients.SparkSubmit(t, shell, mode, script, dir))
	spark.Await(t, "the first Spark tasks", func() bool { return len(tasks(t, dir)) >= 2 })
	job := pi.Start(t, hadoop.Examples, "pi", "9", "100")
	job.Await(t, "the first maps", func() bool { return someMaps.MatchString(job.Output()) })

	rm.Kill9()
	rm.Restart(t)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}

	if err := job.Exit(); err != nil {
		t.Fatalf("pi: %v\n%s", err, job.Tail(60))
	}
	says(
		t,
		job.Output(),
		"Estimated value of Pi is 3.1",
		"Launched map tasks=9",
		"Launched reduce tasks=1",
		"Shuffled Maps =9",
	)
	for _, lost := range []string{"Failed map tasks", "Killed map tasks", "Failed reduce tasks", "Killed reduce tasks"} {
		if strings.Contains(job.Output(), lost) {
			t.Errorf("pi has %s\n%s", lost, job.Tail(60))
		}
	}
	if err := spark.Exit(); err != nil {
		t.Fatalf("Spark: %v\n%s", err, spark.Tail(60))
	}
	if output, err := os.ReadFile(
		filepath.Join(dir, "pi"),
	); err != nil ||
		!strings.Contains(string(output), "Pi is roughly 3.1415") {
		t.Errorf("Spark said %q, %v", output, err)
	}
	if ran := tasks(t, dir); len(ran) != 8 {
		t.Errorf("Spark ran %d tasks, want each of 8 once: %v", len(ran), ran)
	}
	for _, p := range []*process.Process{job, spark} {
		id := application.FindString(strings.ReplaceAll(p.Output(), "job_", "application_"))
		out := shell.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", id).OK(t).Stdout
		says(t, out, "Total number of application attempts :1")
		says(
			t,
			shell.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout,
			"State : FINISHED",
			"Final-State : SUCCEEDED",
		)
	}
}

// tasks are the marks of the Spark tasks that have run.
func tasks(t *testing.T, dir string) []string {
	t.Helper()
	ran, err := filepath.Glob(filepath.Join(dir, "task.*"))
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

// says fails unless the text contains all wanted parts.
func says(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}
