// SPDX-License-Identifier: Apache-2.0

// Package query reads the query of a URL where a handler needs one or two of its
// values for every request, without the map that net/url makes of it.
package query

import (
	"iter"
	"net/url"
	"strings"
)

// most is how many parameters net/url reads; of a query with more it reads none.
const most = 10_000

// Pairs returns the decoded names and values of a raw query in order: the same as url.ParseQuery, without the pairs
// that it rejects.
func Pairs(raw string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if strings.Count(raw, "&") >= most {
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

// First is the first value of a name, "" for none, as in url.Values.Get.
func First(raw, name string) string {
	for n, value := range Pairs(raw) {
		if n == name {
			return value
		}
	}
	return ""
}
