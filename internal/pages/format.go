// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html/template"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/units"
)

// functions are the functions available to the templates.
var functions = template.FuncMap{
	"live":    func(name string) template.HTML { return template.HTML(beginMark + name + closeMark) },
	"over":    func(name string) template.HTML { return template.HTML(endMark + name + closeMark) },
	"memory":  func(mb any) (string, error) { n, err := whole(mb); return units.Memory(n), err },
	"number":  units.Number,
	"percent": percent,
	"share":   Share,
	"age":     units.Age,
	"at":      At,
	"millis":  func(ms any) (template.HTML, error) { n, err := whole(ms); return At(time.UnixMilli(n)), err },
	"ages":    func(text string) template.HTML { return ages(time.Now(), text) },
	"since":   func(age float64) template.HTML { return Since(time.Now(), age) },
	"bar":     NewBar,
	"count":   func(n int64, to string) count { return count{n, to} },
	"mark":    mark,
	"add":     func(a, b int64) int64 { return a + b },
	"hundred": func(v float64) float64 { return 100 * v },
	// A queue in a path; "*" and the other characters of a queue name remain unchanged.
	"pathqueue": func(q any) string { return fmt.Sprint(q) },
}

// whole converts a template's number.
func whole(n any) (int64, error) {
	switch n := n.(type) {
	case int64:
		return n, nil
	case Figure:
		return int64(n), nil
	}
	return 0, fmt.Errorf("%v is no whole number", n)
}

func percent(v any) (string, error) {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', 1, 64) + "%", nil
	case Real:
		return strconv.FormatFloat(float64(v), 'f', 1, 64) + "%", nil
	}
	return "", fmt.Errorf("%v is no share", v)
}

// Share returns a part of a whole in percent; 0 if the whole is 0.
func Share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Stamp formats a time with its date, "–" for none.
func Stamp(t time.Time) string {
	if t.IsZero() || t.UnixMilli() <= 0 {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// instantLayout is the form of instants in datetime.
const instantLayout = "2006-01-02T15:04:05.000Z"

// At returns a time as an element: the exact instant, which the script times.js replaces by its distance from now and
// leaves in the title. So the text of a live part changes only with its data. "–" is no time.
func At(t time.Time) template.HTML { return instant(t, Stamp(t)) }

// Since returns the time of an event that happened some seconds before now.
func Since(now time.Time, age float64) template.HTML {
	return instant(now.Add(-time.Duration(age*float64(time.Second))).Truncate(time.Second), units.Age(age)+" ago")
}

// agesIn matches ages in a sentence, as units.Age writes them.
var agesIn = regexp.MustCompile(`([0-9.]+) (s|min|h|days) ago`)

// ages returns a sentence in which each age is an element as of Since.
func ages(now time.Time, text string) template.HTML {
	return template.HTML(agesIn.ReplaceAllStringFunc(template.HTMLEscapeString(text), func(age string) string {
		parts := agesIn.FindStringSubmatch(age)
		n, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			return age
		}
		return string(Since(now, n*map[string]float64{"s": 1, "min": 60, "h": 3600, "days": 86400}[parts[2]]))
	}))
}

func instant(t time.Time, text string) template.HTML {
	if t.IsZero() || t.UnixMilli() <= 0 {
		return template.HTML("–")
	}
	return template.HTML(`<time datetime="` + t.UTC().Format(instantLayout) + `" title="` + Stamp(t) + ` UTC">` + text +
		`</time>`)
}

// count is a number of things, and the address of their list; "" if there is none.
type count struct {
	N  int64
	To string
}

// mark returns the class and the sign of a state: colour is never the only difference.
func mark(state string) string {
	switch strings.ToLower(state) {
	case "active", "running", "good", "succeeded", "finished":
		return "good"
	case "draining", "suspect", "accepted", "submitted", "new", "new_saving", "warn", "decommissioning", "unhealthy":
		return "warn"
	case "lost", "failed", "bad":
		return "bad"
	}
	return "plain"
}

// Bar is a bullet bar in percent. It shows the used part, the pending part behind it, and marks for the guarantee and
// the maximum.
type Bar struct {
	Used, Pending      float64 // widths
	Guarantee, Maximum float64 // positions; -1: none
	Label              string  // the same in words
	Over               bool    // the used part exceeds the guarantee
}

func NewBar(used, pending, guarantee, maximum float64) Bar {
	at := func(v float64) float64 { return math.Round(10*min(max(v, 0), 100)) / 10 }
	b := Bar{Used: at(used), Guarantee: -1, Maximum: -1, Over: guarantee > 0 && used > guarantee}
	b.Pending = at(min(pending, 100-b.Used))
	b.Label = fmt.Sprintf("%.1f%% used", used)
	if pending > 0 {
		b.Label += fmt.Sprintf(", %.1f%% asked for", pending)
	}
	if guarantee >= 0 {
		b.Guarantee = at(guarantee)
		b.Label += fmt.Sprintf(", %.1f%% guaranteed", guarantee)
	}
	if maximum > 0 && maximum < 100 {
		b.Maximum = at(maximum)
		b.Label += fmt.Sprintf(", %.1f%% at most", maximum)
	}
	return b
}

// Chart is a line over time, drawn as SVG during rendering.
type Chart struct {
	Title, Unit string
	Lines       []string // of points "x,y", one for each run of known values
	Top         string   // the value at the upper edge
	Last        string   // the newest value, or "not known"
	Label       string
	Minutes     float64
}

const (
	chartWidth, chartHeight = 600.0, 110.0
	chartSpan               = 120 // points
)

// NewChart draws values at equal intervals, oldest first; negative values are unknown.
func NewChart(title, unit string, values []float64) Chart {
	c := Chart{Title: title, Unit: unit, Last: "not known", Minutes: 10}
	top := 1.0
	for _, v := range values {
		top = max(top, v)
	}
	c.Top = short(top)
	var run []string
	flush := func() {
		if len(run) > 0 {
			c.Lines = append(c.Lines, strings.Join(run, " "))
		}
		run = nil
	}
	for i, v := range values {
		if v < 0 {
			flush()
			continue
		}
		x := chartWidth * float64(chartSpan-len(values)+i) / (chartSpan - 1)
		run = append(run, fmt.Sprintf("%.1f,%.1f", x, chartHeight-4-(chartHeight-8)*v/top))
	}
	flush()
	if n := len(values); n > 0 && values[n-1] >= 0 {
		c.Last = short(values[n-1])
	}
	c.Label = fmt.Sprintf("%s over the last ten minutes: now %s, at most %s %s", title, c.Last, c.Top, unit)
	return c
}

func short(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return units.Number(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
