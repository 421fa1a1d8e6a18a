// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

//go:embed spark_pi.py
var sparkPi []byte

var spark = []Case{
	{"spark_client", func(t *testing.T, c *Cluster) { runSpark(t, c, hadoop.Spark35, "client") }},
	{"spark_cluster", func(t *testing.T, c *Cluster) { runSpark(t, c, hadoop.Spark35, "cluster") }},
	{"spark4_client", func(t *testing.T, c *Cluster) { runSpark(t, c, hadoop.Spark4, "client") }},
	{"spark4_cluster", func(t *testing.T, c *Cluster) { runSpark(t, c, hadoop.Spark4, "cluster") }},
}

// SparkSubmit returns the spark-submit command of a Python script by pyspark 3.5, with two small executors. The client
// must have been set up.
func SparkSubmit(t testing.TB, client hadoop.Client, mode, script string, arguments ...string) process.Command {
	t.Helper()
	return sparkSubmit(t, client, hadoop.Spark35, mode, nil, script, arguments...)
}

// sparkSubmit is SparkSubmit for any Spark, with additional configuration that takes precedence.
func sparkSubmit(
	t testing.TB, client hadoop.Client, line hadoop.Spark, mode string, more []string,
	script string, arguments ...string,
) process.Command {
	t.Helper()
	packages := hadoop.PysparkPath(t, line)
	home := filepath.Join(packages, "pyspark")
	python := python3(t)
	args := []string{
		filepath.Join(home, "bin", "spark-submit"),
		"--master",
		"yarn",
		"--deploy-mode",
		mode,
		"--name",
		"pi-" + mode,
	}
	for _, s := range append([]string{
		"spark.executor.instances=2", "spark.yarn.jars=local:" + home + "/jars/*",
		"spark.driver.memory=512m", "spark.executor.memory=512m", "spark.yarn.am.memory=512m", "spark.executor.cores=1",
		"spark.driver.extraJavaOptions=" + hadoop.Quick, "spark.executor.extraJavaOptions=" + hadoop.Quick,
		"spark.yarn.am.extraJavaOptions=" + hadoop.Quick,
		"spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.yarn.submit.waitAppCompletion=true",
		"spark.yarn.report.interval=200ms",
		// Without these a container advertises the machine's first address other than loopback.
		"spark.yarn.appMasterEnv.SPARK_LOCAL_IP=127.0.0.1", "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME=127.0.0.1",
		"spark.executorEnv.SPARK_LOCAL_IP=127.0.0.1", "spark.executorEnv.SPARK_LOCAL_HOSTNAME=127.0.0.1",
		"spark.yarn.appMasterEnv.PYTHONPATH=" + packages, "spark.executorEnv.PYTHONPATH=" + packages,
		"spark.pyspark.python=" + python, "spark.pyspark.driver.python=" + python,
	}, more...) {
		if mode == "cluster" && s == "spark.driver.host=127.0.0.1" {
			continue
		}
		args = append(args, "--conf", s)
	}
	return process.Command{
		Name: "spark-submit",
		Dir:  client.Dir(),
		Args: append(append(args, script), arguments...),
		Env: append(
			client.Environment(t),
			"SPARK_HOME="+home,
			"PYTHONPATH="+packages,
			"SPARK_LOCAL_IP=127.0.0.1",
			"SPARK_LOCAL_HOSTNAME=127.0.0.1",
			"PYSPARK_PYTHON="+python,
			"SPARK_SUBMIT_OPTS="+hadoop.Quick,
		),
	}
}

// python3 returns the interpreter itself: a version manager's shim fails in a container, which has another home
// directory.
func python3(t testing.TB) string {
	t.Helper()
	python, err := programs.Path("python3")
	if err != nil {
		t.Fatal(err)
	}
	if real, err := exec.Command(python, "-c", "import sys; print(sys.executable, end='')").Output(); err == nil {
		python = string(real)
	}
	return python
}

// runSpark submits pi.
func runSpark(t *testing.T, c *Cluster, line hadoop.Spark, mode string) {
	t.Helper()
	client := c.client(t)
	pi, result := filepath.Join(client.Dir(), "pi.py"), filepath.Join(client.Dir(), "pi.txt")
	if err := os.WriteFile(pi, sparkPi, 0o644); err != nil {
		t.Fatal(err)
	}
	// On a new machine it first fetches Spark, which takes minutes.
	submit := sparkSubmit(t, client, line, mode, nil, pi, result)
	submit.Args = slices.Insert(submit.Args, 1, c.Login.spark()...)
	submit.Env = append(submit.Env, c.Login.noTickets(client.Dir())...)
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, all, code := process.Run(ctx, t, submit)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, all)
	}
	output, err := os.ReadFile(result)
	if err != nil {
		t.Fatalf("%v\n%s", err, all)
	}
	says(t, string(output), "Pi is roughly 3.1")
	c.ends(t, client, matches(t, all, applicationID), "FINISHED", "SUCCEEDED")
}
