// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// handler is a small server of ApplicationClientProtocol. Its answer about an application depends on the
// application's number.
type handler struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	next   atomic.Int32
	caller atomic.Value // string: the caller context of the last new application
	busy   int32        // how often an application from firstBusy on is refused first
	tries  sync.Map     // application number -> *atomic.Int32
}

const started = 1700000000000 // the cluster timestamp of the applications here

const (
	firstFailure = 1000 // 1000+i fails with failures[i]
	firstBusy    = 2000 // 2000+i fails handler.busy times with busy[i], then answers
	slow         = 3000 // answers after slowTime
	slowTime     = 90 * time.Second
)

// failures are the errors that we answer, and the class that Hadoop's client
// must hand to its user for each.
var failures = []struct {
	name  string
	err   error
	class string
}{
	{"no such application", creel.ErrApplicationNotFound, yarnrpc.ClassApplicationNotFound},
	{"no such attempt", creel.ErrAttemptNotFound, yarnrpc.ClassAttemptNotFound},
	{"no such container", creel.ErrContainerNotFound, yarnrpc.ClassContainerNotFound},
	{"not registered", creel.ErrNotRegistered, yarnrpc.ClassMasterNotRegistered},
	{"bad resource", creel.ErrInvalidResource, yarnrpc.ClassInvalidResource},
	{"not permitted", creel.ErrNotPermitted, hrpc.ClassAccessControl},
	{"bad token", creel.ErrInvalidToken, hrpc.ClassInvalidToken},
	{"not enabled", creel.ErrNotEnabled, yarnrpc.ClassFeatureNotEnabled},
	{"no such queue", creel.ErrQueueNotFound, yarnrpc.ClassYarn},
	{"no such node", creel.ErrNodeNotFound, yarnrpc.ClassYarn},
	{"bad request", creel.ErrInvalidRequest, yarnrpc.ClassYarn},
	{"conflict", creel.ErrConflict, yarnrpc.ClassYarn},
	{"stale", creel.ErrStale, yarnrpc.ClassYarn},
	{"an error of Go", errors.New("disk on fire"), yarnrpc.ClassYarn},
	// Exceptions that Hadoop's clients would retry for 15 minutes must never be sent.
	{
		"an IOException of another server",
		&hrpc.RemoteError{Class: "java.io.IOException", Message: "x"},
		yarnrpc.ClassYarn,
	},
	{
		"the AM asked wrongly",
		yarnrpc.Throw(yarnrpc.ClassInvalidMasterRequest, errors.New("x")),
		yarnrpc.ClassInvalidMasterRequest,
	},
	{"bad label", yarnrpc.Throw(yarnrpc.ClassInvalidLabel, errors.New("x")), yarnrpc.ClassInvalidLabel},
	{"bad blacklist", yarnrpc.Throw(yarnrpc.ClassInvalidBlacklist, errors.New("x")), yarnrpc.ClassInvalidBlacklist},
	{"bad release", yarnrpc.Throw(yarnrpc.ClassInvalidRelease, errors.New("x")), yarnrpc.ClassInvalidRelease},
	{"bad container", yarnrpc.Throw(yarnrpc.ClassInvalidContainer, errors.New("x")), yarnrpc.ClassInvalidContainer},
	{"bad aux service", yarnrpc.Throw(yarnrpc.ClassInvalidAuxService, errors.New("x")), yarnrpc.ClassInvalidAuxService},
	{
		"no application id",
		yarnrpc.Throw(yarnrpc.ClassApplicationIDNotProvided, errors.New("x")),
		yarnrpc.ClassApplicationIDNotProvided,
	},
	{"no profiles", yarnrpc.Throw(yarnrpc.ClassProfilesNotEnabled, errors.New("x")), yarnrpc.ClassProfilesNotEnabled},
	{
		"a class of Java",
		yarnrpc.Throw("java.lang.IllegalArgumentException", errors.New("x")),
		"java.lang.IllegalArgumentException",
	},
	{"a class that no client knows", yarnrpc.Throw("no.such.Exception", errors.New("x")), yarnrpc.ClassYarn},
}

