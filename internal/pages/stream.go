// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// These enclose the changing parts of a page; browsers treat them as comments. The templates write them by {{live
// "name"}} and {{over "name"}}.
const (
	beginMark = "<!--live:"
	endMark   = "<!--over:"
	closeMark = "-->"
)

// every is the interval between renderings of an open page.
const every = time.Second

// stream updates one page. Each second it renders the page named by ?at=, in the name of the stream's viewer, and sends
// the changed parts. The browser tells the digest of the parts that it shows, by ?had= or, when it connects again, by
// the last event's id; at another digest the first round sends all parts. All streams share the requests to members
// (see router/rest).
func (d *Site) stream(w http.ResponseWriter, r *http.Request) {
	at, err := url.Parse(r.URL.Query().Get("at"))
	if err != nil || at.Scheme != "" || at.Host != "" || len(at.Path) == 0 || at.Path[0] != '/' {
		http.Error(w, "at is no path of a page", http.StatusBadRequest)
		return
	}
	q := at.Query()
	for name, values := range identity(r.URL.Query()) {
		q[name] = values
	}
	at.RawQuery = q.Encode()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	tick := time.NewTicker(every)
	defer tick.Stop()
	had := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("had"))
	var before map[string]string
	for {
		now, status, err := d.parts(r, at)
		if err != nil || r.Context().Err() != nil {
			return
		}
		var b bytes.Buffer
		all := before == nil && had != digest(now)
		for name, html := range now {
			if was, there := before[name]; all || there && was != html {
				line, _ := json.Marshal(map[string]string{"part": name, "html": html}) // texts: no error
				fmt.Fprintf(&b, "event: part\ndata: %s\n\n", line)
			}
		}
		if before == nil || status == http.StatusOK && len(before) != len(now) {
			before = now
		}
		for name, html := range now {
			before[name] = html
		}
		fmt.Fprintf(&b, "event: alive\nid: %s\ndata: %d\n\n", digest(before), status)
		if _, err := w.Write(b.Bytes()); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-d.done:
			return
		}
	}
}

// parts renders a page and extracts its live parts.
func (d *Site) parts(r *http.Request, at *url.URL) (map[string]string, int, error) {
	look, err := http.NewRequestWithContext(r.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	look.RemoteAddr, look.Host = r.RemoteAddr, r.Host
	// The page's own address routes it, not the stream's.
	a := &answer{head: http.Header{}, status: http.StatusOK}
	d.pages.ServeHTTP(a, withoutRoute(look))
	return cut(a.body.Bytes()), a.status, nil
}

func cut(html []byte) map[string]string {
	out := map[string]string{}
	for {
		_, rest, ok := bytes.Cut(html, []byte(beginMark))
		if !ok {
			return out
		}
		name, rest, _ := bytes.Cut(rest, []byte(closeMark))
		inner, rest, ok := bytes.Cut(rest, []byte(endMark+string(name)+closeMark))
		if !ok {
			return out
		}
		out[string(name)] = string(inner)
		html = rest
	}
}

// digest identifies the live parts of a page.
func digest(parts map[string]string) string {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(h, "%s %d %s", name, len(parts[name]), parts[name])
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
