// SPDX-License-Identifier: Apache-2.0

// Package dash proves the dashboard in a real browser: Chromium, driven by its
// DevTools protocol, looks at a router over members with simulated nodes.
package dash

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/programs"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

// browser opens a page in Chromium and collects what it complains of.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func open(t *testing.T, url string) *browser {
	t.Helper()
	path, err := programs.Path("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1200, 1000),
		chromedp.WSURLReadTimeout(2*time.Minute),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.URL))
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	}))
	t.Cleanup(cancel)
	if err := chromedp.Do(b.ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) eval(script string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return b.eval(`(document.querySelector(` + strconv.Quote(selector) + `)?.innerText ?? "")`)
}

// rows is a table's body, cell by cell.
func (b *browser) rows(table string) (out [][]string) {
	b.t.Helper()
	text := b.eval(
		`JSON.stringify([...document.querySelectorAll(` + strconv.Quote(
			table+" tbody tr",
		) + `)].map(r => [...r.cells].map(c => c.innerText)))`,
	)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *browser) until(what string, ok func() bool) {
	b.t.Helper()
	for !ok() {
		if err := b.t.Context().Err(); err != nil {
			b.t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// The page shows the subclusters, the applications and the containers as they
// come and go, by itself.
func TestTheDashboardLives(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3, Routers: 1, OpenFor: 50 * time.Millisecond})
	r := f.Routers[0]
	b := open(t, "http://"+r.Web+"/")
	b.until("the page is live", func() bool { return strings.HasPrefix(b.text("#status"), "live, ") })
	if title := b.eval("document.title"); title != "creel" {
		t.Errorf("title %q", title)
	}
	subclusters := b.rows("#subclusters")
	if len(subclusters) != 3 {
		t.Fatalf("subclusters: %v", subclusters)
	}
	for i, row := range subclusters {
		if row[0] != string(f.Members[i].ID) || row[1] != "active" || row[2] != "2" {
			t.Errorf("subcluster: %v", row)
		}
	}
	b.until("all nodes are counted", func() bool { return b.text("#nodes") == "6" })
	if apps := b.rows("#apps"); len(apps) != 0 {
		t.Errorf("applications before there are any: %v", apps)
	}

	// An application comes. Its name is no markup.
	const name = `<img src=x onerror="document.title='fooled'">`
	alice := f.As(r, "alice")
	made, err := alice.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	if _, err := alice.SubmitApplication(
		t.Context(),
		&pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: routertest.Context(id, name)},
	); err != nil {
		t.Fatal(err)
	}
	row := func() []string {
		for _, r := range b.rows("#apps") {
			if r[0] == id.String() {
				return r
			}
		}
		return make([]string, 7)
	}
	b.until("the page shows the application", func() bool { return row()[4] == "ACCEPTED" })
	if got := row(); got[1] != name || got[2] != "alice" || got[3] != "root.default" {
		t.Errorf("the application: %v", got)
	}

	// It runs, and takes containers.
	am := amClient(t, f, id)
	if _, err := am.RegisterApplicationMaster(
		t.Context(),
		&pb.RegisterApplicationMasterRequestProto{Host: new("here"), RpcPort: new(int32(1)), TrackingUrl: new("")},
	); err != nil {
		t.Fatal(err)
	}
	answer, err := am.Allocate(
		t.Context(),
		&pb.AllocateRequestProto{ResponseId: new(int32(0)), Ask: []*pb.ResourceRequestProto{
			{
				Priority:      pb.FromPriority(1),
				ResourceName:  new("*"),
				Capability:    pb.FromResource(creel.NewResource(512, 1)),
				NumContainers: new(int32(5)),
			},
		}},
	)
	if err != nil || len(answer.GetAllocatedContainers()) != 5 {
		t.Fatalf("%d containers, %v", len(answer.GetAllocatedContainers()), err)
	}
	b.until("the page shows five containers", func() bool {
		return row()[4] == "RUNNING" && row()[6] == "5" && b.text("#containers") == "5" && b.text("#running") == "1"
	})
	points := func() int {
		return len(strings.Fields(b.eval(`document.querySelector("#line").getAttribute("points")`)))
	}
	before := points()
	b.until("the chart goes on", func() bool { return points() > before })

	// A member falls silent for lists: the page says who is missing.
	home, err := f.Store.Home(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	f.Member(home).Web.Cut()
	b.until("the page names who is missing", func() bool {
		return strings.Contains(b.text("#partial"), string(home)) && len(b.rows("#apps")) == 0
	})
	f.Member(home).Web.Mend()
	b.until("the application is back", func() bool { return row()[4] == "RUNNING" && b.text("#partial") == "" })

	// It is killed.
	if _, err := alice.ForceKillApplication(
		t.Context(),
		&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)},
	); err != nil {
		t.Fatal(err)
	}
	b.until("the page shows the end", func() bool { return row()[4] == "KILLED" && b.text("#containers") == "0" })
	if title := b.eval("document.title"); title != "creel" {
		t.Errorf("a name was taken for markup: the title is %q", title)
	}
	b.mu.Lock()
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %v", b.complaints)
	}
	b.mu.Unlock()

	// The router dies: the page keeps what it knew and says that it is old.
	r.Kill()
	b.until(
		"the page says that the router is gone",
		func() bool { return strings.HasPrefix(b.text("#status"), "not answering since") },
	)
	if row()[4] != "KILLED" || len(b.rows("#subclusters")) != 3 {
		t.Errorf("the page forgot: %v", b.rows("#apps"))
	}
}

// amClient speaks for an unmanaged application with the token of its report.
func amClient(t *testing.T, f *routertest.Federation, id creel.ApplicationID) yarnrpc.ApplicationMasterProtocolClient {
	t.Helper()
	home, err := f.Store.Home(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var am token.Token
	f.Until("the AM may register", func() bool {
		report, err := f.As(f.Routers[0], "alice").
			GetApplicationReport(t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)})
		if err != nil {
			t.Fatal(err)
		}
		am = token.FromProto(report.GetApplicationReport().GetAmRmToken())
		return len(am.Identifier) > 0
	})
	return yarnrpc.NewApplicationMasterProtocolClient(
		f.RPC,
		f.Member(home).D.Addresses().Scheduler,
		hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: am.Identifier,
				Password:   am.Password,
				Kind:       am.Kind,
				Service:    am.Service,
			},
		},
	)
}
