// SPDX-License-Identifier: Apache-2.0

package apps

// viewer is the user for whom a list is read.
type viewer struct {
	user string
	may  func(acl string) bool
	told map[string]bool // answers of may, by access list
}

// sees reports whether the viewer may see all fields of an application.
func (v *viewer) sees(a *Row) bool {
	if a.viewers == everyone || v.user == a.User {
		return true
	}
	ok, known := v.told[a.viewers]
	if !known {
		ok = v.may(a.viewers)
		v.told[a.viewers] = ok
	}
	return ok
}

// lists reports whether an application is in the viewer's lists.
func (v *viewer) lists(a *Row) bool { return !a.hidden || v.sees(a) }
