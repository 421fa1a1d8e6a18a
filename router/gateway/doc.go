// SPDX-License-Identifier: Apache-2.0

// Package gateway is the driver beneath the router's doors: it holds the view,
// the clients of the members and the memory of recent decisions, and performs
// what package router decides. The RPC door, the REST door and the dashboard
// stand on it and share it; it knows neither protobuf nor JSON.
//
// It promises: a submission is forwarded as the client sent it; the home of an
// application is found without the store when it was seen lately; a question
// to several members is asked of all at once and waits for each no longer than
// its kind of call allows; a kill reaches every member that may run a twin.
package gateway
