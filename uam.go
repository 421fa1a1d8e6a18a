// SPDX-License-Identifier: Apache-2.0

package creel

import "strings"

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
