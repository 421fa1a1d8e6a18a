// SPDX-License-Identifier: Apache-2.0

package servlets

import (
	"bytes"
	"math"
	"net/http"
	"os"
	"path"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// Bean is a bean of Hadoop's /jmx: exporters find beans by name and read attributes by name.
type Bean struct {
	Name, Class string
	attributes  []attribute
}

type attribute struct {
	name  string
	value any // a value for encoding/json; a float64 is written with its decimal point
}

// Set adds an attribute.
func (b *Bean) Set(name string, value any) {
	b.attributes = append(b.attributes, attribute{name, value})
}

// BeanName returns the name of a bean of one of Hadoop's daemons.
func BeanName(service, name string) string { return "Hadoop:service=" + service + ",name=" + name }

// Metrics makes a bean of a daemon's Hadoop metrics.
func Metrics(service, name, context string) Bean {
	b := Bean{Name: BeanName(service, name), Class: name}
	b.Set("tag.Context", context)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b.Set("tag.Hostname", host)
	return b
}

// jmx answers ?qry=PATTERN with the beans whose names match, ?get=NAME::ATTRIBUTE with one attribute, and a request
// without either with all beans. It answers an invalid request with 200, like Hadoop's servlet.
func (c *Config) jmx(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf8")
	w.Header().Set("Access-Control-Allow-Methods", "GET")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	pattern, attr := r.URL.Query().Get("qry"), ""
	if get := r.URL.Query().Get("get"); get != "" {
		var ok bool
		if pattern, attr, ok = strings.Cut(get, "::"); !ok {
			w.Write([]byte("{\n  \"result\" : \"ERROR\",\n  \"message\" : \"query format is not as expected.\"\n}"))
			return
		}
	}
	if pattern != "" && !strings.Contains(pattern, ":") {
		w.Write([]byte("{ }"))
		return
	}
	var all []Bean
	if c.Beans != nil {
		var err error
		if all, err = c.Beans(r); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte("{ }"))
			return
		}
	}
	all = append(all, c.Ports.beans(c.Service, time.Now())...)
	all = append(all, processBeans(c.Service, c.Started)...)
	var b bytes.Buffer
	b.WriteString("{\n  \"beans\" : [ ")
	written := 0
	for i := range all {
		if pattern != "" && !matches(pattern, all[i].Name) {
			continue
		}
		if written++; written > 1 {
			b.WriteString(", ")
		}
		all[i].write(&b, attr)
	}
	if written > 0 {
		b.WriteByte(' ')
	}
	b.WriteString("]\n}\n")
	w.Write(b.Bytes()) // an error here means that the client disconnected
}

func (b *Bean) write(out *bytes.Buffer, only string) {
	out.WriteString("{\n    \"name\" : ")
	writeJSON(out, b.Name)
	out.WriteString(",\n    \"modelerType\" : ")
	writeJSON(out, b.Class)
	for _, a := range b.attributes {
		if only != "" && a.name != only {
			continue
		}
		out.WriteString(",\n    ")
		writeJSON(out, a.name)
		out.WriteString(" : ")
		if f, ok := a.value.(float64); ok {
			out.WriteString(number(f))
			continue
		}
		writeJSON(out, a.value)
	}
	out.WriteString("\n  }")
}

// number formats a floating point number with a decimal point, like Java: readers treat a number without one as an
// integer.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0.0"
	}
	s := strconv.FormatFloat(v, 'f', -1, 32)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// matches follows javax.management.ObjectName. A pattern may contain * and ? in its domain and in the values of its
