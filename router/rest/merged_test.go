// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// mergeDocs merges documents of members of the same size.
func mergeDocs(t *testing.T, typ string, docs ...string) string {
	t.Helper()
	m := router.Merger[[]byte]{
		Form:     jsonForm{},
		Unlisted: func(typ, field string) { t.Errorf("no rule for %s.%s", typ, field) },
	}
	var parts []router.Weighed[[]byte]
	for i, doc := range docs {
		parts = append(
			parts,
			router.Weighed[[]byte]{Member: creel.SubclusterID(fmt.Sprint("sc-", i)), Size: 1000, Value: []byte(doc)},
		)
	}
	out := m.Merge(typ, parts)
	if !json.Valid(out) {
		t.Fatalf("no JSON: %s", out)
	}
	return string(out)
}

const resource3x = `{"memory":%d,"vCores":%d,"resourceInformations":{"resourceInformation":[` +
	`{"attributes":{},"maximumAllocation":8192,"minimumAllocation":1024,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":%d},` +
	`{"attributes":{},"maximumAllocation":4,"minimumAllocation":1,"name":"vcores","resourceType":"COUNTABLE","units":"","value":%d}]}}`

func resource(memory, cores int) string { return fmt.Sprintf(resource3x, memory, cores, memory, cores) }

// leaf returns a queue of one member, as Hadoop 3.4 writes it; users are its users' names and their use in MB.
func leaf(name string, users map[string]int) string {
	var names []string
	used := 0
	for _, n := range slices.Sorted(func(yield func(string) bool) {
		for n := range users {
			if !yield(n) {
				return
			}
		}
	}) {
		used += users[n]
		names = append(
			names,
			fmt.Sprintf(`{"username":%q,"resourcesUsed":%s,"numPendingApplications":1,"numActiveApplications":2,`+
				`"AMResourceUsed":%s,"userResourceLimit":%s,"resources":{"resourceUsagesByPartition":[{"partitionName":"","used":%s}]},`+
				`"userWeight":1.0,"isActive":true}`, n, resource(users[n], 1), resource(1, 1), resource(4096, 4), resource(users[n], 1)),
		)
	}
	return fmt.Sprintf(
		`{"type":"capacitySchedulerLeafQueueInfo","queuePath":"root.%[1]s","capacity":70.0,"usedCapacity":25.0,`+
			`"maxCapacity":100.0,"absoluteCapacity":70.0,"absoluteMaxCapacity":100.0,"absoluteUsedCapacity":17.5,"weight":-1.0,`+
			`"normalizedWeight":0.0,"numApplications":3,"maxParallelApps":2147483647,"queueName":%[1]q,"isAbsoluteResource":false,`+
			`"state":"RUNNING","resourcesUsed":%[2]s,"hideReservationQueues":false,"nodeLabels":["*"],"allocatedContainers":5,`+
			`"reservedContainers":0,"pendingContainers":1,"capacities":{"queueCapacitiesByPartition":[{"partitionName":"",`+
			`"queueCapacityVectorInfo":{"configuredCapacityVector":"[memory-mb=70.0%%,vcores=70.0%%]"},"capacity":70.0,"usedCapacity":25.0,`+
			`"maxCapacity":100.0,"absoluteCapacity":70.0,"absoluteUsedCapacity":17.5,"absoluteMaxCapacity":100.0,"maxAMLimitPercentage":10.0,`+
			`"effectiveMinResource":%[3]s,"effectiveMaxResource":%[4]s}]},"maximumAllocation":%[5]s,"queueAcls":{"queueAcl":[`+
			`{"accessType":"ADMINISTER_QUEUE","accessControlList":"*"},{"accessType":"SUBMIT_APP","accessControlList":" "}]},`+
			`"queuePriority":0,"mode":"percentage","numActiveApplications":2,"numPendingApplications":1,"numContainers":5,`+
			`"maxApplications":7000,"maxApplicationsPerUser":7000,"userLimit":100.0,"users":{"user":[%[6]s]},"userLimitFactor":1.0,`+
			`"configuredMaxAMResourceLimit":0.1,"AMResourceLimit":%[7]s,"preemptionDisabled":true,"defaultPriority":0,`+
			`"maxApplicationLifetime":-1,"defaultApplicationLifetime":-1}`,
		name,
		resource(used, 5),
		resource(70_000, 70),
		resource(100_000, 100),
		resource(8192, 4),
		strings.Join(names, ","),
		resource(7000, 7),
	)
}

