// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/router"
)

// Each REST document has a handler, and each handler by name is of a document.
func TestEachDocumentHasItsHandler(t *testing.T) {
	for _, doc := range router.Documents {
		_, named := byName[doc.Name]
		_, routed := byRoute[doc.Route]
		if merged := doc.Route == router.Merged && doc.Type != ""; doc.Protocol == "REST" && !named && !routed && !merged {
			t.Errorf("%s has no handler", doc.Name)
		}
	}
	for name := range byName {
		if !slices.ContainsFunc(router.Documents, func(d router.Document) bool {
			return d.Protocol == "REST" && d.Name == name
		}) {
			t.Errorf("%s is no document of routers", name)
		}
	}
}
