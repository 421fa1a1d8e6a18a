// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// notAvailable is YARN's text for a missing value.
const notAvailable = "N/A"

// Cluster is the part of reports that describes the cluster.
type Cluster struct {
	ID  string // yarn.resourcemanager.cluster-id, or ""
	Web string // host:port of the ResourceManager's web pages
	// Proxy is the host:port of the web proxy for AMs' pages; "": Web is the proxy.
	Proxy string
	// TLS: all web servers of the cluster use TLS, by yarn.http.policy=HTTPS_ONLY.
	TLS bool
}

// URL returns the address of a web server of the cluster.
func (c Cluster) URL(host string) string {
	if c.TLS {
		return "https://" + host
	}
	return "http://" + host
}

func orNA(s string) string { return cmp.Or(s, notAvailable) }

// Report returns an application in the client protocol's form. If not viewable, it lacks the fields that YARN hides
// from other users.
func (c Cluster) Report(a *rm.AppView, now time.Time, viewable bool) *pb.ApplicationReportProto {
	message := ContextOf(a.Context)
	state := pb.YarnApplicationStateProto(a.State)
	final := pb.FinalApplicationStatusProto(a.Final)
	r := &pb.ApplicationReportProto{
		ApplicationId:          pb.FromApplicationID(a.ID),
		User:                   &a.User,
		Queue:                  new(string(a.Queue)),
		Name:                   &a.Name,
		YarnApplicationState:   &state,
		FinalApplicationStatus: &final,
		StartTime:              new(Millis(a.Submitted)),
		SubmitTime:             new(Millis(a.Submitted)),
		LaunchTime:             new(Millis(a.Launched)),
		FinishTime:             new(Millis(a.Finished)),
		ApplicationType:        &a.Type,
		ApplicationTags:        a.Tags,
		LogAggregationStatus:   new(pb.LogAggregationStatusProto(a.Logs)),
		UnmanagedApplication:   &a.Unmanaged,
		Priority:               pb.FromPriority(a.Priority),
		AppTimeouts: []*pb.AppTimeoutsMapProto{
			{
				ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
				ApplicationTimeout:     timeout(a, now),
			},
		},
		AppResource_Usage: usage(a),
	}
	if c.ID != "" {
		r.RmClusterId = &c.ID
	}
	if a.Label != "" {
		r.AppNodeLabelExpression = &a.Label
	} else if message.GetNodeLabelExpression() == "" {
		r.AppNodeLabelExpression = new("<Not set>")
	}
	if !a.Unmanaged {
		r.AmNodeLabelExpression = new(cmp.Or(a.AMLabel, rm.DefaultPartition))
	}
	pb.SetHeld(r, a.Held.Claim)
	pb.SetNewest(r, a.Held.Newest)
	if !viewable {
		r.Host, r.RpcPort, r.TrackingUrl, r.OriginalTrackingUrl = new(
			notAvailable,
		), new(
			int32(-1),
		), new(
			notAvailable,
		), new(
			notAvailable,
		)
		r.Diagnostics, r.Progress = new(notAvailable), new(float32(0))
		r.CurrentApplicationAttemptId = pb.FromAttemptID(creel.AttemptID{Application: a.ID, Attempt: -1})
		r.AppResource_Usage = emptyUsage()
		return r
	}
	attempt := a.Attempt
	if attempt.IsZero() {
		attempt = creel.AttemptID{Application: a.ID, Attempt: -1}
	}
	host, port := orNA(a.Host), a.Port
	if a.Host == "" {
		port = -1
	}
	r.Host, r.RpcPort = &host, &port
	r.Diagnostics, r.Progress = new(diagnosis(a)), &a.Progress
	if a.State.Ended() && !a.Attempt.IsZero() {
		r.Progress = new(float32(1))
	}
	r.CurrentApplicationAttemptId = pb.FromAttemptID(attempt)
	r.TrackingUrl, r.OriginalTrackingUrl = new(c.TrackingURL(a)), new(c.originalURL(a))
	return r
}

// diagnosis returns an application's diagnostics; YARN has a fixed text for an application that waits for its AM's
// registration.
func diagnosis(a *rm.AppView) string {
	launched := a.Token || !a.Launched.IsZero() && a.Attempt.Attempt == 1
	switch {
	case a.Diagnostics != "" || a.State != creel.AppAccepted:
		return a.Diagnostics
	case launched:
		return "AM container is launched, waiting for AM container to Register with RM"
	}
	return a.Waits
}

