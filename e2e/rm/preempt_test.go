// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// A Hadoop MapReduce job fills the cluster, far above its queue's guarantee, when one of another queue comes. The
// second gets a container that is preempted from the first; both succeed, and no attempt counts as failed. An AM that
// acts on the message ends its task before a kill; one that does not loses it after the wait.
func TestQueueBelowGuaranteePreemptsHadoopJobs(t *testing.T) {
	const prefix = "yarn.resourcemanager.monitor.capacity.preemption."
	rm, c := cluster(t, hadoop.Conf{
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		prefix + "monitoring_interval":                  "500",
		prefix + "max_wait_before_kill":                 "4000",
		prefix + "total_preemption_per_round":           "1",
		prefix + "natural_termination_factor":           "1",
	})
	for name, policy := range map[string]string{
		"told and killed": "",
		"told and obeyed": "org.apache.hadoop.mapreduce.v2.app.rm.preemption.KillAMPreemptionPolicy",
	} {
		t.Run(name, func(t *testing.T) {
			conf := c.Conf.With(hadoop.Conf{"mapreduce.map.memory.mb": "1024"})
			if policy != "" {
				conf = conf.With(hadoop.Conf{"yarn.app.mapreduce.am.preemption.policy": policy})
			}
			first := hadoop.Client{Conf: conf}.Setup(t)
			large := first.Start(t, hadoop.SleepJob, "-m", "7", "-r", "0", "-mt", "45000")
			large.Await(t, "its maps, which fill the cluster", func() bool {
				return usedMB(t, c, "default") >= 512+1024
			})
			before := len(rm.Output())
			second := hadoop.Client{Conf: conf.With(hadoop.Conf{"mapreduce.job.queuename": "other"})}.Setup(t)
			small := second.Start(t, hadoop.SleepJob, "-m", "1", "-r", "0", "-mt", "500")
			if err := small.Exit(); err != nil {
				t.Fatalf("the job of the other queue: %v\n%s", err, small.Tail(40))
			}
			if err := large.Exit(); err != nil {
				t.Fatalf("the job that lost a task: %v\n%s", err, large.Tail(40))
			}
			for _, out := range []string{small.Output(), large.Output()} {
				says(t, out, "completed successfully")
				if strings.Contains(out, "Failed map tasks") {
					t.Errorf("a task counts as failed\n%s", out)
				}
			}
			says(t, large.Output(), "Killed map tasks=")
			id := application.FindString(strings.ReplaceAll(large.Output(), "job_", "application_"))
			attempts := first.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", id).OK(t).Stdout
			says(t, attempts, "Total number of application attempts :1")

			log := rm.Output()[before:]
			told, killed := victims(log, "notice"), victims(log, "kill")
			if len(told) == 0 {
				t.Fatalf("no AM was told of a container under notice\n%s", rm.Tail(30))
			}
			for container, at := range killed {
				if notice, ok := told[container]; !ok || notice > at {
					t.Errorf("%s was killed without a notice before", container)
				}
			}
			status := first.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout
			if policy == "" {
				if len(killed) == 0 {
					t.Error("nothing was killed")
				}
				says(t, status, "Aggregate Resource Preempted")
				if regexp.MustCompile(`Preempted : 0 MB-seconds`).MatchString(status) {
					t.Errorf("what was taken back is not counted:\n%s", status)
				}
			} else if len(killed) > 0 {
				t.Errorf("its AM gives back what it is told, and still %v were killed", killed)
			}
		})
	}
}

// Spark executors are preempted for a MapReduce job of another queue: Spark is notified beforehand and counts nothing
// as failed.
func TestSparkIsPreemptedForOtherQueue(t *testing.T) {
	rm, c := cluster(t, clients.Preemption())
	before := len(rm.Output())
	clients.SparkGivesWay(t, c, "client")
	log := rm.Output()[before:]
	if told, killed := victims(log, "notice"), victims(log, "kill"); len(told) == 0 || len(killed) == 0 {
		t.Errorf("the ResourceManager tells of %d notices and %d kills", len(told), len(killed))
	}
}

var victim = regexp.MustCompile(`"operation":"Preempt Container","target":"(container_\w+)","result":"\w+","what":"(\w+)"`)

// victims returns where in the log a container got notice, or was killed.
func victims(log, what string) map[string]int {
	found := map[string]int{}
	for _, m := range victim.FindAllStringSubmatchIndex(log, -1) {
		if log[m[4]:m[5]] == what {
			found[log[m[2]:m[3]]] = m[0]
		}
	}
	return found
}

// usedMB returns a queue's use by the REST document of the scheduler.
func usedMB(t *testing.T, c *clients.Cluster, queue string) int {
	t.Helper()
	r, err := http.Get("http://" + c.Web + "/ws/v1/cluster/scheduler")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var doc struct {
		Scheduler struct {
			Info struct {
				Queues struct {
					Queue []struct {
						Name string `json:"queueName"`
						Used struct {
							MB int `json:"memory"`
						} `json:"resourcesUsed"`
					} `json:"queue"`
				} `json:"queues"`
			} `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for _, q := range doc.Scheduler.Info.Queues.Queue {
		if q.Name == queue {
			return q.Used.MB
		}
	}
	t.Fatalf("no queue %s in the scheduler's document", queue)
	return 0
}
