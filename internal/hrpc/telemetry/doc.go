// SPDX-License-Identifier: Apache-2.0

// Package telemetry observes Hadoop RPC calls, as interceptors of package hrpc: traces by OpenTelemetry, metrics for
// Prometheus, one audit line for each call that changes something. It handles calls and has no knowledge of YARN: a
// function returns the subject of a call.
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
// Hadoop RPC v9 carries RPCTraceInfoProto in the header of a call. Two generations of Hadoop use it differently:
// HTrace's two numbers (trace and parent), and since 3.4 a span context of bytes, which the stock classes leave
// empty. creel sends both: the bytes are W3C's traceparent, the numbers are the low half of its trace id and its span
// id, for readers of the numbers only. A reader prefers the bytes. A Hadoop server ignores unknown content.
package telemetry
