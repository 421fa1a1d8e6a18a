// SPDX-License-Identifier: Apache-2.0

package creel

import (
	"slices"
	"strings"
)

// uamTag precedes the application in a UAMTag. Hadoop stores tags in lower case, and ids are in lower case.
const uamTag = "creel-uam-of-"

// UAMTag returns the tag of an unmanaged AM with an id of its own. The tag names the application of the AM. Hadoop's
// ResourceManager accepts an application's id only once. So a second unmanaged AM for an application there needs
// another id.
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

// UAMName returns the name of the unmanaged AMs that get containers in other subclusters for an application of this
// home. The proxies of Hadoop and of creel use this name.
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
