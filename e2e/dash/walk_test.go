// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
)

// mostRows is the length of a page of a table.
const mostRows = 50

// walked is a federation with more applications than fit on one page, and all its pages.
func walked(t *testing.T) (b *browser, base string, paths []string) {
	t.Helper()
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1, Settings: []string{
		"yarn.scheduler.capacity.maximum-am-resource-percent=1",
	}})
	runs := submit(t, f, "alice", "runs")
	run(t, f, runs, 3)
	for i := range mostRows + 4 {
		submit(t, f, []string{"bob", "carol"}[i%2], fmt.Sprintf("waits %02d", i))
	}
	web := f.Routers[0].Web
	expect := int64(0)
	for _, d := range []string{`{"home":{"policy":"balanced"}}`, `{"home":{"policy":"uniform"}}`} {
		p, err := f.Store.PutPolicy(t.Context(), statestore.PolicyWrite{
			Queue: "root.default", Document: []byte(d), Author: "ann", Comment: "to try", Expect: expect,
		})
		if err != nil {
			t.Fatal(err)
		}
		expect = p.Version
	}
	f.Until("the overview counts all", func() bool {
		doc := api[rest.OverviewDoc](t, web, "/api/v1/overview")
		return doc.Apps != nil && doc.Apps.Running == 1 && doc.Apps.Waiting == mostRows+4 &&
			doc.Sum.ContainersAllocated == 3 && doc.Sum.ActiveNodes == 4
	})
	f.Until("the queue's use is told", func() bool {
		tree := api[rest.QueueTreeDoc](t, web, "/api/v1/queues").Queues
		return slices.ContainsFunc(tree, func(q rebalancerQueue) bool {
			return q.Queue == "root.default" && q.Running+q.Waiting == mostRows+5
		})
	})
	b = newBrowser(t)
	id := "/apps/" + runs.String()
	for _, path := range []string{
		"/", "/apps", "/apps?group=user", id, id + "/events", "/queues?queue=root.default", "/members", "/members/sc-a", "/nodes",
		"/nodes/" + nodeWithContainers(t, web).ID,
		"/policies", "/policies/root.default", "/rebalancer", "/events", "/operations",
	} {
		paths = append(paths, path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"user.name=root")
	}
	return b, "http://" + web, paths
}

// nodeWithContainers returns the node with the most containers.
func nodeWithContainers(t *testing.T, web string) rest.NodeRow {
	t.Helper()
	nodes := api[rest.NodesDoc](t, web, "/api/v1/nodes?sort=containers&user.name=root").Nodes
	if len(nodes) == 0 || nodes[0].Containers == 0 {
		t.Fatalf("no node has a container: %+v", nodes)
	}
	return nodes[0]
}

// A node leads to its containers, each of these to its application, and the application's containers lead back. While
// the member is away, the page has the last data and the reason within a second.
func TestNodeLeadsToContainersAndApplications(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, Routers: 1})
	id := submit(t, f, "alice", "runs")
	run(t, f, id, 3)
	web := f.Routers[0].Web
	f.Until("a node counts its containers", func() bool {
		return len(api[rest.NodesDoc](t, web, "/api/v1/nodes?sort=containers").Nodes) == 4 &&
			api[rest.NodesDoc](t, web, "/api/v1/nodes?sort=containers").Nodes[0].Containers > 0
	})
	n := nodeWithContainers(t, web)
	b := newBrowser(t)
	follow := func(selector, page string) {
		t.Helper()
		b.until(selector+" is there", func() bool { return b.count(selector) > 0 })
		b.eval(`document.querySelector(` + strconv.Quote(selector) + `).click(); ""`)
		b.until(selector+" leads to "+page, func() bool {
			return b.eval("location.pathname") == page && b.eval("document.readyState") == "complete"
		})
	}
	b.open("http://" + web + "/nodes?sort=containers&user.name=alice")
	follow("#nodes tbody th a", "/nodes/"+n.ID)
	b.untilLive()
	rows := b.rows("#containers")
	if int64(len(rows)) != n.Containers || rows[0][2] != "runs" || rows[0][3] != "alice" || rows[0][5] != "512 MiB" {
		t.Errorf("of %d containers the page has %q", n.Containers, rows)
	}
	if line := b.text("#command"); line != "creel node containers "+n.ID+" --subcluster "+string(n.Member) {
		t.Errorf("the command is %q", line)
	}
	b.axe("a node")
	follow("#containers td a", "/apps/"+id.String())
	follow(`#containers td a[href="/nodes/`+n.ID+`"]`, "/nodes/"+n.ID)
	b.open("http://" + web + "/nodes/" + n.ID + "?kind=queued&user.name=alice")
	if rows := b.rows("#containers"); len(rows) != 1 || len(rows[0]) != 1 {
		t.Errorf("the queue of the node has %q", rows)
	}

	f.Member(n.Member).Web.Cut()
	b.open("http://" + web + "/nodes/" + n.ID + "?user.name=alice")
	if text := b.text("#problem"); !strings.Contains(text, string(n.Member)+" does not list them") {
		t.Errorf("without its member the page says %q", text)
	}
	b.until("its figures are marked as old", func() bool { return strings.Contains(b.text("main .warning"), "old") })
	f.Member(n.Member).Web.Mend()
	b.until("its containers are back", func() bool {
		return b.count("#problem") == 0 && int64(len(b.rows("#containers"))) == n.Containers
	})
	b.quiet()
}

