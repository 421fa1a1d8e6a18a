// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updatePage = flag.Bool("update", false, "rewrite docs/reference/queue-differences.md")

const differencesPage = "../../docs/reference/queue-differences.md"

// A knownKind is a difference that is meant. A kind is a moment and a field, or a refusal; * stands for any text.
type knownKind struct {
	kind, where, hadoop, creel, why string

	with string // a pattern of a line key=value that some configuration has
	rare bool   // fewer than one in a hundred trees has it
}

func (k knownKind) match(kind string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(k.kind), `\*`, ".*") + "$").MatchString(kind)
}

var known = []knownKind{
	{
		kind:   "left over: *",
		where:  "after a change: shares and amounts of a queue whose unit of capacity changed",
		hadoop: "some values are those of the configuration before, until a restart",
		creel:  "those of the present configuration",
		why:    "A real ResourceManager that starts with the same file shows what creel shows.",
	},
	{
		kind:   "* queue.AMResourceLimit*",
		where:  "`AMResourceLimit` of a queue whose AMs may use all of the cluster",
		hadoop: "rounded up to whole containers, above the cluster",
		creel:  "at most the cluster",
		why:    "No more can be used.",
		rare:   true,
	},
	{
		kind:   "* queue.userAMResourceLimit*",
		where:  "`userAMResourceLimit` of such a queue",
		hadoop: "rounded up to whole containers, above the cluster",
		creel:  "at most the cluster",
		why:    "No more can be used.",
		rare:   true,
	},
	{
		kind:   "* queue.resources.*amLimit*",
		where:  "`amLimit` of such a queue",
		hadoop: "rounded up to whole containers, above the cluster",
		creel:  "at most the cluster",
		why:    "No more can be used.",
		rare:   true,
	},
	{
		kind:   "* *.normalizedWeight",
		where:  "`normalizedWeight` of a queue without a capacity beside queues with weights",
		hadoop: "negative",
		creel:  "0",
		why:    "The missing weight is read as -1 and divided by the sum.",
	},
	{
		kind:   "*refused by creel: *the maximum of * percent is below the capacity of*",
		where:  "a maximum below the capacity, in percent",
		hadoop: "accepted in some trees",
		creel:  "rejected",
		why:    "The guarantee could never be used.",
	},
	{
		kind:   "*refused by Hadoop: *Can not convert the leaf queue*",
		where:  "queues added below a running leaf",
		hadoop: "rejected until the leaf is stopped",
		creel:  "accepted if no application is in the leaf",
		why:    "Nothing in the queue is lost.",
	},
	{
		kind:   "*refused by Hadoop: *the maximum allocation size can not be decreased*",
		where:  "a smaller largest container of a queue",
		hadoop: "rejected until a restart",
		creel:  "accepted",
		why:    "Running containers keep their size.",
	},
	{
		kind:   "*refused by Hadoop: *Illegal capacity sum of * for children of queue*",
		where:  "capacities below a queue with 0 percent",
		hadoop: "rejected",
		creel:  "accepted",
		why:    "They are parts of nothing.",
		rare:   true,
	},
	{
		kind:   "*refused by Hadoop: *cannot be deleted from the capacity scheduler configuration*",
		where:  "a running parent that is no longer listed",
		hadoop: "rejected until it is stopped",
		creel:  "accepted if its leaves are stopped",
		why:    "Nothing in the queue is lost.",
		rare:   true,
	},
}

// absoluteKnown are the differences of trees whose capacities are amounts, besides those of known.
var absoluteKnown = append([]knownKind{
	{
		kind:   "none queue.*apacit*",
		where:  "shares of a queue, before the first node",
		hadoop: "NaN",
		creel:  "0, or 100 percent at most",
		why:    "Hadoop divides by 0 resources of the cluster.",
	},
	{
		kind:   "none queue.maxApplications*",
		where:  "`maxApplications` and `maxApplicationsPerUser`, before the first node",
		hadoop: "0",
		creel:  "1",
		why:    "An application may wait for the first node.",
	},
	{
		kind:   "*refused by creel: *the maximum * is below the capacity *",
		where:  "a maximum below the capacity",
		hadoop: "accepted in some trees",
		creel:  "rejected",
		why:    "The guarantee could never be used.",
		rare:   true,
	},
	{
		kind:   "*refused by creel: *the queues below * are promised *more than its own*",
		where:  "queues that are promised more than their parent",
		hadoop: "accepted in some trees",
		creel:  "rejected",
		why:    "The guarantees could not be kept together.",
		rare:   true,
	},
	{
		kind:   "*refused by Hadoop: *we must make sure both parent and child all use absolute minResource*",
		where:  "a change while a queue with `auto-queue-creation-v2.enabled` has an amount and no children",
		hadoop: "rejected in some trees",
		creel:  "accepted",
		why:    "Hadoop accepts the same queues at its start.",
		rare:   true,
	},
	{
		kind:   "*refused by creel: *is listed twice*",
		where:  "a queue that is listed twice",
		hadoop: "accepted in some trees",
		creel:  "rejected",
		why:    "The second name is a mistake.",
		rare:   true,
	},
}, rarely(known)...)

// rarely returns differences that other trees may lack.
func rarely(list []knownKind) []knownKind {
	out := slices.Clone(list)
	for i := range out {
		out[i].rare = true
	}
	return out
}

// The page lists the differences that the tests of drawn trees accept.
func TestQueueDifferencesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Queues: differences from Hadoop

After this page you know which queues creel reads or shows differently from Hadoop's CapacityScheduler and FairScheduler.
It is made from the lists of e2e/scheduler: ` + "`go test ./e2e/scheduler -run TestQueueDifferencesPage -update`" + `.

## CapacityScheduler

A test draws trees of queues with percentages and weights, and changes them by files and by calls. It compares each
rejection and each document of ` + "`/ws/v1/cluster/scheduler`" + ` with a ResourceManager of Hadoop 3.4.2. It accepts
these differences and no others.

| configuration or field | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range known {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	b.WriteString(`
Where all capacities are amounts, such as ` + "`[memory=1000,vcores=2]`" + `, another test accepts these as well:

| configuration or field | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range absoluteKnown[:len(absoluteKnown)-len(known)] {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	b.WriteString(`
Another test writes -1 for each key in turn. Both ResourceManagers show the same queues, or both reject it, except here:

| key with -1 | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range unsetKnown {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	b.WriteString(`
Another test shows trees of many notations by REST and by the RPC ` + "`getQueueInfo`" + `, before and after the first node:

| configuration or field | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range shownKnown {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	b.WriteString(`
Another test draws states of a full cluster with waiting applications, and compares the containers that the first round
of preemption chooses. They differ only here; a later round may end the difference:

| state | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range victimsKnown {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	b.WriteString(`
## FairScheduler

A test draws allocation files and changes of them, and compares the same. It accepts these differences and no others.
Rejections of a changed file are those in the log of Hadoop: its command reports none.

| element or field | Hadoop | creel | reason |
| --- | --- | --- | --- |
`)
	for _, k := range fairKnown {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.where, k.hadoop, k.creel, k.why)
	}
	if *updatePage {
		if err := os.WriteFile(differencesPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := os.ReadFile(differencesPage); err != nil || string(text) != b.String() {
		t.Errorf("%s differs from the list (%v): go test ./e2e/scheduler -run TestQueueDifferencesPage -update",
			differencesPage, err)
	}
}