func capacityDoc(lastrun int64, leaves ...string) string {
	return fmt.Sprintf(
		`{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","capacity":100.0,"usedCapacity":17.5,"maxCapacity":100.0,`+
			`"queueName":"root","queuePath":"root","maxParallelApps":2147483647,"queues":{"queue":[%s]},"health":{"lastrun":%d,`+
			`"operationsInfo":[{"operation":"last-allocation","nodeId":"N/A"}],"lastRunDetails":[{"operation":"releases","count":2,"resources":%s}]},`+
			`"maximumAllocation":%s,"queuePriority":0}}}`,
		strings.Join(leaves, ","),
		lastrun,
		resource(10, 1),
		resource(8192, 4),
	)
}

// valueAt finds a value by fields and, in lists, by index.
func valueAt(t *testing.T, doc string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

// Three members of the same size and settings have the queue tree of one that has all their nodes: capacities,
// percentages and maxima stay, uses add up, users are joined, a time stays a time, memory and cores stay apart.
func TestThreeEqualCapacityTreesAreOne(t *testing.T) {
	doc := mergeDocs(t, "scheduler document",
		capacityDoc(1_700_000_000_001, leaf("default", map[string]int{"alice": 1000, "bob": 500}), leaf("east", nil)),
		capacityDoc(1_700_000_000_003, leaf("default", map[string]int{"alice": 2000})),
		capacityDoc(1_700_000_000_002, leaf("default", map[string]int{"carol": 4000}), leaf("west", nil)))
	root := []any{"scheduler", "schedulerInfo"}
	queue := append(slices.Clone(root), "queues", "queue", 0)
	for _, want := range []struct {
		path []any
		is   any
	}{
		{append(root, "maximumAllocation", "memory"), 8192.0},
		{append(root, "maximumAllocation", "vCores"), 4.0},
		{append(root, "capacity"), 100.0},
		{append(root, "usedCapacity"), 17.5},
		{append(root, "maxParallelApps"), 2147483647.0},
		{append(root, "health", "lastrun"), 1_700_000_000_003.0},
		{append(root, "health", "lastRunDetails", 0, "count"), 6.0},
		{append(queue, "capacity"), 70.0},
		{append(queue, "usedCapacity"), 25.0},
		{append(queue, "absoluteCapacity"), 70.0},
		{append(queue, "absoluteUsedCapacity"), 17.5},
		{append(queue, "weight"), -1.0},
		{append(queue, "userLimit"), 100.0},
		{append(queue, "userLimitFactor"), 1.0},
		{append(queue, "configuredMaxAMResourceLimit"), 0.1},
		{append(queue, "defaultPriority"), 0.0},
		{append(queue, "maxApplicationLifetime"), -1.0},
		{append(queue, "maximumAllocation", "memory"), 8192.0},
		{append(queue, "numApplications"), 9.0},
		{append(queue, "maxApplications"), 21000.0},
		{append(queue, "resourcesUsed", "memory"), 7500.0},
		{append(queue, "resourcesUsed", "vCores"), 15.0},
		{append(queue, "resourcesUsed", "resourceInformations", "resourceInformation", 0, "name"), "memory-mb"},
		{append(queue, "resourcesUsed", "resourceInformations", "resourceInformation", 0, "value"), 7500.0},
		{append(queue, "resourcesUsed", "resourceInformations", "resourceInformation", 0, "maximumAllocation"), 8192.0},
		{append(queue, "resourcesUsed", "resourceInformations", "resourceInformation", 1, "name"), "vcores"},
		{append(queue, "resourcesUsed", "resourceInformations", "resourceInformation", 1, "value"), 15.0},
		{append(queue, "capacities", "queueCapacitiesByPartition", 0, "capacity"), 70.0},
		{append(queue, "capacities", "queueCapacitiesByPartition", 0, "effectiveMinResource", "memory"), 210_000.0},
		{append(queue, "users", "user", 0, "username"), "alice"},
		{append(queue, "users", "user", 0, "resourcesUsed", "memory"), 3000.0},
		{append(queue, "users", "user", 0, "userWeight"), 1.0},
		{append(queue, "users", "user", 1, "username"), "bob"},
		{append(queue, "users", "user", 2, "username"), "carol"},
		{append(queue, "queueAcls", "queueAcl", 1, "accessType"), "SUBMIT_APP"},
	} {
		if got := valueAt(t, doc, want.path...); got != want.is {
			t.Errorf("%v is %v, want %v", want.path, got, want.is)
		}
	}
	if n := len(valueAt(t, doc, append(root, "queues", "queue")...).([]any)); n != 3 {
		t.Errorf("%d queues, want default, east and west", n)
	}
	if n := len(
		valueAt(t, doc, append(queue, "resourcesUsed", "resourceInformations", "resourceInformation")...).([]any),
	); n != 2 {
		t.Errorf("%d resource types, want memory and vcores", n)
	}
}

// Of members of different sizes the percentages are means by size.
func TestPercentagesAreWeightedBySize(t *testing.T) {
	m := router.Merger[[]byte]{Form: jsonForm{}}
	doc := func(used, absolute string) []byte {
		return []byte(
			`{"queueName":"a","capacity":` + absolute + `,"usedCapacity":` + used + `,"absoluteCapacity":` + absolute + `}`,
		)
	}
	out := string(m.Merge("CapacitySchedulerQueueInfo", []router.Weighed[[]byte]{
		{Member: "a", Size: 3000, Value: doc("100.0", "50.0")}, // uses 1500 of 1500
		{Member: "b", Size: 1000, Value: doc("0.0", "50.0")},   // uses 0 of 500
	}))
	if out != `{"queueName":"a","capacity":50.0,"usedCapacity":75.0,"absoluteCapacity":50.0}` {
		t.Error(out)
	}
}

func TestThreeEqualFairTreesAreOne(t *testing.T) {
	doc := `{"scheduler":{"schedulerInfo":{"type":"fairScheduler","rootQueue":{"maxApps":2147483647,"minResources":` + resource(
		0,
		0,
	) +
		`,"maxResources":` + resource(
		16384,
		16,
	) + `,"usedResources":` + resource(
		4096,
		4,
	) + `,"steadyFairResources":` + resource(
		8192,
		8,
	) +
		`,"maxContainerAllocation":` + resource(
		8192,
		4,
	) + `,"allocatedContainers":4,"queueName":"root","schedulingPolicy":"fair",` +
		`"preemptable":true,"childQueues":{"queue":[{"type":"fairSchedulerLeafQueueInfo","maxApps":10,"usedResources":` + resource(
		4096,
		4,
	) +
		`,"queueName":"root.a","schedulingPolicy":"drf","numPendingApps":1,"numActiveApps":2}]}}}}}`
	got := mergeDocs(t, "scheduler document", doc, doc, doc)
	root := []any{"scheduler", "schedulerInfo", "rootQueue"}
	for _, want := range []struct {
		path []any
		is   any
	}{
		{append(root, "maxApps"), 2147483647.0},
		{append(root, "maxResources", "memory"), 49152.0},
		{append(root, "usedResources", "vCores"), 12.0},
		{append(root, "maxContainerAllocation", "memory"), 8192.0},
		{append(root, "childQueues", "queue", 0, "schedulingPolicy"), "drf"},
		{append(root, "childQueues", "queue", 0, "numActiveApps"), 6.0},
		{append(root, "childQueues", "queue", 0, "maxApps"), 30.0},
	} {
		if v := valueAt(t, got, want.path...); v != want.is {
			t.Errorf("%v is %v, want %v", want.path, v, want.is)
		}
	}
}

// A member with another scheduler has no queue in this tree.
func TestAnotherSchedulerIsLeftOut(t *testing.T) {
	fair := `{"scheduler":{"schedulerInfo":{"type":"fairScheduler","rootQueue":{"queueName":"root"}}}}`
	first := capacityDoc(1, leaf("default", nil))
	if got := mergeDocs(t, "scheduler document", first, fair); strings.Contains(got, "rootQueue") ||
		valueAt(t, got, "scheduler", "schedulerInfo", "capacity") != 100.0 {
		t.Error(got)
	}
}

// Every field of a member's metrics is merged: a new one without a rule fails here.
func TestMetricsAreMergedFieldByField(t *testing.T) {
	var a, b subcluster.ClusterMetrics
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range va.NumField() {
		va.Field(i).SetInt(int64(i) + 1)
		vb.Field(i).SetInt(100)
	}
	doc := func(m subcluster.ClusterMetrics) string {
		b, err := json.Marshal(map[string]any{"clusterMetrics": m})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var got struct {
		Metrics subcluster.ClusterMetrics `json:"clusterMetrics"`
	}
	if err := json.Unmarshal([]byte(mergeDocs(t, "clusterMetrics document", doc(a), doc(b))), &got); err != nil {
		t.Fatal(err)
	}
	vg := reflect.ValueOf(got.Metrics)
	for i := range vg.NumField() {
		name, v := vg.Type().Field(i).Name, vg.Field(i).Int()
		switch name {
		case "UtilizedMBPercent", "UtilizedVirtualCoresPercent":
			if v < min(int64(i)+1, 100) || v > 100 {
				t.Errorf("%s: %d is no mean of %d and 100", name, v, i+1)
			}
		case "SchedulerBusyPercent":
			if v != 100 {
				t.Errorf("%s: %d, want the worst", name, v)
			}
		default:
			if v != int64(i)+1+100 {
				t.Errorf("%s: got %d, want %d", name, v, i+101)
			}
		}
	}
}

// An application's UAMs are joined with its home's entry: use adds up, -1 does not count, asks and metrics by type
// are joined, the rest is home's.
func TestHomeAndUAMsAreOneApplication(t *testing.T) {
	home := `{"id":"application_1_0001","state":"RUNNING","progress":50.0,"allocatedMB":1024,"reservedMB":-1,"runningContainers":1,` +
		`"memorySeconds":10,"resourceSecondsMap":{"entry":{"key":"memory-mb","value":"10"},"entry":{"key":"vcores","value":"1"}},` +
		`"resourceRequests":[{"priority":1,"numContainers":2}],"unmanagedApplication":false}`
	uam := `{"id":"application_1_0001","state":"ACCEPTED","progress":0.0,"allocatedMB":2048,"reservedMB":512,"runningContainers":2,` +
		`"memorySeconds":30,"resourceSecondsMap":{"entry":[{"key":"vcores","value":"3"},{"key":"memory-mb","value":"30"},` +
		`{"key":"yarn.io/gpu","value":"7"}]},"resourceRequests":[{"priority":1,"numContainers":2}],"unmanagedApplication":true}`
	want := `{"id":"application_1_0001","state":"RUNNING","progress":50.0,"allocatedMB":3072,"reservedMB":512,"runningContainers":3,` +
		`"memorySeconds":40,"resourceSecondsMap":{"entry":[{"key":"memory-mb","value":"40"},{"key":"vcores","value":"4"},` +
		`{"key":"yarn.io/gpu","value":"7"}]},"resourceRequests":[{"priority":1,"numContainers":2},{"priority":1,"numContainers":2}],` +
		`"unmanagedApplication":false}`
	if got := mergeDocs(t, "AppInfo", home, uam); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A list of one has the shape that a ResourceManager sent.
func TestAListOfOneKeepsItsShape(t *testing.T) {
	one := `{"container":{"containerId":"c1"}}`
	for _, c := range []struct{ a, b, want string }{
		{one, `{}`, one},
		{`{}`, one, one},
		{one, `{"container":{"containerId":"c2"}}`, `{"container":[{"containerId":"c1"},{"containerId":"c2"}]}`},
		{`{"container":[{"containerId":"c1"}]}`, `{}`, `{"container":[{"containerId":"c1"}]}`},
		{`{"containers":{"container":[{"containerId":"c1"}]}}`, `{"containers":{}}`, `{"containers":{"container":[{"containerId":"c1"}]}}`},
	} {
		if got := mergeDocs(t, "containers document", c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// A field that no rule lists has the first member's value, and is reported.
func TestUnlistedFieldComesFromFirstMember(t *testing.T) {
	var told []string
	m := router.Merger[[]byte]{
		Form:     jsonForm{},
		Unlisted: func(typ, field string) { told = append(told, typ+"."+field) },
	}
	out := string(m.Merge("StatisticsItemInfo", []router.Weighed[[]byte]{
		{
			Member: "a",
			Value:  []byte(`{"count":1,"newCapacityPercent":4}`),
		},
		{Member: "b", Value: []byte(`{"count":"2","newCapacityPercent":6}`)},
	}))
	if out != `{"count":3,"newCapacityPercent":4}` ||
		!slices.Equal(told, []string{"StatisticsItemInfo.newCapacityPercent"}) {
		t.Errorf("%s, told %v", out, told)
	}
}

// A percentage of a partition covers the members that have nodes of its label, weighted by these. For nodes without a
// label members count with their size.
func TestLabelPercentagesCountMembersWithLabel(t *testing.T) {
	m := router.Merger[[]byte]{
		Form: jsonForm{},
		PartitionSize: func(id creel.SubclusterID, label string) (float64, bool) {
			return map[creel.SubclusterID]float64{"sc-0": 3000, "sc-1": 1000}[id], label == "gpu"
		},
	}
	var parts []router.Weighed[[]byte]
	for i, used := range []int{20, 60, 100} {
		doc := fmt.Sprintf(`{"queueCapacitiesByPartition":[{"partitionName":"","absoluteUsedCapacity":%d},`+
			`{"partitionName":"gpu","absoluteUsedCapacity":%d}]}`, used, used)
		id := creel.SubclusterID(fmt.Sprint("sc-", i))
		parts = append(parts, router.Weighed[[]byte]{Member: id, Size: 1000, Value: []byte(doc)})
	}
	const want = `{"queueCapacitiesByPartition":[{"partitionName":"","absoluteUsedCapacity":60},` +
		`{"partitionName":"gpu","absoluteUsedCapacity":30}]}`
	if got := string(m.Merge("QueueCapacitiesInfo", parts)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
