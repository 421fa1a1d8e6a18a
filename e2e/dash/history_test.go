// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/creelrm/creel/router/history"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// pastOf is a history of some subjects as another router sends it: an hour and a day of use in whole percents, with
// an entitlement of a half. Every fifth figure is unknown.
func pastOf(subjects ...history.Subject) []byte {
	var h history.History
	now := time.Unix(1_700_000_000, 0) // of another clock
	head, _ := h.Head(now)
	wire := history.AppendHead(nil, head)
	for _, s := range subjects {
		c := history.Copy{Subject: s}
		for _, r := range []history.Resolution{history.Fine, history.Coarse} {
			for i := range int(r.Slots()) {
				use := float32(1+i*7%90) / 100
				if i%5 == 0 {
					use = -1
				}
				c.Values[r][history.Use] = append(c.Values[r][history.Use], use)
				c.Values[r][history.Entitlement] = append(c.Values[r][history.Entitlement], 0.5)
			}
		}
		wire = history.AppendCopy(wire, &c)
	}
	return wire
}

// hover moves the mouse over a chart, to a part of its width, and returns its legend.
func (b *browser) hover(chart string, part float64) map[string]string {
	b.t.Helper()
	at := `[data-chart="` + chart + `"]`
	b.until("the chart is drawn", func() bool { return b.count(at+" .u-over") == 1 })
	var box struct{ X, Y, Width, Height float64 }
	text := b.eval(`document.querySelector('` + at + `').scrollIntoView({block: "center"});
		JSON.stringify(document.querySelector('` + at + ` .u-over').getBoundingClientRect())`)
	if err := json.Unmarshal([]byte(text), &box); err != nil {
		b.t.Fatal(err)
	}
	b.do(
		chromedp.MouseEvent(chromedp.MouseMoved, box.X+1, box.Y+1),
		chromedp.MouseEvent(chromedp.MouseMoved, box.X+part*box.Width, box.Y+box.Height/2),
	)
	b.until("the chart has values", func() bool { return strings.HasSuffix(b.legend(chart)["time"], "UTC") })
	return b.legend(chart)
}

