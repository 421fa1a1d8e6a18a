// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"slices"
	"strings"
)

// ACL is an access list of users and groups. The zero value allows no user.
type ACL struct {
	All           bool
	Users, Groups []string
}

// Allows reports whether the user, or one of the groups, is named.
func (a ACL) Allows(user string, groups []string) bool {
	if a.All || slices.Contains(a.Users, user) {
		return true
	}
	return slices.ContainsFunc(a.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// Or returns a list that allows every user that either list allows.
func (a ACL) Or(b ACL) ACL {
	return ACL{
		All:    a.All || b.All,
		Users:  slices.Concat(a.Users, b.Users),
		Groups: slices.Concat(a.Groups, b.Groups),
	}
}

// String returns Hadoop's form, which ParseACL parses: a space if no user is allowed.
func (a ACL) String() string {
	if a.All {
		return "*"
	}
	return strings.Join(a.Users, ",") + " " + strings.Join(a.Groups, ",")
}

// ParseACL parses Hadoop's form of an access list: users, a space, groups, each separated by commas. A single * on
// either side allows everybody; a single space allows no user. A list that starts with a space names only groups.
func ParseACL(text string) ACL {
	users, groups, _ := strings.Cut(strings.TrimRight(text, " \t\r\n"), " ")
	if strings.TrimSpace(users) == "*" || strings.TrimSpace(groups) == "*" {
		return ACL{All: true}
	}
	return ACL{Users: splitList(users), Groups: splitList(groups)}
}

func splitList(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
