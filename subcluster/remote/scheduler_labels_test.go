// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"reflect"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

const labelledDocument = `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root",
"capacities":{"queueCapacitiesByPartition":[{"partitionName":"","effectiveMinResource":{"memory":8192,"vCores":8}},
 {"partitionName":"gpu","effectiveMinResource":{"memory":4096,"vCores":4}}]},
"queues":{"queue":[
 {"queueName":"default","nodeLabels":["gpu"],"defaultNodeLabelExpression":"gpu",
  "resources":{"resourceUsagesByPartition":[{"partitionName":"gpu","used":{"memory":1024,"vCores":1},"pending":{"memory":512,"vCores":1}}]}},
 {"queueName":"teams","nodeLabels":["*"],"queues":{"queue":[
   {"queueName":"a","nodeLabels":["*"],
    "resources":{"resourceUsagesByPartition":{"partitionName":"gpu","used":{"memory":256,"vCores":1}}}},
   {"queueName":"b"}]}}]}}}}`

// The labels of Hadoop's ResourceManager are read from its scheduler and its list of labels: the resources of each,
// the queues that may name it, and those with it as the default.
func TestLabelsOfHadoopsSchedulerAreRead(t *testing.T) {
	r := creel.NewResource
	rule := func(q creel.QueuePath, byDefault string, accessible ...string) subcluster.QueueLabels {
		return subcluster.QueueLabels{Queue: q, Accessible: accessible, Default: byDefault}
	}
	for name, c := range map[string]struct {
		scheduler, labels string
		want              subcluster.Labels
	}{
		"labels": {labelledDocument, `{"nodeLabelInfo":[{"name":"ssd","exclusivity":"false"},{"name":"gpu","exclusivity":true}]}`,
			subcluster.Labels{
				Known: true,
				Partitions: []subcluster.Partition{
					{Label: "gpu", Total: r(4096, 4), Used: r(1280, 2), Pending: r(512, 1)},
					{Label: "ssd", Shared: true},
				},
				Queues: []subcluster.QueueLabels{rule("root.default", "gpu", "gpu"), rule("root.teams.b", "")},
			}},
		"one label": {labelledDocument, `{"nodeLabelInfo":{"name":"ssd","exclusivity":true}}`, subcluster.Labels{
			Known: true, Partitions: []subcluster.Partition{{Label: "ssd"}},
			Queues: []subcluster.QueueLabels{rule("root.default", "gpu", "gpu"), rule("root.teams.b", "")},
		}},
		"none":                   {labelledDocument, `{}`, subcluster.Labels{Known: true}},
		"null":                   {labelledDocument, `{"nodeLabelInfo":null}`, subcluster.Labels{Known: true}},
		"a scheduler of no such": {fairDocument, `{"nodeLabelInfo":[{"name":"gpu"}]}`, subcluster.Labels{Known: true}},
	} {
		got, err := ParseLabels([]byte(c.scheduler), []byte(c.labels))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
	}
	for name, labels := range map[string]string{"a page": `<html>`, "no list": `{"nodeLabelInfo":3}`} {
		if got, err := ParseLabels([]byte(labelledDocument), []byte(labels)); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func FuzzParseLabels(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(labelledDocument), []byte(`{"nodeLabelInfo":[{"name":"gpu","exclusivity":true}]}`))
	f.Fuzz(func(t *testing.T, scheduler, labels []byte) {
		if _, err := ParseScheduler(scheduler); err != nil {
			return
		}
		got, err := ParseLabels(scheduler, labels)
		if err != nil {
			return
		}
		load := subcluster.Load{Labels: got}
		text, err := load.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := subcluster.ParseLoad(text); err != nil && len(text) < 4<<20 {
			t.Fatalf("what was read of %q and %q cannot be reported: %v", scheduler, labels, err)
		}
	})
}
