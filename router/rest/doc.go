// SPDX-License-Identifier: Apache-2.0

// Package rest is the router's REST server. /ws/v1/cluster has the documents of a single ResourceManager, as JSON and
// XML. /api/v1 is creel's own API.
//
// Documents about one application are home's, byte for byte. Documents about the cluster are merged from the members'
// documents by the rules of package router, field by field, so that unknown fields survive. If a member is missing in
// a merged document, the headers X-Partial-Result and X-Missing-SubClusters show that. X-Last-Known-SubClusters lists
// the members whose last list is used (creel.router.last-parts), with its age, or the home whose last report of an
// application is used. A change that is queued because the
// application's home does not answer gets 202 (Accepted). Then X-Kept is "true", and X-Kept-For-SubClusters lists the
// members that it waits for.
package rest
