// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// deSelects are what a list of applications leaves out of each, if it is asked to.
var deSelects = []string{
	"resourceRequests", "timeouts", "appNodeLabelExpression", "amNodeLabelExpression", "resourceInfo",
}

// DeSelected reads which of them a query names. Why is what YARN says to one that names another, "" else.
func DeSelected(query url.Values) (named map[string]bool, why string) {
	named = map[string]bool{}
	for _, list := range query["deSelects"] {
		for name := range strings.SplitSeq(list, ",") {
			switch name = strings.TrimSpace(name); {
			case name == "":
			case !slices.Contains(deSelects, name):
				return nil, fmt.Sprintf("Invalid deSelects string %s specified. It should be one of [%s]",
					name, strings.Join(deSelects, ", "))
			default:
				named[name] = true
			}
		}
	}
	return named, ""
}
