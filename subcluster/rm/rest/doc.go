// SPDX-License-Identifier: Apache-2.0

// Package rest serves a ResourceManager (package server) over HTTP. /ws/v1/cluster has the documents of Hadoop YARN
// 3.4, in JSON and XML, for browsers, scripts, exporters and routers.
//
// One function writes both forms of a document, over a writer that supports JSON and XML. It reads the machine's views
// directly. Long lists stay cheap because it uses no reflection and no intermediate tree. Field names and their order
// are YARN's.
package rest
