// SPDX-License-Identifier: Apache-2.0

// Package rest is the router's REST server: /ws/v1/cluster in the shapes of one
// ResourceManager, JSON and XML, and /api/v1, creel's own.
//
// Documents about one application are the home's, byte for byte; documents
// about the cluster are merged from the members' by the rules of package
// router, field by field, so that fields unknown here survive. Where a member
// is missing from a merged document the headers X-Partial-Result and
// X-Missing-SubClusters say so; X-Last-Known-SubClusters names those of which a list has the last part
// (creel.router.last-parts), and how old that is. A change that waits, as the application's home does not answer, is
// answered with 202 (Accepted); X-Kept is "true" then, and X-Kept-For-SubClusters says for whom it waits.
package rest
