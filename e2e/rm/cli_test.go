// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// commands are a user's command lines, TS for the cluster's timestamp. They run in the state of stage.play.
var commands = strings.Split(strings.TrimSpace(`
NodeCLI -list -all
NodeCLI -list -states SHUTDOWN
NodeCLI -list -showDetails
NodeCLI -status 127.0.0.2:1
NodeCLI -status 127.0.0.4:1
NodeCLI -status 127.0.0.9:1
ApplicationCLI application -list
ApplicationCLI application -list -appStates ALL
ApplicationCLI application -list -appStates FINISHED,KILLED
ApplicationCLI application -list -appTypes MAPREDUCE
ApplicationCLI application -list -appTags blue -appStates ALL
ApplicationCLI application -status application_TS_0001
ApplicationCLI application -status application_TS_0002
ApplicationCLI application -status application_TS_0003
ApplicationCLI application -status application_TS_0004
ApplicationCLI application -status application_TS_0099
ApplicationCLI application -status nonsense
ApplicationCLI application -kill application_TS_0099
ApplicationCLI application -kill application_TS_0001
ApplicationCLI application -movetoqueue application_TS_0003 -queue nowhere
ApplicationCLI application -appId application_TS_0001 -updatePriority 2
ApplicationCLI application -appId application_TS_0003 -updatePriority 7
ApplicationCLI application -appId application_TS_0003 -updatePriority 99
ApplicationCLI application -appId application_TS_0099 -updateLifetime 10
ApplicationCLI applicationattempt -list application_TS_0001
ApplicationCLI applicationattempt -list application_TS_0003
ApplicationCLI applicationattempt -list application_TS_0099
ApplicationCLI applicationattempt -status appattempt_TS_0001_000001
ApplicationCLI applicationattempt -status appattempt_TS_0003_000001
ApplicationCLI applicationattempt -status appattempt_TS_0003_000009
ApplicationCLI applicationattempt -fail appattempt_TS_0001_000001
ApplicationCLI container -list appattempt_TS_0003_000001
ApplicationCLI container -list appattempt_TS_0001_000001
ApplicationCLI container -status container_TS_0003_01_000001
ApplicationCLI container -status container_TS_0003_01_000099
ApplicationCLI container -status container_e17_TS_0003_01_000001
ApplicationCLI container -signal container_TS_0003_01_000099
QueueCLI -status root
QueueCLI -status default
QueueCLI -status root.other
QueueCLI -status nowhere
QueueCLI -list all
QueueCLI -list default
ClusterCLI -lnl
ClusterCLI -lna
ClusterCLI -list-node-labels
NodeAttributesCLI -list
NodeAttributesCLI -nodestoattributes
NodeAttributesCLI -attributestonodes
RMAdminCLI -refreshQueues
RMAdminCLI -refreshNodes
RMAdminCLI -refreshSuperUserGroupsConfiguration
RMAdminCLI -refreshUserToGroupsMappings
RMAdminCLI -refreshAdminAcls
RMAdminCLI -refreshClusterMaxPriority
RMAdminCLI -refreshServiceAcl
RMAdminCLI -getGroups nobody
RMAdminCLI -addToClusterNodeLabels gpu
RMAdminCLI -updateNodeResource 127.0.0.2:1 4096 4
NodeAttributesCLI -add 127.0.0.2:os=linux,kernel(string)=6.1-rc.2
NodeAttributesCLI -add 127.0.0.3:os=linux,fast
NodeAttributesCLI -add 127.0.0.9:os=other
NodeAttributesCLI -add 127.0.0.9:os=else -failOnUnknownNodes
NodeAttributesCLI -add 127.0.0.2:-os=linux
NodeAttributesCLI -add 127.0.0.2:os=_linux
NodeAttributesCLI -add 127.0.0.2:nm.yarn.io/os=linux
NodeAttributesCLI -add 127.0.0.2:os(int)=1
NodeAttributesCLI -list
NodeAttributesCLI -nodestoattributes
NodeAttributesCLI -nodestoattributes -nodes 127.0.0.2,127.0.0.8
NodeAttributesCLI -attributestonodes
NodeAttributesCLI -attributestonodes -attributes rm.yarn.io/os,rm.yarn.io/none
ClusterCLI -lna
NodeAttributesCLI -replace 127.0.0.2:os=bsd
NodeAttributesCLI -remove 127.0.0.3:fast
NodeAttributesCLI -remove 127.0.0.3:none
NodeAttributesCLI -remove 127.0.0.9:os
NodeAttributesCLI -replace 127.0.0.3:
NodeAttributesCLI -list
NodeAttributesCLI -nodestoattributes
NodeAttributesCLI -attributestonodes
NodeCLI -status 127.0.0.2:1
`), "\n")

// knownDifferences are the commands whose output differs from a real ResourceManager's, with the reasons.
var knownDifferences = map[string]string{}

type commandOutput struct {
	Command, Out, Err string
	Code              int
}

// text returns the output on the user's terminal.
func (p commandOutput) text() string { return strings.TrimSpace(p.Out + "\n" + p.Err) }