// busy are the errors that a client repeats by itself.
var busy = []error{creel.ErrBusy, creel.ErrUnavailable, creel.ErrNoSubcluster, creel.ErrStandby, hrpc.Busy("later")}

func (d *handler) GetNewApplication(
	ctx context.Context,
	_ *yarnpb.GetNewApplicationRequestProto,
) (*yarnpb.GetNewApplicationResponseProto, error) {
	d.caller.Store(hrpc.CallFrom(ctx).CallerContext.Context)
	return &yarnpb.GetNewApplicationResponseProto{
		ApplicationId:     yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: started, ID: d.next.Add(1)}),
		MaximumCapability: yarnpb.FromResource(creel.Resource{MemoryMB: 4096, VCores: 8}),
	}, nil
}

func (d *handler) GetClusterMetrics(
	context.Context,
	*yarnpb.GetClusterMetricsRequestProto,
) (*yarnpb.GetClusterMetricsResponseProto, error) {
	return &yarnpb.GetClusterMetricsResponseProto{ClusterMetrics: &yarnpb.YarnClusterMetricsProto{
		NumNodeManagers: proto.Int32(7), NumActiveNms: proto.Int32(5),
	}}, nil
}

func (d *handler) GetApplicationReport(
	ctx context.Context,
	req *yarnpb.GetApplicationReportRequestProto,
) (*yarnpb.GetApplicationReportResponseProto, error) {
	id := yarnpb.ToApplicationID(req.GetApplicationId())
	answer := &yarnpb.GetApplicationReportResponseProto{ApplicationReport: report(id, hrpc.CallFrom(ctx).Identity.User)}
	switch n := int(id.ID); {
	case n >= firstFailure && n < firstFailure+len(failures):
		return nil, failures[n-firstFailure].err
	case n >= firstBusy && n < firstBusy+len(busy):
		tries, _ := d.tries.LoadOrStore(n, new(atomic.Int32))
		if tries.(*atomic.Int32).Add(1) <= d.busy {
			return nil, busy[n-firstBusy]
		}
	case n == slow:
		reply := hrpc.Later(ctx)
		time.AfterFunc(slowTime, func() { reply(answer, nil) })
		return nil, hrpc.ErrLater
	}
	return answer, nil
}

func (d *handler) GetApplications(
	ctx context.Context,
	_ *yarnpb.GetApplicationsRequestProto,
) (*yarnpb.GetApplicationsResponseProto, error) {
	answer := &yarnpb.GetApplicationsResponseProto{}
	for n := range int32(300) {
		answer.Applications = append(
			answer.Applications,
			report(creel.ApplicationID{ClusterTimestamp: started, ID: n + 1}, hrpc.CallFrom(ctx).Identity.User),
		)
	}
	return answer, nil
}

func report(id creel.ApplicationID, user string) *yarnpb.ApplicationReportProto {
	none := yarnpb.FromResource(creel.Resource{})
	return &yarnpb.ApplicationReportProto{
		ApplicationId: yarnpb.FromApplicationID(
			id,
		),
		User:  &user,
		Queue: proto.String("root.default"),
		Name:  proto.String("wörk"),
		Host: proto.String(
			"N/A",
		),
		RpcPort:                proto.Int32(-1),
		TrackingUrl:            proto.String("N/A"),
		OriginalTrackingUrl:    proto.String("N/A"),
		Diagnostics:            proto.String(""),
		YarnApplicationState:   yarnpb.YarnApplicationStateProto_RUNNING.Enum(),
		FinalApplicationStatus: yarnpb.FinalApplicationStatusProto_APP_UNDEFINED.Enum(),
		StartTime: proto.Int64(
			started,
		),
		FinishTime:                  proto.Int64(0),
		Progress:                    proto.Float32(0.5),
		ApplicationType:             proto.String("YARN"),
		CurrentApplicationAttemptId: yarnpb.FromAttemptID(creel.AttemptID{Application: id, Attempt: 1}),
		AppResource_Usage: &yarnpb.ApplicationResourceUsageReportProto{
			UsedResources:     none,
			ReservedResources: none,
			NeededResources:   none,
		},
	}
}