// column is one column of a table as it is in the browser.
type column struct {
	Sort   string // aria-sort
	Values []string
}

// column reads the shown values of a column: the instant of a time, the words of a bar, the text of another cell. whole
// is false while the page is being loaded, when rows may lack cells.
func (b *browser) column(table string, index int) (c column, whole bool) {
	b.t.Helper()
	text := b.eval(fmt.Sprintf(`(() => { const t = document.getElementById(%q);
		if (!t || document.readyState !== "complete") return "";
		return JSON.stringify({
		Sort: t.tHead.rows[0].cells[%d].getAttribute("aria-sort"),
		Values: [...t.tBodies[0].rows].filter((r) => !r.hidden && !r.matches(".part") && r.cells.length > 1).map((r) => {
			const c = r.cells[%d];
			return c.querySelector("time")?.dateTime ?? (c.innerText.trim() || (c.querySelector("svg")?.ariaLabel ?? ""));
		})}); })()`, table, index, index))
	if text == "" {
		return c, false
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		b.t.Fatal(err)
	}
	return c, true
}

// wholeColumn is column once the page is loaded.
func (b *browser) wholeColumn(table string, index int) (c column) {
	b.t.Helper()
	b.until("the table "+table+" is whole", func() (whole bool) {
		c, whole = b.column(table, index)
		return whole
	})
	return c
}

var figure = regexp.MustCompile(`^(-?[0-9.,]+) ?(%|MiB|GiB|s|min|h)?($|[,;/ ])`)

// amount reads a cell's number, in its least unit.
func amount(text string) (v float64, ok bool) {
	m := figure.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if unit := map[string]float64{"GiB": 1024, "min": 60, "h": 3600}[m[2]]; unit > 0 {
		v *= unit
	}
	return v, err == nil
}

// isSorted fails unless the values of a column are in the order of its head; cells without a value are last.
func (c column) isSorted(t *testing.T, what string) {
	t.Helper()
	values := slices.DeleteFunc(slices.Clone(c.Values), func(v string) bool { return v == "" || v == "–" })
	sorted := slices.IsSortedFunc(values, func(x, y string) int {
		order := strings.Compare(strings.ToLower(x), strings.ToLower(y))
		v, isNumber := amount(x)
		if w, both := amount(y); isNumber && both {
			order = cmp.Compare(v, w)
		}
		if c.Sort == "descending" {
			return -order
		}
		return order
	})
	if !sorted || c.Sort != "ascending" && c.Sort != "descending" {
		t.Errorf("%s is sorted %q: %q", what, c.Sort, c.Values)
	}
}

