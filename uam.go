// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"slices"
	"strings"
)

// uamTag stands before the application in the tag that UAMTag gives. Hadoop keeps tags in
// lower case, as ids are.
const uamTag = "creel-uam-of-"

// UAMTag is the tag of an unmanaged AM with an id of its own: it says to which application
// it belongs. A ResourceManager of Hadoop's takes an application's id once, so the second
// unmanaged AM that an application needs there has another.
func UAMTag(app ApplicationID) string { return uamTag + app.String() }

// TaggedUAM reads the application from the tag that UAMTag gives; false for any other tag.
func TaggedUAM(tag string) (ApplicationID, bool) {
	id, ok := strings.CutPrefix(tag, uamTag)
	if !ok {
		return ApplicationID{}, false
	}
	app, err := ParseApplicationID(id)
	return app, err == nil
}

// uamName stands before the home in the name that UAMName gives, which is Hadoop's.
const uamName = "UnmanagedAM-"

// UAMName is the name of the unmanaged AMs by which an application of this home has containers
// in other subclusters. The proxies of Hadoop and of creel call them so.
func UAMName(home SubclusterID) string { return uamName + string(home) }

// IsUAM reports whether what a ResourceManager has is the unmanaged AM of a proxy, and so
// a part of an application whose home is another. Unmanaged AMs of users are none.
func IsUAM(unmanaged bool, name string, tags []string) bool {
	if !unmanaged {
		return false
	}
	if len(name) > len(uamName) && strings.HasPrefix(name, uamName) {
		return true
	}
	return slices.ContainsFunc(tags, func(t string) bool {
		_, tagged := TaggedUAM(t)
		return tagged
	})
}
