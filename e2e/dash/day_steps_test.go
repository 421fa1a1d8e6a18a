// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"fmt"
	"strings"
)

// A step is one part of an operator's day: an event, and what an operator reads and does about it.
type step struct {
	title string
	event string // for the page
	// pages are opened by clicks, commands are typed. Both lead to the same end.
	clicks   []click
	commands []command
	after    string // headline after the step
}

// click opens a page or presses a button. reads must then be on the page; … stands for text that varies.
type click struct {
	what  string // for the page
	on    string // selector; "" opens the first page, which is no click
	reads []string
}

// command is typed. "$id" is the id in the first row of the last list. reads must be in its lines; … stands for text
// that varies.
type command struct {
	line  string
	exit  int
	reads []string
}

// starved is the finding of the first step.
const starved = "root.prod has … of its guaranteed 50.0 % for … s; root.research holds …, entitled to 30.0 %; " +
	"preemption is off at sc-1, sc-2, sc-3."

const starvedRemedy = "creel app list --queue root.research --sort memory shows what holds it; kill one, " +
	"give root.research a maximum, or set yarn.resourcemanager.scheduler.monitor.enable there"

// operatorsDay is the day that TestOperatorsDay plays and docs/operations/day.md shows.
var operatorsDay = []step{
	{
		title: "A queue starves",
		event: "Three applications of `root.research` hold all nodes. Those of `root.prod` wait.",
		clicks: []click{
			{"first page", "", []string{starved, "Remedy: " + starvedRemedy}},
			{"*Applications of root.research, most memory first*", "#holder", []string{"Most memory first", "hog"}},
			{"the first application", "#apps tbody tr:first-child th a", []string{"It runs at … with …"}},
			{"*Kill*", "#kill button", []string{"Kill …: this cannot be undone."}},
			{"*Kill* in the question", "dialog .danger", []string{"It has ended: KILLED."}},
		},
		commands: []command{
			{"creel status", 0, []string{"bad       " + starved, "remedy    " + starvedRemedy}},
			{"creel app list --queue root.research --sort memory", 0, []string{"application_… hog … root.research … RUNNING"}},
			{`creel app kill "$id"`, 0, nil},
		},
		after: "All 3 members are well.",
	},
	{
		title: "A member is lost",
		event: "The ResourceManager of `gone` dies.",
		clicks: []click{
			{"first page", "", []string{"gone is lost; the sums are without it.", "Remedy: creel subcluster list shows the reasons.",
				"Partial: the sums are without gone (silent for …)."}},
			{"*gone* in the list of members", `#matrix a[href="/members/gone"]`, []string{"gone is lost: no heartbeat for …",
				"Its figures are … old and in no sum."}},
		},
		commands: []command{
			{"creel status", 7, []string{"bad       gone is lost; the sums are without it.",
				"remedy    creel subcluster list shows the reasons", "partial: missing gone (…)"}},
			{"creel subcluster list", 0, []string{"gone … lost … no heartbeat for …, three leases of 5.0 s are over"}},
		},
		after: "All 4 members are well.",
	},
	{
		title: "The state store is away",
		event: "Redis stops and does not answer.",
		clicks: []click{
			{"first page", "", []string{"The view is frozen: the state store does not answer: …",
				"Remedy: start the state store or repair the network."}},
			{"*Operations*", `header nav a[href="/operations"]`, []string{"view … frozen: the state store does not answer: …"}},
		},
		commands: []command{
			{"creel status", 0, []string{"bad       The view is frozen: the state store does not answer: …",
				"remedy    start the state store or repair the network"}},
			{"creel ready $CREEL_SERVER", 5, []string{"[-] view: frozen: the state store does not answer: …"}},
		},
		after: "All 4 members are well.",
	},
	{
		title: "A member is drained",
		event: "`sc-1` gets new disks tonight.",
		clicks: []click{
			{"first page", "", []string{"All 4 members are well."}},
			{"*sc-1* in the list of members", `#matrix a[href="/members/sc-1"]`, []string{"sc-1 is active."}},
			{"*Drain*", `form[data-method="PUT"][data-path$="/sc-1/drain"] button`, []string{"Drain sc-1: it gets no new work."}},
			{"*Drain* in the question", "dialog .danger", []string{"sc-1 is draining: …"}},
			{"*End the drain*", `form[data-method="DELETE"][data-path$="/sc-1/drain"] button`,
				[]string{"End the drain of sc-1: it gets new work again."}},
			{"*End the drain* in the question", "dialog .danger", []string{"sc-1 is active."}},
		},
		commands: []command{
			{`creel subcluster drain sc-1 --reason "new disks"`, 0, nil},
			{"creel status", 0, []string{"warn      sc-1 is draining.", "remedy    creel subcluster undrain sc-1 ends a drain"}},
			{"creel subcluster undrain sc-1", 0, nil},
		},
		after: "All 4 members are well.",
	},
	{
		title: "A wrong policy, and back",
		event: "Somebody has sent all applications of `root.default` to `gone`, which has no nodes.",
		clicks: []click{
			{"first page", "", []string{"root.default"}},
			{"*Policies*", `header nav a[href="/policies"]`, []string{"root.default … weighted"}},
			{"*root.default*", `#policies a[href="/policies/root.default"]`, []string{"all to gone", "balanced first"}},
			{"*Return to it* of the version before", "#history tbody tr:nth-child(2) form button",
				[]string{"Put version … of root.default in force again"}},
			{"*Return to it* in the question", "dialog .danger", []string{"home by balanced", "rollback to version …"}},
			{"*Applications*", `header nav a[href="/apps"]`, []string{"root.default … gone"}},
			{"the first application, which goes on waiting at `gone`", "#apps tbody tr:first-child th a",
				[]string{"It waits at gone"}},
			{"*Kill*", "#kill button", []string{"Kill …: this cannot be undone."}},
			{"*Kill* in the question", "dialog .danger", []string{"It has ended: KILLED."}},
		},
		commands: []command{
			{"creel app list --queue root.default --state waiting", 0, []string{"application_… root.default … gone … ACCEPTED"}},
			{"creel policy history root.default", 0, []string{"weighted … all to gone", "balanced … balanced first"}},
			{"creel policy rollback root.default", 0, []string{"queue root.default is at version …; the one before was …"}},
			{`creel app kill "$id"`, 0, nil},
		},
		after: "All 4 members are well.",
	},
}

