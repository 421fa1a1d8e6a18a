// SPDX-License-Identifier: Apache-2.0

// Package query reads the query of a URL for handlers that need one or two of its values for every request. It avoids
// the map that net/url makes.
package query

import (
	"iter"
	"net/url"
	"slices"
	"strings"
)

// most is the largest number of parameters that net/url reads; it reads none of a longer query.
const most = 10_000

// Readable reports whether a query is short enough to be read.
func Readable(raw string) bool { return strings.Count(raw, "&") < most }

// Pairs returns the decoded names and values of a raw query in order: the same as url.ParseQuery, without the pairs
// that it rejects.
func Pairs(raw string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if !Readable(raw) {
			return
		}
		for raw != "" {
			var pair string
			if pair, raw, _ = strings.Cut(raw, "&"); pair == "" || strings.Contains(pair, ";") {
				continue
			}
			name, value, _ := strings.Cut(pair, "=")
			name, err := url.QueryUnescape(name)
			if err != nil {
				continue
			}
			if value, err = url.QueryUnescape(value); err == nil && !yield(name, value) {
				return
			}
		}
	}
}

// First returns the first value of a name, "" if there is none, like url.Values.Get.
func First(raw, name string) string {
	for n, value := range Pairs(raw) {
		if n == name {
			return value
		}
	}
	return ""
}

// Without returns a query without the parameters of these names, which are in lower case.
func Without(raw string, names ...string) string {
	var pairs []string
	for pair := range strings.SplitSeq(raw, "&") {
		named := false
		for name := range Pairs(pair) {
			named = named || slices.Contains(names, strings.ToLower(name))
		}
		if !named && pair != "" {
			pairs = append(pairs, pair)
		}
	}
	return strings.Join(pairs, "&")
}