// legend returns the values of a chart at its cursor.
func (b *browser) legend(chart string) (out map[string]string) {
	b.t.Helper()
	text := b.eval(`JSON.stringify(Object.fromEntries([...document.querySelectorAll('[data-chart="` + chart +
		`"] .u-series')].map((r) => [r.querySelector(".u-label").textContent, r.querySelector(".u-value").textContent])))`)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// agrees checks a legend against the API: the figures at its time.
func agrees(t *testing.T, what string, legend map[string]string, doc *rest.HistoryDoc) {
	t.Helper()
	percent := func(of rest.Figures, i int) string {
		if of == nil || of[i] == nil {
			return "–"
		}
		return fmt.Sprintf("%d %%", int(math.Round(100*float64(*of[i]))))
	}
	for i := range doc.Steps {
		at := doc.From.Add(time.Duration(float64(i+1) * doc.StepS * float64(time.Second)))
		if at.Format("15:04:05 UTC") != legend["time"] {
			continue
		}
		if use, entitled := percent(doc.Use, i), percent(doc.Entitlement, i); legend["use"] != use ||
			legend["entitlement"] != entitled {
			t.Errorf("%s: %v, by the API use %s and entitlement %s", what, legend, use, entitled)
		}
		return
	}
	t.Errorf("%s: %v is not within the %d steps from %v", what, legend, doc.Steps, doc.From)
}

// A chart has the API's figures under the mouse, which all charts of a page share, over an hour and over a day; the
// arrow keys move it. So it is on the pages of the federation, a member and a queue, in light and dark mode, and on a
// telephone.
func TestChartsHaveValuesUnderTheCursor(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	r := f.Routers[0]
	pages := map[string]history.Subject{
		"/": {}, "/members/sc-a": {Kind: history.Member, Name: "sc-a"},
		"/queues?queue=root.default": {Kind: history.Queue, Name: "root.default"},
	}
	var subjects []history.Subject
	for _, s := range pages {
		subjects = append(subjects, s)
	}
	if _, err := server.MergeHistory(r.Server, time.Now(), bytes.NewReader(pastOf(subjects...))); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	for path, subject := range pages {
		doc := func(seconds string) *rest.HistoryDoc {
			d := api[rest.HistoryDoc](t, r.Web, "/api/v1/history?subject="+subject.String()+"&range_s="+seconds)
			return &d
		}
		f.Until("the router has sampled "+subject.String(), func() bool { return doc("3600").Waiting != nil })
		b.open("http://" + r.Web + path)
		b.untilLive()
		for _, part := range []float64{0.2, 0.5, 0.503, 0.8} {
			agrees(t, path+", an hour", b.hover("use", part), doc("3600"))
		}
		b.until("the charts share the cursor", func() bool { return b.legend("waiting")["time"] == b.legend("use")["time"] })
		b.do(chromedp.Focus(`[data-chart="use"]`))
		before := b.legend("use")["time"]
		b.press(kb.ArrowLeft)
		b.until("the arrow key has moved the cursor", func() bool { return b.legend("use")["time"] != before })
		agrees(t, path+", by key", b.legend("use"), doc("3600"))
		b.axe("charts of " + subject.String())

		b.do(chromedp.Click(`.ranges [data-range="86400"]`))
		b.until("the chart has a day", func() bool {
			label := b.eval(`document.querySelector('[data-chart="use"]').getAttribute("aria-label")`)
			return strings.Contains(label, "the last day")
		})
		if pressed := b.text(`.ranges [aria-pressed="true"]`); pressed != "24 h" {
			t.Errorf("the chosen range is %q", pressed)
		}
		for _, part := range []float64{0.1, 0.5, 0.9} {
			agrees(t, path+", a day", b.hover("use", part), doc("86400"))
		}
	}
	b.open("http://" + r.Web + "/members/sc-a")
	if n := b.count("#heat rect"); n != 2 {
		t.Errorf("%d squares for two nodes", n)
	}
	b.narrow()
	for path := range pages {
		b.open("http://" + r.Web + path)
		b.hover("use", 0.5)
		if wide := b.eval("String(document.documentElement.scrollWidth)"); wide != "360" {
			t.Errorf("%s is %s wide on a screen of 360", path, wide)
		}
	}
	b.quiet()
}

// The page of the rebalancer draws the entitlements of the plan's queues over time, each with the API's figures.
func TestRebalancerChartHasEntitlements(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	r := f.Routers[0]
	plan := &subcluster.Plan{Queues: []subcluster.QueuePlan{
		{Queue: "root.default", Entitled: 0.5}, {Queue: "root.other", Entitled: 0.25},
	}}
	plan.Under(1, time.Hour)
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.PutDocument(t.Context(), statestore.DocumentWrite{
		Class: subcluster.PlanClass, Name: subcluster.PlanName, Data: data,
	}); err != nil {
		t.Fatal(err)
	}
	past := pastOf(history.Subject{Kind: history.Queue, Name: "root.default"})
	if _, err := server.MergeHistory(r.Server, time.Now(), bytes.NewReader(past)); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	b.until("the page has a chart", func() bool {
		b.open("http://" + r.Web + "/rebalancer")
		return b.count("[data-queues]") == 1
	})
	for _, part := range []float64{0.3, 0.6} {
		at := b.hover("plan", part)
		if at["root.default"] != "50 %" || at["root.other"] != "–" {
			t.Errorf("at %v of its width: %v, want half for root.default and nothing known of the other", part, at)
		}
	}
	b.axe("chart of the rebalancer")
	b.narrow()
	b.open("http://" + r.Web + "/rebalancer")
	b.hover("plan", 0.5)
	if wide := b.eval("String(document.documentElement.scrollWidth)"); wide != "360" {
		t.Errorf("it is %s wide on a screen of 360", wide)
	}
	b.quiet()
}

// A queue's page has charts of the containers that its members granted to it, and of the times that these waited.
func TestQueueHasChartsOfItsGrants(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	web := f.Routers[0].Web
	counted := func() (sum float32, quantiles bool) {
		doc := api[rest.HistoryDoc](t, web, "/api/v1/history?subject=queue/root.default&range_s=600")
		for _, n := range doc.Grants {
			if n != nil {
				sum += *n
			}
		}
		return sum, doc.GrantP50 != nil && doc.GrantP99 != nil
	}
	for _, m := range f.Members {
		f.Until("the router has looked twice at "+string(m.ID), func() bool {
			return api[rest.HistoryDoc](t, web, "/api/v1/history?subject=member/"+string(m.ID)+"&range_s=600").Grants != nil
		})
	}
	run(t, f, submit(t, f, "alice", "runs"), 3)
	f.Until("the three containers are in the queue's history", func() bool {
		sum, quantiles := counted()
		return sum == 3 && quantiles
	})
	b := newBrowser(t)
	b.open("http://" + web + "/queues?queue=root.default&user.name=alice")
	b.untilLive()
	for _, chart := range []string{"grants", "grant-times"} {
		b.until("a chart of "+chart+" is shown", func() bool { return b.count(`[data-chart="`+chart+`"]:not([hidden])`) == 1 })
	}
	b.quiet()
}