// clicked counts the clicks of a step: opening the first page is none.
func (s *step) clicked() (n int) {
	for _, c := range s.clicks {
		n += min(len(c.on), 1)
	}
	return n
}

// dayPage writes docs/operations/day.md.
func dayPage(day []step) string {
	var b strings.Builder
	b.WriteString("# An operator's day\n\n" +
		"Find the event, read the same sentences, and do the same: by pages, or by commands. " +
		"… stands for text that varies.\n" +
		"`TestOperatorsDay` of e2e/dash plays this day in a browser and by commands; " +
		"`go test ./e2e/dash -run TestDayPage -update` writes this page.\n\n" +
		"| event | clicks | commands |\n| --- | --- | --- |\n")
	for _, s := range day {
		link := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(s.title), ",", ""), " ", "-")
		fmt.Fprintf(&b, "| [%s](#%s) | %d | %d |\n", s.title, link, s.clicked(), len(s.commands))
	}
	for _, s := range day {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| click | read |\n| --- | --- |\n", s.title, s.event)
		for _, c := range s.clicks {
			fmt.Fprintf(&b, "| %s | %s |\n", c.what, strings.Join(c.reads, "<br>"))
		}
		b.WriteString("\n```\n")
		for _, c := range s.commands {
			fmt.Fprintf(&b, "$ %s\n", c.line)
			for _, line := range c.reads {
				fmt.Fprintf(&b, "%s\n", line)
			}
		}
		fmt.Fprintf(&b, "```\n\nAfterwards the first sentence begins: %s\n", s.after)
	}
	return b.String()
}
