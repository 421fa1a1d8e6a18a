// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/programs"
)

type answer struct {
	Call, ID, Class, Message string
	OK                       bool
	Nodes, Active            int
}

func TestRealClusterServesBothClientVersions(t *testing.T) {
	t.Parallel()
	rm := StartRM(t, RM{})
	nm1 := StartNM(t, NM{Name: "nm1", RM: rm.Addresses})
	nm2 := StartNM(t, NM{Name: "nm2", RM: rm.Addresses, Host: "127.0.0.2"})
	for _, v := range []Version{V342, V336} {
		t.Run(string(v), func(t *testing.T) {
			c := Client{Version: v, Conf: rm.ClientConf()}.Setup(t)
			list := c.Run(t, NodeCLI, "-list").OK(t).Stdout
			for _, want := range []string{"Total Nodes:2", nm1.ID, nm2.ID} {
				if !strings.Contains(list, want) {
					t.Errorf("node list has no %q:\n%s", want, list)
				}
			}
			got := Lines[answer](t, c.Run(t, "YarnDriver", "metrics").OK(t))
			if len(got) != 1 || !got[0].OK || got[0].Nodes != 2 || got[0].Active != 2 {
				t.Errorf("metrics: %+v", got)
			}
			got = Lines[answer](t, c.Run(t, "YarnDriver", "report", "application_1_0001").OK(t))
			if len(got) != 1 || got[0].OK ||
				got[0].Class != "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException" {
				t.Errorf("report of an unknown application: %+v", got)
			}
		})
	}
	if !strings.HasPrefix(nm1.ID, "localhost:") || !strings.HasPrefix(nm2.ID, "127.0.0.2:") {
		t.Errorf("node ids %q, %q", nm1.ID, nm2.ID)
	}

	// A daemon comes back on its ports, and its nodes find it again.
	rm.Restart(t)
	c := Client{Conf: rm.ClientConf()}.Setup(t)
	rm.Await(t, "both nodes again", func() bool {
		out := rm.Output()
		return strings.Contains(out, "assigned nodeId "+nm1.ID) && strings.Contains(out, "assigned nodeId "+nm2.ID)
	})
	if out := c.Run(t, NodeCLI, "-list").OK(t).Stdout; !strings.Contains(out, "Total Nodes:2") {
		t.Errorf("after the restart: %s", out)
	}
}

func TestRealFederationStarts(t *testing.T) {
	t.Parallel()
	_, zk := StartZooKeeper(t)
	federation := Federation(zk)
	rm := StartRM(t, RM{Conf: federation.With(Conf{
		"yarn.resourcemanager.cluster-id": "SC-1", "yarn.resourcemanager.epoch": "1000",
	})})
	rm.WaitLine(t, "Successfully registered for federation subcluster")
	StartNM(t, NM{RM: rm.Addresses})
	router := StartRouter(t, Router{Conf: federation.With(RouterPipelines())})
	c := Client{Conf: router.ClientConf()}.Setup(t)
	var last string
	router.Await(t, "one node through the Router", func() bool {
		last = c.Run(t, NodeCLI, "-list").Stdout
		return strings.Contains(last, "Total Nodes:1")
	})
}

func TestMissingToolFailsWithAHint(t *testing.T) {
	if os.Getenv("HADOOP_TEST_NO_TOOLS") != "" {
		Jars(t, V342)
		t.Fatal("Jars came back without Maven")
	}
	java, err := programs.Path("java")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(java, filepath.Join(bin, "java")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMissingToolFailsWithAHint$", "-test.v")
	cmd.Env = []string{"HADOOP_TEST_NO_TOOLS=1", "CREEL_CACHE=" + t.TempDir(), "PATH=" + bin, "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "need mvn") || !strings.Contains(string(out), "apt-get install") ||
		strings.Contains(string(out), "SKIP") {
		t.Fatalf("err %v, output:\n%s", err, out)
	}
}

func TestDamagedCacheIsRebuilt(t *testing.T) {
	t.Setenv("CREEL_CACHE", t.TempDir())
	made := 0
	get := func() string {
		clear(verified) // as in the next process
		return Cached(t, "thing", []byte("recipe"), func(dir string) error {
			made++
			return os.WriteFile(filepath.Join(dir, "a.jar"), []byte("whole"), 0o644)
		})
	}
	dir := get()
	if get() != dir || made != 1 {
		t.Fatalf("made %d times", made)
	}
	for name, damage := range map[string]func() error{
		"short file":   func() error { return os.Truncate(filepath.Join(dir, "a.jar"), 2) },
		"missing file": func() error { return os.Remove(filepath.Join(dir, "a.jar")) },
	} {
		before := made
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if get(); made != before+1 {
			t.Errorf("%s: not made again", name)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a.jar")); err != nil || string(b) != "whole" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestConfGoesIntoRightFile(t *testing.T) {
	dir := t.TempDir()
	Conf{
		"fs.defaultFS": "file:///", "yarn.resourcemanager.address": "127.0.0.1:1", "mapreduce.shuffle.port": "7",
		"yarn.scheduler.capacity.root.queues": "a,<b>", "security.applicationclient.protocol.acl": " ops",
	}.Write(t, dir)
	for file, want := range map[string]string{
		"core-site.xml": "<name>fs.defaultFS</name>", "yarn-site.xml": "<value>127.0.0.1:1</value>",
		"mapred-site.xml": "<name>mapreduce.shuffle.port</name>", "capacity-scheduler.xml": "<value>a,&lt;b&gt;</value>",
		"hadoop-policy.xml": "<value> ops</value>",
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(b), want) || strings.Count(string(b), "<property>") != 1 {
			t.Errorf("%s: %v\n%s", file, err, b)
		}
	}
}