// properties. A bare * among the properties permits further properties.
func matches(pattern, name string) bool {
	glob := func(p, s string) bool {
		ok, err := path.Match(
			strings.NewReplacer("[", `\[`, "/", "\x00").Replace(p),
			strings.ReplaceAll(s, "/", "\x00"),
		)
		return err == nil && ok
	}
	pd, pp, _ := strings.Cut(pattern, ":")
	nd, np, _ := strings.Cut(name, ":")
	if !glob(pd, nd) {
		return false
	}
	have := map[string]string{}
	for kv := range strings.SplitSeq(np, ",") {
		k, v, _ := strings.Cut(kv, "=")
		have[k] = v
	}
	open, asked := false, 0
	for kv := range strings.SplitSeq(pp, ",") {
		if kv == "*" {
			open = true
			continue
		}
		k, v, _ := strings.Cut(kv, "=")
		got, ok := have[k]
		if !ok || !glob(v, got) {
			return false
		}
		asked++
	}
	return open || asked == len(have)
}

type threadCount struct {
	name  string
	count uint64
}

// goroutines counts goroutines by the state that Hadoop's charts of threads name. A goroutine that waits for a lock or
// a timer is among the waiting ones: the runtime counts no others.
func goroutines() []threadCount {
	const of = "/sched/goroutines/"
	s := []metrics.Sample{
		{Name: of + "runnable:goroutines"}, {Name: of + "running:goroutines"}, {Name: of + "not-in-go:goroutines"},
		{Name: of + "waiting:goroutines"},
	}
	metrics.Read(s)
	at := func(i int) uint64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return s[i].Value.Uint64()
	}
	return []threadCount{{"ThreadsRunnable", at(0) + at(1) + at(2)}, {"ThreadsWaiting", at(3)}}
}

// processBeans are metrics of this process, under the names used by charts of a Java process.
func processBeans(service string, started time.Time) []Bean {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	const mib = 1 << 20
	jvm := Metrics(service, "JvmMetrics", "jvm")
	jvm.Set("tag.ProcessName", service)
	jvm.Set("MemNonHeapUsedM", float64(s.StackInuse+s.MSpanInuse+s.MCacheInuse+s.OtherSys)/mib)
	jvm.Set("MemNonHeapCommittedM", float64(s.Sys-s.HeapSys)/mib)
	jvm.Set("MemHeapUsedM", float64(s.HeapAlloc)/mib)
	jvm.Set("MemHeapCommittedM", float64(s.HeapSys-s.HeapReleased)/mib)
	jvm.Set("MemHeapMaxM", float64(s.HeapSys)/mib)
	jvm.Set("MemMaxM", float64(s.Sys)/mib)
	jvm.Set("GcCount", s.NumGC)
	jvm.Set("GcTimeMillis", int64(s.PauseTotalNs/1e6))
	for _, g := range goroutines() {
		jvm.Set(g.name, g.count)
	}

	memory := Bean{Name: "java.lang:type=Memory", Class: "sun.management.MemoryImpl"}
	memory.Set(
		"HeapMemoryUsage",
		map[string]uint64{"committed": s.HeapSys - s.HeapReleased, "init": 0, "max": s.HeapSys, "used": s.HeapAlloc},
	)
	memory.Set(
		"NonHeapMemoryUsage",
		map[string]uint64{
			"committed": s.Sys - s.HeapSys,
			"init":      0,
			"max":       s.Sys,
			"used":      s.StackInuse + s.MSpanInuse + s.MCacheInuse,
		},
	)
	threads := Bean{Name: "java.lang:type=Threading", Class: "sun.management.ThreadImpl"}
	threads.Set("ThreadCount", runtime.NumGoroutine())
	process := Bean{Name: "java.lang:type=Runtime", Class: "sun.management.RuntimeImpl"}
	process.Set("StartTime", started.UnixMilli())
	process.Set("Uptime", time.Since(started).Milliseconds())
	process.Set("VmName", runtime.Version())
	system := Bean{Name: "java.lang:type=OperatingSystem", Class: "sun.management.OperatingSystemImpl"}
	system.Set("AvailableProcessors", runtime.NumCPU())
	system.Set("Arch", runtime.GOARCH)
	system.Set("Name", runtime.GOOS)
	return []Bean{jvm, memory, threads, process, system}
}