// serve serves the handler on the address until the returned function is called,
// which waits for the server's end.
func serve(t *testing.T, address string, d yarnrpc.ApplicationClientProtocol) (stop func()) {
	t.Helper()
	_, stop = serveWith(t, address, d, hrpc.Config{Simple: true})
	return stop
}

func serveWith(
	t *testing.T,
	address string,
	d yarnrpc.ApplicationClientProtocol,
	cfg hrpc.Config,
) (server *hrpc.Server, stop func()) {
	t.Helper()
	cfg.Services, cfg.ErrorOf, cfg.DrainTime = []hrpc.Service{
		yarnrpc.ApplicationClientProtocolService(d),
	}, yarnrpc.ErrorOf, time.Second
	server, err := hrpc.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	return server, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
}

// answer is a line of YarnDriver.
type answer struct {
	Call, ID, Name, User, Class, Message, State string
	OK                                          bool
	Ms                                          int64
	Nodes, Active, Memory, Vcores               int
	Names                                       map[string]int
	Applications                                []answer
	Progress                                    float64
}

// driver is a running YarnDriver that takes commands.
type driver struct {
	*process.Process
	in   io.WriteCloser
	seen int
}

func startDriver(t *testing.T, c hadoop.Client) *driver {
	t.Helper()
	r, w := io.Pipe()
	c.Stdin = r
	d := &driver{Process: c.Start(t, "YarnDriver"), in: w}
	t.Cleanup(func() { w.Close() })
	return d
}

func (d *driver) send(t *testing.T, command string) {
	t.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		t.Fatal(err)
	}
}

// next waits for the next answer.
func (d *driver) next(t *testing.T) answer {
	t.Helper()
	var line string
	d.Await(t, "an answer", func() bool {
		n := 0
		all := strings.SplitAfter(d.Output(), "\n")
		for _, l := range all {
			if strings.HasPrefix(l, "{") && strings.HasSuffix(l, "\n") {
				if n == d.seen {
					line = l
					return true
				}
				n++
			}
		}
		return false
	})
	d.seen++
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	return a
}

func (d *driver) do(t *testing.T, command string) answer {
	t.Helper()
	d.send(t, command)
	return d.next(t)
}

func app(n int) string {
	return creel.ApplicationID{ClusterTimestamp: started, ID: int32(n)}.String()
}