// Hadoop's program prints the same with creel as with a real ResourceManager in the same state.
func TestTheCommandLinePrintsTheSame(t *testing.T) {
	ours, theirs := Start(t, Options{}), hadoop.StartRM(t, hadoop.RM{Conf: hadoop.Conf{
		"yarn.resourcemanager.placement-constraints.handler":              "",
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "",
	}})
	got := ask(t, newStage(t, ours.Process, ours.Addresses))
	want := ask(t, newStage(t, theirs.Process, theirs.Addresses))
	if len(got) != len(commands) || len(want) != len(commands) {
		t.Fatalf("%d and %d answers to %d commands", len(got), len(want), len(commands))
	}
	for i, command := range commands {
		if why, known := knownDifferences[command]; known {
			if got[i].text() == want[i].text() {
				t.Errorf("%s prints the same: it is no longer different because %s", command, why)
			}
			continue
		}
		// A message may be on either stream: both end up on the user's terminal.
		if got[i].Code != want[i].Code || got[i].text() != want[i].text() {
			t.Errorf(
				"yarn %s: exit code %d, Hadoop's %d\n%s",
				command,
				got[i].Code,
				want[i].Code,
				lineDiff(got[i].text(), want[i].text()),
			)
		}
	}
}

// lineDiff is the lines that only one of two texts has: + ours, - Hadoop's.
func lineDiff(ours, theirs string) string {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	var out strings.Builder
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintf(&out, "+ %s\n", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&out, "- %s\n", line)
		}
	}
	if out.Len() == 0 {
		return "the same lines in another order or number:\n" + ours + "\n---\n" + theirs
	}
	return out.String()
}

// ask plays the state and types the commands.
func ask(t *testing.T, s *stage) []commandOutput {
	t.Helper()
	ts := fmt.Sprint(s.play())
	client := hadoop.Client{Conf: s.Addresses.Conf()}
	client.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(commands, "\n"), "TS", ts) + "\n")
	all := hadoop.Lines[commandOutput](t, client.Run(t, "CommandLines").OK(t))
	for i := range all {
		for _, text := range []*string{&all[i].Command, &all[i].Out, &all[i].Err} {
			*text = plain(*text, ts, s.Addresses)
		}
		if strings.Contains(all[i].Command, " container ") {
			// Which node had room first is chance.
			all[i].Out = regexp.MustCompile(`127\.0\.0\.[23]`).ReplaceAllString(all[i].Out, "NODE")
		}
		if strings.Contains(all[i].Command, " -list") || strings.Contains(all[i].Command, "stonodes") {
			// Hadoop lists in the order of its hash tables.
			lines := strings.Split(strings.TrimSpace(all[i].Out), "\n")
			slices.Sort(lines)
			all[i].Out = strings.Join(lines, "\n") + "\n"
		}
	}
	return all
}

var varying = []struct {
	pattern *regexp.Regexp
	plain   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ `), ""}, // log lines
	{regexp.MustCompile(`(?m)^(INFO|WARN|ERROR) .*\n`), ""},         //
	{
		regexp.MustCompile(`\w{3} \w{3} \d\d \d\d:\d\d:\d\d [+A-Z]\w* ?\d{4}`),
		"TIME",
	}, // Sat Nov 21 16:00:00 +0000 2026
	{regexp.MustCompile(`\w{3} \d\d/\w{3}/\d\d \d\d:\d\d:\d\d:\d+\w+`), "TIME"},                // health updates
	{regexp.MustCompile(`\d{13}`), "TIME"},                                                     // milliseconds
	{regexp.MustCompile(`\d+ MB-seconds, \d+ vcore-seconds`), "N MB-seconds, N vcore-seconds"}, //
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}`), "TIME"},                           //
	{regexp.MustCompile(`RemainingTime : \d+seconds`), "RemainingTime : Nseconds"},             //
	{regexp.MustCompile(`(?m)^\s+at [\w.$/]+\(.*\)\n`), ""},                                    // stack traces
	{
		regexp.MustCompile(`(?m)^Caused by: .*\n|^\s+\.\.\. \d+ more\n`),
		"",
	}, // and the rest of them
	{
		regexp.MustCompile(`java\.io\.IOException: `),
		"",
	}, // clients take the class for a broken connection: ours never names it
	{
		regexp.MustCompile(`[ \t]+`),
		" ",
	}, // column widths follow the ids
	{regexp.MustCompile(`Connecting to ResourceManager at /\S+`), "Connecting to ResourceManager"}, //
}

// plain removes text that differs between any two runs of one ResourceManager.
func plain(text, ts string, a hadoop.Addresses) string {
	text = strings.NewReplacer(ts, "TS", strings.Replace(a.Web, "127.0.0.1", "localhost", 1), "WEB", a.Web, "WEB", a.Client, "CLIENT", a.Admin, "ADMIN").
		Replace(text)
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.plain)
	}
	return regexp.MustCompile(`\n\s*\n`).ReplaceAllString(strings.TrimSpace(text), "\n")
}
