// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"slices"
	"strings"
)

// uamTag precedes the application in a UAMTag. Hadoop stores tags in lower case, and ids are lower case.
const uamTag = "creel-uam-of-"

// UAMTag returns the tag of an unmanaged AM with an id of its own; it names the application to which the AM belongs.
// Hadoop's ResourceManager accepts an application's id once, so the second unmanaged AM that an application needs
// there has another id.
func UAMTag(app ApplicationID) string { return uamTag + app.String() }

// TaggedUAM reads the application from a UAMTag; false for any other tag.
func TaggedUAM(tag string) (ApplicationID, bool) {
	id, ok := strings.CutPrefix(tag, uamTag)
	if !ok {
		return ApplicationID{}, false
	}
	app, err := ParseApplicationID(id)
	return app, err == nil
}

// uamName precedes the home in a UAMName, as in Hadoop.
const uamName = "UnmanagedAM-"

// UAMName is the name of the unmanaged AMs by which an application of this home has containers
// in other subclusters. The proxies of Hadoop and of creel call them so.
func UAMName(home SubclusterID) string { return uamName + string(home) }

// IsUAM reports whether an application of a ResourceManager is a proxy's unmanaged AM, and so a part of an
// application whose home is elsewhere. Users' unmanaged AMs are not.
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