// Every table of every page sorts by each of its columns, by mouse and keyboard, and shows one page of its rows.
func TestEveryTableSortsAndPages(t *testing.T) {
	b, base, paths := walked(t)
	for _, path := range paths {
		began := time.Now()
		b.open(base + path)
		b.untilLive()
		b.eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; }), ""`)
		var tables []struct {
			ID    string
			Rows  int
			Heads []struct{ Title, Way string }
		}
		text := b.eval(`JSON.stringify([...document.querySelectorAll("main table:not(.u-legend)")].map((t) => ({ ID: t.id,
			Rows: [...t.tBodies[0].rows].filter((r) => !r.hidden && !r.matches(".part")).length,
			Heads: [...t.tHead.rows[0].cells].map((h) => ({ Title: h.innerText,
				Way: h.matches("[data-fixed]") ? "fixed" : h.querySelector(".sort")?.tagName ?? "none" })) })))`)
		if err := json.Unmarshal([]byte(text), &tables); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			what := path + ", table " + table.ID
			if table.ID == "" || table.Rows > mostRows {
				t.Errorf("%s shows %d rows", what, table.Rows)
			}
			for i, head := range table.Heads {
				if head.Way == "fixed" {
					if !slices.Contains([]string{"Change", "Logs"}, head.Title) {
						t.Errorf("%s does not sort by %s", what, head.Title)
					}
					continue
				}
				for range 2 - min(i, 1) { // back by the first column
					before := b.wholeColumn(table.ID, i).Sort
					at := fmt.Sprintf(`#%s thead th:nth-child(%d) .sort`, table.ID, i+1)
					if b.count(at) != 1 {
						t.Fatalf("%s does not sort by %s", what, head.Title)
					}
					if i%2 == 0 {
						b.eval(`document.querySelector(` + strconv.Quote(at) + `).focus(); ""`)
						b.press(kb.Enter)
					} else {
						b.eval(`document.querySelector(` + strconv.Quote(at) + `).click(); ""`)
					}
					var c column
					b.until(what+" sorts by "+head.Title, func() (whole bool) {
						c, whole = b.column(table.ID, i)
						return whole && c.Sort != before
					})
					c.isSorted(t, what+" by "+head.Title)
				}
			}
		}
		t.Logf("%s: %v", path, time.Since(began))
	}
	// The order is in the address, survives the next update, and a third turn ends it.
	b.open(base + "/members?sort=members.-member")
	b.untilLive()
	if first := b.rows("#members")[0][0]; first != "sc-b" {
		t.Errorf("the address sorts %s first", first)
	}
	b.until("the page has been updated", func() bool {
		return b.eval(`window.row ??= document.querySelector("#members tbody tr"), String(!window.row.isConnected)`) == "true"
	})
	b.wholeColumn("members", 0).isSorted(t, "the members after an update")
	for _, want := range []string{"?sort=members.member", ""} {
		b.do(chromedp.Click("#sort-members-member"))
		if at := b.eval("location.search"); at != want && want != "" {
			t.Errorf("the address is %q, want %q", at, want)
		}
	}
	// The list of applications goes on in its order.
	b.open(base + "/apps?sort=-name&user.name=root")
	b.do(chromedp.Click("#next"))
	b.until("the second page is there", func() bool { return len(b.rows("#apps")) == 5 })
	if rows := b.rows("#apps"); rows[4][0] != "runs" || rows[3][0] != "waits 00" {
		t.Errorf("the second page by name: %q", rows)
	}
	b.quiet()
}

// exact is a time in full, which may only stand in the title of an element.
const exact = `20[0-9]{2}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}`

