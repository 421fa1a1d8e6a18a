// SPDX-License-Identifier: Apache-2.0

// Package telemetry is what watches calls of Hadoop RPC, as interceptors of
// package hrpc: traces by OpenTelemetry, figures for Prometheus, one line of
// audit for each call that changes something. It knows calls, not YARN: what a
// call is about is told by a function.
//
//	hrpc.Config{Interceptors: []hrpc.Interceptor{
//		telemetry.Trace(provider),
//		metrics.Interceptor(),
//		telemetry.Audit(logger, yarnrpc.Audited),
//	}}
//	hrpc.ClientConfig{Interceptors: []hrpc.ClientInterceptor{telemetry.TraceClient(provider)}}
//
// # How a trace travels
//
// Hadoop RPC v9 carries RPCTraceInfoProto in the header of a call. Two
// generations of Hadoop use it differently: HTrace's two numbers (trace and
// parent), and since 3.4 a span context of bytes that the stock classes leave
// empty. We send both: the bytes are W3C's traceparent, the numbers are the low
// half of its trace id and its span id, for whoever reads only those. A reader
// prefers the bytes. A Hadoop server reads past what it does not know.
package telemetry
