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
	shell := hadoop.Client{Conf: c.Conf}.Setup(t)
	spark := startWaves(t, shell, mode)
	job := runPi(t, c.Conf)

	rm.Kill9()
	rm.Restart(t)

	endsWithoutLoss(t, job)
	spark.endsWithoutLoss(t)
	for _, p := range []*process.Process{job, spark.Process} {
		inFirstAttempt(t, shell, p)
	}
}

// sparkJob is a Spark application of eight tasks. All but the first two wait for its end to be asked for.
type sparkJob struct {
	*process.Process
	marks string // a directory
}

// startWaves starts a sparkJob, and returns when the first two tasks have ended. The driver of the mode "client" is here,
// that of "cluster" in the AM.
func startWaves(t *testing.T, client hadoop.Client, mode string) *sparkJob {
	t.Helper()
	j := &sparkJob{marks: t.TempDir()}
	script := filepath.Join(client.Dir(), "waves.py")
	if err := os.WriteFile(script, sparkWaves, 0o644); err != nil {
		t.Fatal(err)
	}
	j.Process = process.Start(t, clients.SparkSubmit(t, client, mode, script, j.marks))
	j.Await(t, "the first Spark tasks", func() bool { return len(tasks(t, j.marks)) >= 2 })
	return j
}

// endsWithoutLoss lets the job end, and checks that it ends well and that each of its tasks ran once.
func (j *sparkJob) endsWithoutLoss(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(j.marks, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := j.Exit(); err != nil {
		t.Fatalf("Spark: %v\n%s", err, j.Tail(60))
	}
	output, err := os.ReadFile(filepath.Join(j.marks, "pi"))
	if err != nil || !strings.Contains(string(output), "Pi is roughly 3.1415") {
		t.Errorf("Spark said %q, %v", output, err)
	}
	if ran := tasks(t, j.marks); len(ran) != 8 {
		t.Errorf("Spark ran %d tasks, want each of 8 once: %v", len(ran), ran)
	}
}

// inFirstAttempt checks that the application of a client's process ended well in its first attempt.
func inFirstAttempt(t *testing.T, client hadoop.Client, p *process.Process) {
	t.Helper()
	id := application.FindString(strings.ReplaceAll(p.Output(), "job_", "application_"))
	out := client.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", id).OK(t).Stdout
	says(t, out, "Total number of application attempts :1")
	has(t, client, id, "FINISHED", "SUCCEEDED")
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