// originalURL is the AM's own page. For an AM that ended without a page, it is the ResourceManager's page of the
// application.
func (c Cluster) originalURL(a *rm.AppView) string {
	if a.TrackingURL == "" && a.State.Ended() && !a.Attempt.IsZero() {
		return fmt.Sprintf("%s/cluster/app/%s", c.URL(c.Web), a.ID)
	}
	return orNA(a.TrackingURL)
}

// TrackingURL returns the address for a user's browser: the AM's page through the web proxy, or the ResourceManager's
// page of the application.
func (c Cluster) TrackingURL(a *rm.AppView) string {
	switch {
	case a.Unmanaged: // its page is not proxied
		return c.originalURL(a)
	case a.State.Ended() && a.TrackingURL == "":
		return fmt.Sprintf("%s/cluster/app/%s", c.URL(c.Web), a.ID)
	case a.State.Ended() || !a.Attempt.IsZero():
		return c.ProxyURL(a.ID)
	}
	return notAvailable
}

// ProxyURL returns the address of an AM's page at the web proxy.
func (c Cluster) ProxyURL(id creel.ApplicationID) string {
	return fmt.Sprintf("%s/proxy/%s/", c.URL(cmp.Or(c.Proxy, c.Web)), id)
}

func timeout(a *rm.AppView, now time.Time) *pb.ApplicationTimeoutProto {
	t := &pb.ApplicationTimeoutProto{
		ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(),
		ExpireTime:             new(FormatExpiry(a.Deadline)),
		RemainingTime:          new(int64(-1)),
	}
	if !a.Deadline.IsZero() {
		left := max(int64(a.Deadline.Sub(now)/time.Second), 0)
		if a.State.Ended() {
			left = 0
		}
		t.ExpireTime, t.RemainingTime = new(FormatExpiry(a.Deadline)), &left
	}
	return t
}

func seconds(list []rm.TypeAmount, name string) int64 {
	for _, t := range list {
		if t.Type == name {
			return t.Value
		}
	}
	return 0
}

func usage(a *rm.AppView) *pb.ApplicationResourceUsageReportProto {
	if a.State.Ended() {
		u := emptyUsage()
		fillSeconds(u, a)
		return u
	}
	u := &pb.ApplicationResourceUsageReportProto{
		NumUsedContainers:      &a.Containers,
		NumReservedContainers:  &a.Reserved,
		UsedResources:          pb.FromResource(a.Used),
		ReservedResources:      pb.FromResource(a.ReservedRes),
		NeededResources:        pb.FromResource(a.Used.Add(a.ReservedRes)),
		QueueUsagePercentage:   new(float32(a.QueueShare)),
		ClusterUsagePercentage: new(float32(a.ClusterShare)),
	}
	fillSeconds(u, a)
	return u
}

func fillSeconds(u *pb.ApplicationResourceUsageReportProto, a *rm.AppView) {
	u.MemorySeconds = new(seconds(a.ResourceSeconds, creel.MemoryName))
	u.VcoreSeconds = new(seconds(a.ResourceSeconds, creel.VCoresName))
	u.PreemptedMemorySeconds = new(seconds(a.PreemptedSeconds, creel.MemoryName))
	u.PreemptedVcoreSeconds = new(seconds(a.PreemptedSeconds, creel.VCoresName))
	for _, t := range a.ResourceSeconds {
		u.ApplicationResourceUsageMap = append(
			u.ApplicationResourceUsageMap,
			&pb.StringLongMapProto{Key: &t.Type, Value: &t.Value},
		)
	}
	for _, t := range a.PreemptedSeconds {
		u.ApplicationPreemptedResourceUsageMap = append(
			u.ApplicationPreemptedResourceUsageMap,
			&pb.StringLongMapProto{Key: &t.Type, Value: &t.Value},
		)
	}
}

// emptyUsage is the report of an application without a scheduler entry: YARN writes -1 for unknown values.
func emptyUsage() *pb.ApplicationResourceUsageReportProto {
	none := pb.FromResource(creel.NewResource(-1, -1))
	return &pb.ApplicationResourceUsageReportProto{
		NumUsedContainers: new(int32(-1)), NumReservedContainers: new(int32(-1)),
		UsedResources: none, ReservedResources: none, NeededResources: none,
		MemorySeconds: new(int64(0)), VcoreSeconds: new(int64(0)),
		QueueUsagePercentage: new(float32(0)), ClusterUsagePercentage: new(float32(0)),
		PreemptedMemorySeconds: new(int64(0)), PreemptedVcoreSeconds: new(int64(0)),
	}
}
