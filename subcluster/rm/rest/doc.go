// SPDX-License-Identifier: Apache-2.0

// Package rest serves a ResourceManager (package server) over HTTP: /ws/v1/cluster in the
// documents of Hadoop YARN 3.4, JSON and XML, for browsers, scripts, exporters
// and a router.
//
// A document is written once, by functions over a writer that knows both
// forms, straight from the machine's views: no reflection and no tree in
// between, so that long lists stay cheap. Field names and their order are
// YARN's.
package rest
