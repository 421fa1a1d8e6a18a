// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

const benchApp = `{"id":"application_1700000000000_%04d","user":"alice","name":"nightly-aggregation-of-events","queue":"root.prod.etl",` +
	`"state":"RUNNING","finalStatus":"UNDEFINED","progress":42.5,"trackingUI":"ApplicationMaster","trackingUrl":"http://rm.example.com:8088/proxy/application_1700000000000_%04[1]d/",` +
	`"diagnostics":"","clusterId":1700000000000,"rmClusterId":"sc-a","applicationType":"SPARK","applicationTags":"team:etl,env:prod","priority":0,` +
	`"startedTime":1700000100000,"launchTime":1700000101000,"finishedTime":0,"elapsedTime":123456,"amContainerLogs":"http://n017.example.com:8042/node/containerlogs/container_1700000000000_%04[1]d_01_000001/alice",` +
	`"amHostHttpAddress":"n017.example.com:8042","amRPCAddress":"n017.example.com:39017","masterNodeId":"n017.example.com:45454","allocatedMB":40960,"allocatedVCores":20,` +
	`"reservedMB":0,"reservedVCores":0,"runningContainers":20,"memorySeconds":123456789,"vcoreSeconds":123456,"queueUsagePercentage":12.5,"clusterUsagePercentage":3.125,` +
	`"resourceSecondsMap":{"entry":{"key":"memory-mb","value":"123456789"},"entry":{"key":"vcores","value":"123456"}},"preemptedResourceMB":0,"preemptedResourceVCores":0,` +
	`"numNonAMContainerPreempted":0,"numAMContainerPreempted":0,"preemptedMemorySeconds":0,"preemptedVcoreSeconds":0,"preemptedResourceSecondsMap":{},` +
	`"logAggregationStatus":"NOT_START","unmanagedApplication":false,"amNodeLabelExpression":"","timeouts":{"timeout":[{"type":"LIFETIME","expiryTime":"UNLIMITED","remainingTimeInSeconds":-1}]}}`

const benchNode = `{"rack":"/r%02d","state":"RUNNING","id":"n%04[2]d.example.com:45454","nodeHostName":"n%04[2]d.example.com","nodeHTTPAddress":"n%04[2]d.example.com:8042",` +
	`"lastHealthUpdate":1700000000000,"version":"3.4.1","healthReport":"","numContainers":12,"usedMemoryMB":24576,"availMemoryMB":106496,"usedVirtualCores":12,"availableVirtualCores":52,` +
	`"memUtilization":31.25,"cpuUtilization":12.5,"numRunningOpportContainers":0,"usedMemoryOpportGB":0,"usedVirtualCoresOpport":0,"numQueuedContainers":0,"nodeLabels":["gpu"],` +
	`"allocationTags":{},"resourceUtilization":{"nodePhysicalMemoryMB":40960,"nodeVirtualMemoryMB":40960,"nodeCPUUsage":3.5,"aggregatedContainersPhysicalMemoryMB":20000,"aggregatedContainersVirtualMemoryMB":30000,"containersCPUUsage":2.25},` +
	`"usedResource":{"memory":24576,"vCores":12,"resourceInformations":{"resourceInformation":[{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":24576},{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"vcores","resourceType":"COUNTABLE","units":"","value":12}]}},` +
	`"availableResource":{"memory":106496,"vCores":52,"resourceInformations":{"resourceInformation":[{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":106496},{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"vcores","resourceType":"COUNTABLE","units":"","value":52}]}},` +
	`"totalResource":{"memory":131072,"vCores":64,"resourceInformations":{"resourceInformation":[{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":131072},{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"vcores","resourceType":"COUNTABLE","units":"","value":64}]}}}`

// documents of one of three members: a third of the whole.
func benchDocuments(member, total int) map[string]string {
	var apps, nodes, queues []string
	for i := member; i < total; i += 3 {
		apps = append(apps, fmt.Sprintf(benchApp, i+1))
		nodes = append(nodes, fmt.Sprintf(benchNode, i%40, i))
	}
	for i := range 100 {
		queues = append(queues, strings.ReplaceAll(benchQueue, "QUEUE", fmt.Sprintf("q%02d", i)))
	}
	return map[string]string{
		"/apps":  `{"apps":{"app":[` + strings.Join(apps, ",") + `]}}`,
		"/nodes": `{"nodes":{"node":[` + strings.Join(nodes, ",") + `]}}`,
		"/scheduler": `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","capacity":100.0,"usedCapacity":10.0,"maxCapacity":100.0,"queueName":"root","queues":{"queue":[` +
			strings.Join(
				queues,
				",",
			) + `]}}}}`,
	}
}