func TestHadoopClientAgainstOurServer(t *testing.T) {
	for _, version := range []hadoop.Version{hadoop.V342, hadoop.V336} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel() // each spends most of its time in the slow call
			address := process.FreeAddress(t, "127.0.0.1")
			// A 3.3 client without HA uses the policy of an HA client (because yarn.federation.failover.enabled is
			// true by default there): retriable errors on the same server are retried once and at once.
			d := &handler{busy: 2}
			if version == hadoop.V336 {
				d.busy = 1
			}
			stop := serve(t, address, d)
			defer func() { stop() }()
			client := hadoop.Client{
				Version: version,
				Conf:    hadoop.Addresses{Client: address}.Conf(),
				User:    "alice",
				Env:     []string{"CALLER_CONTEXT=nightly report"},
			}.Setup(
				t,
			)

			// The slow call waits in a client of its own while the rest goes on.
			waiting := startDriver(t, client)
			waiting.send(t, "report "+app(slow))

			c := startDriver(t, client)
			t.Run("calls that succeed", func(t *testing.T) {
				if a := c.do(t, "metrics"); !a.OK || a.Nodes != 7 || a.Active != 5 {
					t.Errorf("metrics: %+v", a)
				}
				if a := c.do(t, "new"); !a.OK || a.ID != app(1) || a.Memory != 4096 || a.Vcores != 8 {
					t.Errorf("new: %+v", a)
				}
				if context := d.caller.Load(); context != "nightly report" {
					t.Errorf("the caller context came as %v", context)
				}
				if a := c.do(
					t,
					"report "+app(5),
				); !a.OK || a.ID != app(5) || a.User != "alice" || a.Name != "wörk" || a.State != "RUNNING" ||
					a.Progress != 0.5 {
					t.Errorf("report: %+v", a)
				}
				if a := c.do(t, "list"); !a.OK || len(a.Applications) != 300 || a.Applications[299].ID != app(300) {
					t.Errorf("list: ok %v, %d applications", a.OK, len(a.Applications))
				}
			})
			t.Run("each exception", func(t *testing.T) {
				for i, f := range failures {
					a := c.do(t, "report "+app(firstFailure+i))
					if a.OK || a.Class != f.class || a.Message == "" || a.Message == "null" {
						t.Errorf("%s: %+v, want class %s", f.name, a, f.class)
					}
				}
				if a := c.do(t, "profiles"); a.OK || a.Class != yarnrpc.ClassFeatureNotEnabled {
					t.Errorf("a method that is not served: %+v", a)
				}
			})
			t.Run("busy is tried again", func(t *testing.T) {
				for i, err := range busy {
					if a := c.do(t, "report "+app(firstBusy+i)); !a.OK {
						t.Errorf("%v: %+v", err, a)
					}
					if tries, ok := d.tries.Load(firstBusy + i); !ok || tries.(*atomic.Int32).Load() != d.busy+1 {
						t.Errorf("%v: not tried %d times", err, d.busy+1)
					}
				}
			})
			t.Run("1000 calls in parallel", func(t *testing.T) {
				if a := c.do(t, "parallel 1000 100 "+app(6)); !a.OK || a.Names["wörk"] != 1000 {
					t.Errorf("%+v", a)
				}
			})
			t.Run("a slow call", func(t *testing.T) {
				a := waiting.next(t)
				if !a.OK || a.ID != app(slow) || time.Duration(a.Ms)*time.Millisecond < slowTime-time.Second {
					t.Errorf("%+v", a)
				}
			})
			t.Run("a restart in between", func(t *testing.T) {
				stop()
				// The client finds no server and continues to try.
				c.send(t, "report "+app(8))
				c.WaitLine(t, "Retrying connect to server")
				stop = serve(t, address, d)
				if a := c.next(t); !a.OK || a.ID != app(8) {
					t.Errorf("%+v", a)
				}
				// The waiting client's connection was idle when the server went.
				if a := waiting.do(t, "report "+app(9)); !a.OK || a.ID != app(9) {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

// Where only tokens are accepted, a client without one gets Hadoop's error.
func TestHadoopClientWithoutTokenIsRefused(t *testing.T) {
	address := process.FreeAddress(t, "127.0.0.1")
	_, stop := serveWith(t, address, &handler{}, hrpc.Config{Tokens: func([]byte) ([]byte, hrpc.Identity, error) {
		return nil, hrpc.Identity{}, fmt.Errorf("no token is known")
	}})
	defer stop()
	r := hadoop.Client{Conf: hadoop.Addresses{Client: address}.Conf()}.Run(t, "YarnDriver", "metrics").OK(t)
	a := hadoop.Lines[answer](t, r)
	if len(a) != 1 || a[0].OK || a[0].Class != hrpc.ClassAccessControl {
		t.Errorf("%+v\n%s", a, r.All)
	}
}

// A server at its connection limit answers "busy, try again", and the client retries by itself until a connection is
// free.
func TestHadoopClientAtAFullServer(t *testing.T) {
	address := process.FreeAddress(t, "127.0.0.1")
	server, stop := serveWith(t, address, &handler{}, hrpc.Config{Simple: true, MaxConnections: 1})
	defer stop()
	taken, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := startDriver(t, hadoop.Client{Conf: hadoop.Addresses{Client: address}.Conf(), User: "alice"})
	c.send(t, "report "+app(5))
	c.Await(t, "the client is refused", func() bool { return server.Stats().Refused > 1 })
	taken.Close()
	if a := c.next(t); !a.OK || a.ID != app(5) {
		t.Errorf("%+v\n%s", a, c.Output())
	}
}
