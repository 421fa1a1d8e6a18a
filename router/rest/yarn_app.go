// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
)

// isUAM reports whether an application is a UAM (creel.IsUAM). A search of the bytes first avoids parsing the fields
// of other applications.
func isUAM(app []byte) bool {
	if !bytes.Contains(app, named) && !bytes.Contains(app, tagged) {
		return false
	}
	unmanaged := rawjson.Flag(rawjson.Get(app, "unmanagedApplication"))
	tags := strings.Split(rawjson.Text(rawjson.Get(app, "applicationTags")), ",")
	return creel.IsUAM(unmanaged, rawjson.Text(rawjson.Get(app, "name")), tags)
}

// named is in the bytes of each UAM that has a UAM's name. It is without the quote before a name: a search for a byte
// that is in all texts takes six times as long.
var named = []byte(creel.UAMName(""))

// usage is the suffix of an application's fields that are percentages of its queue or of the cluster in its member.
const usage = "UsagePercentage"

// ofFederation converts an application's percentages from its member to the whole federation. share is the member's
// part of the federation. The document is JSON or XML.
func ofFederation(app []byte, share float64) []byte {
	before, after, ends := `"`, `":`, ",}"
	if len(app) > 0 && app[0] == '<' {
		before, after, ends = "<", ">", "<"
	}
	name := []byte(usage + after)
	out, done := []byte(nil), 0 // out is app up to done, with the changes so far
	queue, cluster := false, false
	for from := 0; !queue || !cluster; {
		at := bytes.Index(app[from:], name)
		if at < 0 {
			break
		}
		at += from
		from = at + len(name)
		switch { // the first occurrence
		case !queue && bytes.HasSuffix(app[:at], []byte(before+"queue")):
			queue = true
		case !cluster && bytes.HasSuffix(app[:at], []byte(before+"cluster")):
			cluster = true
		default:
			continue
		}
		length := bytes.IndexAny(app[from:], ends)
		if length < 0 {
			break
		}
		if v, err := strconv.ParseFloat(string(app[from:from+length]), 64); err == nil && v > 0 {
			if out == nil {
				out = make([]byte, 0, len(app)+32)
			}
			out = append(append(out, app[done:from]...), float(v*share)...)
			done = from + length
		}
	}
	if out == nil {
		return app
	}
	return append(out, app[done:]...)
}

// tagged is in the bytes of each UAM that has another id than its application. A search for it first avoids parsing
// the fields of other applications.
var tagged = []byte(strings.TrimSuffix(creel.UAMTag(creel.ApplicationID{}), creel.ApplicationID{}.String()))

// underApplication replaces the id of such a UAM by its application's id.
func underApplication(app []byte) []byte {
	if !bytes.Contains(app, tagged) || !rawjson.Flag(rawjson.Get(app, "unmanagedApplication")) {
		return app
	}
	tags := strings.Split(rawjson.Text(rawjson.Get(app, "applicationTags")), ",")
	of, ok := router.UAMOf(true, tags)
	if !ok {
		return app
	}
	own := rawjson.Text(rawjson.Get(app, "id"))
	return bytes.Replace(app, []byte(`"`+own+`"`), []byte(`"`+of.String()+`"`), 1)
}
