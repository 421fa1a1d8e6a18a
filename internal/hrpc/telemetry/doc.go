// SPDX-License-Identifier: Apache-2.0

// Package telemetry observes Hadoop RPC calls with interceptors of package hrpc. It writes OpenTelemetry traces,
// Prometheus metrics, and one audit line for each call that changes something. It contains no YARN code: a function
// returns the subject of a call.
//
//	hrpc.Config{Interceptors: []hrpc.Interceptor{
//		telemetry.Trace(provider),
//		metrics.Interceptor(),
//		telemetry.Audit(logger, yarnrpc.Audited),
//	}}
//	hrpc.ClientConfig{Interceptors: []hrpc.ClientInterceptor{telemetry.TraceClient(provider)}}
//
// # Trace propagation
//
// Hadoop RPC v9 carries RPCTraceInfoProto in the header of a call. Two generations of Hadoop use it differently. HTrace
// used two numbers (trace and parent). Since 3.4 the field is a span context of bytes, which the stock classes leave
// empty. creel sends both. The bytes are W3C's traceparent. The numbers are the low half of its trace id and its span
// id, for readers of the numbers only. A reader prefers the bytes. A Hadoop server ignores unknown content.
package telemetry