const benchResource = `{"memory":24576,"vCores":12,"resourceInformations":{"resourceInformation":[{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"memory-mb","resourceType":"COUNTABLE","units":"Mi","value":24576},{"attributes":{},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"vcores","resourceType":"COUNTABLE","units":"","value":12}]}}`

const benchQueue = `{"type":"capacitySchedulerLeafQueueInfo","queuePath":"root.QUEUE","capacity":1.0,"usedCapacity":10.0,"maxCapacity":100.0,"absoluteCapacity":1.0,"absoluteMaxCapacity":100.0,"absoluteUsedCapacity":0.1,` +
	`"weight":-1.0,"normalizedWeight":0.0,"numApplications":3,"maxParallelApps":2147483647,"queueName":"QUEUE","isAbsoluteResource":false,"state":"RUNNING","resourcesUsed":` + benchResource +
	`,"hideReservationQueues":false,"nodeLabels":["*"],"allocatedContainers":12,"reservedContainers":0,"pendingContainers":0,"capacities":{"queueCapacitiesByPartition":[{"partitionName":"","capacity":1.0,"usedCapacity":10.0,"maxCapacity":100.0,"absoluteCapacity":1.0,"absoluteUsedCapacity":0.1,"absoluteMaxCapacity":100.0,"maxAMLimitPercentage":10.0,"effectiveMinResource":` +
	benchResource + `,"effectiveMaxResource":` + benchResource + `}]},"minEffectiveCapacity":` + benchResource + `,"maxEffectiveCapacity":` + benchResource + `,"maximumAllocation":` + benchResource +
	`,"numActiveApplications":3,"numPendingApplications":0,"numContainers":12,"maxApplications":100,"maxApplicationsPerUser":100,"userLimit":100.0,"users":{"user":[{"username":"alice","resourcesUsed":` + benchResource +
	`,"numPendingApplications":0,"numActiveApplications":3,"AMResourceUsed":` + benchResource + `,"userResourceLimit":` + benchResource + `,"userWeight":1.0,"isActive":true}]},"userLimitFactor":1.0,"AMResourceLimit":` + benchResource + `}`

// benchRouter is a router's web service over three members that answer at once.
func benchRouter(b *testing.B, total int) http.Handler {
	var members []subcluster.Status
	for i := range 3 {
		docs := benchDocuments(i, total)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, docs[strings.TrimPrefix(r.URL.Path, "/ws/v1/cluster")])
		}))
		b.Cleanup(s.Close)
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = creel.SubclusterID(fmt.Sprintf("sc-%c", 'a'+i))
		m.Addresses.Web = s.Listener.Addr().String()
		m.Load.Metrics.TotalMB = 1 << 20
		members = append(members, m)
	}
	view := subcluster.NewView(time.Now(), members, nil)
	pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	b.Cleanup(func() { pool.Close() })
	core := server.New(server.Config{
		View: func() *subcluster.View { return view }, Pool: pool,
		Members: func(m *remote.Member) server.Member { return client.Of(m) },
	})
	mux := chi.NewRouter()
	rest.New(core, rest.Config{Started: time.Now()}).Mount(mux)
	return mux
}

func benchPage(b *testing.B, path string, total int) {
	mux := benchRouter(b, total)
	size := int64(0)
	for b.Loop() {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/ws/v1/cluster"+path, nil))
		if w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
		size = int64(w.Body.Len())
	}
	b.SetBytes(size)
}

// A page of 1,000 applications, nodes or 100 queues of three members, with the
// calls to them over loopback.
func BenchmarkMergeApps(b *testing.B)      { benchPage(b, "/apps", 1000) }
func BenchmarkMergeNodes(b *testing.B)     { benchPage(b, "/nodes", 1000) }
func BenchmarkMergeScheduler(b *testing.B) { benchPage(b, "/scheduler", 3) }