// Every time is relative, with its instant in an element of its own. Each page has a name as its title. Its actions
// are above its tables. On a telephone the state is beside the first column.
func TestTimesTitlesActionsAndStates(t *testing.T) {
	b, base, paths := walked(t)
	for _, path := range paths {
		b.open(base + path)
		b.untilLive()
		var times []struct{ Text, Title, Instant string }
		text := b.eval(`JSON.stringify([...document.querySelectorAll("time")].map(
			(e) => ({ Text: e.innerText, Title: e.title, Instant: e.dateTime })))`)
		if err := json.Unmarshal([]byte(text), &times); err != nil {
			t.Fatal(err)
		}
		relative := regexp.MustCompile(`^(now|in \d+ (s|min)|\d+ (s|min|h|days) ago)$`)
		for _, at := range times {
			if !relative.MatchString(at.Text) || !regexp.MustCompile(`^`+exact+` UTC$`).MatchString(at.Title) ||
				!regexp.MustCompile(`^`+exact+`\.[0-9]{3}Z$`).MatchString(at.Instant) {
				t.Errorf("%s has the time %+v", path, at)
			}
		}
		stray := b.eval(`(() => { const found = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
			for (let n = walk.nextNode(); n; n = walk.nextNode())
				if (/\d (s|min|h|days) ago|` + exact + `/.test(n.data) && !n.parentElement.closest("time, pre, code, textarea")) found.push(n.data);
			return found.join("; "); })()`)
		if stray != "" {
			t.Errorf("%s has times without their instant: %s", path, stray)
		}
		title, head := b.eval("document.title"), b.text("h1")
		if title != head+" · creel" || strings.Contains(head, "application_") {
			t.Errorf("%s has the title %q and the heading %q", path, title, head)
		}
		if below := b.eval(`(() => { const table = document.querySelector("main table:not(.u-legend)"), action = document.querySelector(".actions");
			return String(!!action && !!table && !!(action.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_PRECEDING)); })()`); below != "false" {
			t.Errorf("%s has its actions below a table", path)
		}
	}
	b.narrow()
	for _, path := range paths {
		b.open(base + path)
		hidden := b.eval(`JSON.stringify([...document.querySelectorAll("main table:not(.u-legend)")].flatMap((t) => {
			const at = [...t.tHead.rows[0].cells].findIndex((h) => h.innerText.trim().startsWith("State"));
			return at < 0 ? [] : [...t.rows].filter((r) => r.cells.length > at && !r.hidden && r.cells[at].getBoundingClientRect().width > 0)
				.filter((r) => { const s = r.cells[at].querySelector(".state") ?? r.cells[at]; return s.getBoundingClientRect().right > 360; })
				.slice(0, 1).map((r) => t.id + ": " + r.innerText); }))`)
		if hidden != "[]" {
			t.Errorf("%s hides states on a telephone: %s", path, hidden)
		}
		if wide := b.eval("String(document.documentElement.scrollWidth)"); wide != "360" {
			t.Errorf("%s is %s wide on a screen of 360", path, wide)
		}
	}
	b.quiet()
}

// The numbers of things on every page lead to lists with as many rows.
func TestNumbersLeadToTheirLists(t *testing.T) {
	b, base, paths := walked(t)
	checked := map[string]bool{}
	for _, path := range paths {
		b.open(base + path)
		var links []struct{ Text, To string }
		text := b.eval(`JSON.stringify([...document.querySelectorAll("main a.count")].map(
			(a) => ({ Text: a.innerText, To: a.getAttribute("href") })))`)
		if err := json.Unmarshal([]byte(text), &links); err != nil {
			t.Fatal(err)
		}
		if path == paths[0] && len(links) < 7 { // four tiles, two of a queue, one of a reason
			t.Errorf("the overview has only the numbers %v", links)
		}
		for _, link := range links {
			if checked[link.Text+link.To] {
				continue
			}
			checked[link.Text+link.To] = true
			b.open(base + link.To)
			rows, sum := b.all("main table:not(.u-legend)")
			if link.To == "/apps?sort=containers" {
				rows = sum
			}
			if fmt.Sprint(rows) != link.Text {
				t.Errorf("%s: the number %s leads to %d rows of %s", path, link.Text, rows, link.To)
			}
		}
	}
	if len(checked) < 15 {
		t.Errorf("only %d numbers were followed: %v", len(checked), checked)
	}
	b.quiet()
}

// all counts the rows of a page's first table over all its pages, and sums its column of containers.
func (b *browser) all(table string) (rows, containers int) {
	b.t.Helper()
	for {
		counts := strings.Fields(b.eval(`(() => { const t = document.querySelector(` + strconv.Quote(table) + `);
			const at = [...t.tHead.rows[0].cells].findIndex((h) => h.innerText.trim().startsWith("Containers"));
			const rows = [...t.tBodies[0].rows].filter((r) => r.cells.length > 1);
			return rows.length + " " + rows.reduce((sum, r) => sum + (Number(r.cells[at]?.innerText) || 0), 0); })()`))
		n, _ := strconv.Atoi(counts[0])
		c, _ := strconv.Atoi(counts[1])
		rows, containers = rows+n, containers+c
		if b.count("#next") == 0 {
			return rows, containers
		}
		here := b.eval("location.search")
		b.eval(`document.getElementById("next").click(); ""`)
		b.until("the next page is there", func() bool {
			return b.eval("location.search") != here && b.eval("document.readyState") == "complete"
		})
	}
}
