// SPDX-License-Identifier: Apache-2.0

// Package rest is the router's REST server: /ws/v1/cluster in the shapes of one ResourceManager, JSON and XML, and
// /api/v1, creel's own.
//
// Documents about one application are the home's, byte for byte; documents about the cluster are merged from the
// members' by the rules of package router, field by field, so that fields unknown here survive. If a member is
// missing from a merged document the headers X-Partial-Result and X-Missing-SubClusters say so.
// X-Last-Known-SubClusters names the members whose last list is used (creel.router.last-parts), and its age. A change
// that is queued because the application's home does not answer is answered with 202 (Accepted); X-Kept is "true"
// then, and X-Kept-For-SubClusters names the members it waits for.
package rest
