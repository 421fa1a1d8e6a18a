// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// deSelects are the parts that a list of applications can omit on request.
var deSelects = []string{
	"resourceRequests", "timeouts", "appNodeLabelExpression", "amNodeLabelExpression", "resourceInfo",
}

// DeSelected returns the parts that a query names. why is YARN's error for an unknown part, "" otherwise.
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
