// SPDX-License-Identifier: Apache-2.0

package compare

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page/report.html
var reportPage string

var report = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": func(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) },
	"seconds": Seconds,
	"hours":   func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"one":     func(v float64) string { return fmt.Sprintf("%.2f", v) },
}).Parse(reportPage))

// Seconds formats a time for the tables.
func Seconds(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f s", v)
	}
	return fmt.Sprintf("%.0f s", v)
}

// chart has lines over time, drawn as SVG in the page.
type chart struct {
	Title string
	Top   float64
	Lines []line
	Label string // the same as text
}

type line struct{ Name, Class, Points string }

const chartWidth, chartHeight = 600.0, 120.0

// draw adds a line; the chart's upper edge is 100 %, or less if all lines are lower.
func (c *chart) draw(name, class string, values []float64) {
	var b strings.Builder
	for i, v := range values {
		x := chartWidth * float64(i) / max(1, float64(len(values)-1))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, chartHeight-4-(chartHeight-8)*v/c.Top)
	}
	c.Lines = append(c.Lines, line{name, class, strings.TrimSpace(b.String())})
}

func top(lines ...[]float64) float64 {
	out := 0.01
	for _, l := range lines {
		for _, v := range l {
			out = max(out, v)
		}
	}
	return out
}

// pair has the figures of one queue, or of one member, in all runs.
type pair[T any] struct {
	Name  string
	Rows  []row[T]
	Chart chart
}

type row[T any] struct {
	Run, Class string
	T          T
}

// classes are the runs' colours and strokes.
var classes = []string{"a", "b"}

func pairs[T any](
	runs []Run,
	list func(*Run) []T,
	name func(*T) string,
	title string,
	lines func(*T) map[string][]float64,
) (out []*pair[T]) {
	by := map[string]*pair[T]{}
	for i := range runs {
		for j := range list(&runs[i]) {
			t := list(&runs[i])[j]
			p := by[name(&t)]
			if p == nil {
				p = &pair[T]{Name: name(&t)}
				by[p.Name] = p
				out = append(out, p)
			}
			p.Rows = append(p.Rows, row[T]{runs[i].Name, classes[i], t})
		}
	}
	for _, p := range out {
		var all [][]float64
		for i := range p.Rows {
			for _, l := range lines(&p.Rows[i].T) {
				all = append(all, l)
			}
		}
		p.Chart = chart{Title: fmt.Sprintf(title, p.Name), Top: top(all...)}
		p.Chart.Label = fmt.Sprintf("%s; the upper edge is %.1f%%", p.Chart.Title, 100*p.Chart.Top)
		for i := range p.Rows {
			set := lines(&p.Rows[i].T)
			for _, what := range []string{"used", "entitled"} {
				if l, ok := set[what]; ok {
					p.Chart.draw(what+", "+p.Rows[i].Run, p.Rows[i].Class+" "+what, l)
				}
			}
		}
	}
	return out
}

// HTML writes one page about one or two runs; about describes the workload.
func HTML(w io.Writer, about []string, runs []Run) error {
	ofQueue := func(q *Queue) map[string][]float64 {
		return map[string][]float64{"used": q.UsedOver, "entitled": q.EntitledOver}
	}
	ofMember := func(m *Member) map[string][]float64 { return map[string][]float64{"used": m.UsedOver} }
	return report.Execute(w, map[string]any{
		"About": about,
		"Runs":  runs,
		"Queues": pairs(runs, func(r *Run) []Queue { return r.Queues },
			func(q *Queue) string { return string(q.Queue) }, "%s: used and entitled, of the federation", ofQueue),
		"Members": pairs(runs, func(r *Run) []Member { return r.Members },
			func(m *Member) string { return string(m.Member) }, "%s: in use", ofMember),
	})
}
