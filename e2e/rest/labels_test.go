// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"net/http"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

//go:embed testdata/label-requests.txt
var labelRequestLines string

//go:embed testdata/label-known.txt
var labelKnownLines string

//go:embed testdata/label-federation-known.txt
var labelFederationKnownLines string

// Node labels are read and changed as with a real ResourceManager, at creel's and at a router: a list of one is
// written as Hadoop writes it.
func TestLabelDocuments(t *testing.T) {
	conf := patient.With(hadoop.Conf{"yarn.node-labels.enabled": "true"})
	theirRM := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	theirs := newSystem(t, "Hadoop", theirRM.Process, theirRM.Addresses)
	ourRM := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	ours := newSystem(t, "creel", ourRM.Process, ourRM.Addresses)
	many := newFederation(t, conf)
	for _, s := range []*system{theirs, ours, many} {
		s.play()
	}
	known, federated := rules(t, labelKnownLines), rules(t, labelFederationKnownLines)
	for _, q := range requests(t, labelRequestLines) {
		accepts := []string{"application/json"}
		if q.method == http.MethodGet {
			accepts = append(accepts, "application/xml")
		}
		for _, accept := range accepts {
			where := q.name
			if strings.HasSuffix(accept, "xml") {
				where += ":xml"
			}
			real := theirs.answer(t, q, accept)
			compare(t, where, "testdata/label-known.txt", known, theirs.name, real, ours.answer(t, q, accept))
			compare(t, where, "testdata/label-federation-known.txt", federated, theirs.name, real, many.answer(t, q, accept))
		}
	}
	unused(t, "testdata/label-known.txt", known)
	unused(t, "testdata/label-federation-known.txt", federated)
}
