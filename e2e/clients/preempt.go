// SPDX-License-Identifier: Apache-2.0

package clients

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

//go:embed spark_gives_way.py
var sparkGivesWay []byte

// Preemption returns settings for creel's ResourceManagers so that a queue soon gets its guarantee: default has three
// tenths of the cluster, other the rest.
func Preemption() hadoop.Conf {
	const monitor = "yarn.resourcemanager.monitor.capacity.preemption."
	return hadoop.Conf{
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		"yarn.scheduler.capacity.root.default.capacity": "30",
		"yarn.scheduler.capacity.root.other.capacity":   "70",
		monitor + "monitoring_interval":                 "500",
		monitor + "max_wait_before_kill":                "4000",
		monitor + "total_preemption_per_round":          "1",
		monitor + "natural_termination_factor":          "1",
	}
}

// rpcLog is a log4j 2 configuration that makes a Spark JVM log each call to a ResourceManager with its response, in
// addition to Spark's log.
const rpcLog = `rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = %s
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %%d{HH:mm:ss.SSS} %%p %%c{1}: %%m%%n
logger.rpc.name = org.apache.hadoop.ipc.ProtobufRpcEngine2
logger.rpc.level = trace
`

// executors is the number of executors of 1024 MB that fill two nodes beside an AM of 896 MB.
const executors = 7

// SparkGivesWay runs a Spark application on the whole cluster of two nodes, in queue default. A MapReduce job then
// starts in the other queue. Executors are preempted for it, and both succeed. Spark is notified of each executor
// before its kill. It counts none of them and none of their tasks as failed, because one would end the application. It
// repeats those tasks.
func SparkGivesWay(t *testing.T, c *Cluster, mode string) {
	client, dir := c.client(t), t.TempDir()
	script, log := filepath.Join(client.Dir(), "gives_way.py"), filepath.Join(dir, "am.log")
	logging := filepath.Join(client.Dir(), "log4j2.properties")
	for file, text := range map[string]string{script: string(sparkGivesWay), logging: fmt.Sprintf(rpcLog, log)} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	options := "extraJavaOptions=" + hadoop.Quick + " -Dlog4j2.configurationFile=file:" + logging
	more := []string{
		fmt.Sprintf("spark.executor.instances=%d", executors), "spark.executor.memoryOverhead=512m",
		"spark.task.maxFailures=1", "spark.executor.maxNumFailures=1", "spark.yarn.maxAppAttempts=1",
	}
	if mode == "cluster" {
		more = append(more, "spark.driver."+options)
	} else {
		more = append(more, "spark.yarn.am."+options)
	}
	marks := func(what string) []string {
		found, err := filepath.Glob(filepath.Join(dir, what+".*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	spark := process.Start(t, sparkSubmit(t, client, hadoop.Spark35, mode, more, script, dir, fmt.Sprint(executors)))
	spark.Await(t, "a task on each executor", func() bool { return len(marks("began")) == executors })

	other := c.client(t, hadoop.Conf{"mapreduce.job.queuename": "other", "mapreduce.map.memory.mb": "1024"})
	job := other.Start(t, hadoop.SleepJob, "-m", "2", "-r", "0", "-mt", "500")
	if err := job.Exit(); err != nil {
		t.Fatalf("the job of the other queue: %v\n%s", err, job.Tail(60))
	}
	if spark.Ended() {
		t.Fatalf("Spark ended before it\n%s", spark.Tail(60))
	}

	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := spark.Exit(); err != nil {
		t.Fatalf("Spark: %v\n%s", err, spark.Tail(60))
	}
	output, err := os.ReadFile(filepath.Join(dir, "pi"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(output), "Pi is roughly 3.1415")
	c.ends(t, client, matches(t, spark.Output(), applicationID), "FINISHED", "SUCCEEDED")

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	am := string(text)
	told, taken := toldOf(am), preempted.FindAllStringSubmatchIndex(am, -1)
	if len(taken) == 0 {
		t.Fatalf("Spark's AM knows of no container that was preempted\n%s", spark.Tail(60))
	}
	for _, m := range taken {
		container, err := creel.ParseContainerID(am[m[2]:m[3]])
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := told[container.ID]; !ok || at > m[0] {
			t.Errorf("%s was killed, and Spark's AM was not told before", container)
		}
	}
	t.Logf("%d executors preempted, %d containers under notice before", len(taken), len(told))
	driver := spark.Output()
	if mode == "cluster" {
		driver = am
	}
	says(t, driver, "was preempted.",
		"its executor exited for a reason unrelated to the task. Not counting this failure towards the maximum")
	again := slices.DeleteFunc(marks("ended"), func(name string) bool { return strings.HasSuffix(name, ".0") })
	if all := len(marks("ended")); all != executors+1 || len(again) != len(taken) {
		t.Errorf("%d tasks ended, of them %v not at once; want %d and %d", all, again, executors+1, len(taken))
	}
	if strings.Contains(am, "Container marked as failed") {
		t.Error("Spark marks a container as failed")
	}
}

var (
	// Message of Spark's AM for an executor that ended with YARN's exit status for preemption.
	preempted = regexp.MustCompile(`Completed container (container_\w+).* \(state: COMPLETE, exit status: -102\)`)
	allocated = regexp.MustCompile(`Response <- .*: allocate \{.* preempt \{.*\}`)
	contract  = regexp.MustCompile(`container \{ id \{ .*?\} id: (\d+) \}`)
)

// toldOf returns, by container number, the first position of that container's preemption notice in an AM's call log.
func toldOf(log string) map[int64]int {
	told := map[int64]int{}
	for _, m := range allocated.FindAllStringIndex(log, -1) {
		answer := log[m[0]:m[1]]
		_, answer, _ = strings.Cut(answer, " preempt {")
		for _, c := range contract.FindAllStringSubmatch(answer, -1) {
			number, err := strconv.ParseInt(c[1], 10, 64)
			if _, before := told[number]; err == nil && !before {
				told[number] = m[0]
			}
		}
	}
	return told
}
