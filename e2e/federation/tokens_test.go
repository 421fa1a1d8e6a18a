// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// driverOutput is YarnDriver's output of a command.
type driverOutput struct {
	Call, ID, User, Name, Class, Message string
	OK                                   bool
	Causes                               []string
	Ms                                   int64
	Progress                             float64
	Containers                           map[string]int // of each reservation
}

// driver is Hadoop's YarnClient, controlled by lines.
type driver struct {
	*testing.T
	*process.Process
	in   io.Writer
	seen int
}

// drive starts a driver.
func drive(t *testing.T, client hadoop.Client) *driver {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	client.Stdin = r
	return &driver{T: t, Process: client.Start(t, "YarnDriver"), in: w}
}

func (d *driver) do(command string) (answer driverOutput) {
	d.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		d.Fatal(err)
	}
	d.Await(d.T, "an answer to "+command, func() bool {
		n := 0
		for line := range strings.Lines(d.Process.Output()) {
			if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "\n") {
				continue
			}
			if n++; n > d.seen {
				d.seen = n
				if err := json.Unmarshal([]byte(line), &answer); err != nil {
					d.Fatal(err)
				}
				return true
			}
		}
		return false
	})
	return answer
}

// Hadoop's YarnClient gets a delegation token from one router. The token is valid at the other for its holder, also
// after the first was killed and restarted. It is renewed and cancelled there, and then no router accepts it. A token
// that is not renewed expires.
func TestDelegationTokensHoldAtEveryRouter(t *testing.T) {
	f := Start(t, Options{Subclusters: 1, Routers: 2, NoNodes: true, Conf: hadoop.Conf{
		"yarn.resourcemanager.delegation.token.renew-interval": "20000",
		"yarn.resourcemanager.delegation.token.max-lifetime":   "3600000",
	}})
	one, two := f.RouterAddresses[0].Client, f.RouterAddresses[1].Client
	app := submitAs(t, one, "alice")

	d := drive(t, hadoop.Client{Conf: f.ClientConf(0), User: "alice"})
	taken := func(when string) {
		t.Helper()
		if a := d.do("by-token nobody " + app); !a.OK || a.User != "alice" {
			t.Errorf("%s: %+v", when, a)
		}
	}
	refused := func(when string) {
		t.Helper()
		if a := d.do("by-token nobody " + app); a.OK || !strings.Contains(a.Class+a.Message+strings.Join(a.Causes, " "), "InvalidToken") {
			t.Errorf("%s: %+v", when, a)
		}
	}
	if a := d.do("delegate alice"); !a.OK || a.User != "alice" || a.Name != "alice" || a.Ms != 3600000 {
		t.Fatalf("issued: %+v", a)
	}
	taken("at the router that gave it out")
	d.do("to " + two)
	taken("at the other")
	f.Routers[1].Kill()
	f.Routers[1].Restart(t)
	AwaitActive(t, f.RouterAddresses[1].Web, 1)
	taken("at the other, started again")
	if a := d.do("renew"); !a.OK || a.Progress <= 0 || a.Progress > 20 {
		t.Errorf("renewed: %+v", a)
	}
	taken("renewed")
	if a := d.do("cancel"); !a.OK {
		t.Errorf("cancelled: %+v", a)
	}
	refused("cancelled, at the router that did it")
	d.do("to " + one)
	refused("cancelled, at the router that gave it out")
	if a := d.do("renew"); a.OK {
		t.Errorf("renewed after its end: %+v", a)
	}

	if a := d.do("delegate alice"); !a.OK {
		t.Fatalf("issued again: %+v", a)
	}
	taken("the next")
	f.Routers[0].Await(t, "the end of a token that is not renewed", func() bool {
		time.Sleep(time.Second)
		return !d.do("by-token nobody " + app).OK
	})
	refused("over")
}

// submitAs submits an unmanaged application.
func submitAs(t *testing.T, address, user string) string {
	t.Helper()
	rpc := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer rpc.Close()
	c := yarnrpc.NewApplicationClientProtocolClient(rpc, address, hrpc.Login{User: user})
	ctx, cancel := context.WithTimeout(t.Context(), process.Guard)
	defer cancel()
	made, err := c.GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId()).String()
	_, err = c.SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: made.GetApplicationId(), ApplicationName: proto.String("of " + user), UnmanagedAm: proto.Bool(true),
			Queue: proto.String("default"), Resource: pb.FromResource(creel.Resource{MemoryMB: 128, VCores: 1}),
			AmContainerSpec: &pb.ContainerLaunchContextProto{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// `yarn daemonlog` reads and sets the log level of a router and a ResourceManager.
func TestDaemonlogReadsAndSetsTheLevel(t *testing.T) {
	f := Start(t, Options{Subclusters: 1, Routers: 1, NoNodes: true})
	client := hadoop.Client{Conf: f.ClientConf(0), User: hadoop.OSUser(t)}.Setup(t)
	for name, web := range map[string]string{"router": f.RouterAddresses[0].Web, "rm": f.Subclusters[0].Addresses.Web} {
		for _, c := range []struct{ args, want string }{
			{"-getlevel " + web + " a.b.C", "Effective Level: INFO"},
			{"-setlevel " + web + " a.b.C DEBUG", "Setting Level to DEBUG"},
			{"-getlevel " + web + " a.b.C", "Effective Level: DEBUG"},
		} {
			out := client.Run(t, "org.apache.hadoop.log.LogLevel", strings.Fields(c.args)...)
			if out.Code != 0 || !strings.Contains(out.Stdout, c.want) {
				t.Errorf("%s: daemonlog %s: %d\n%s", name, c.args, out.Code, out.All)
			}
		}
	}
}
