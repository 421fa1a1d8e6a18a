// SPDX-License-Identifier: Apache-2.0

// Package history stores the last hour and the last day of the federation, its members and its queues: figures for
// each Step of the hour, and for each minute of the day. It is pure and has no lock: a router's server samples, and
// times are arguments.
//
// A figure is unknown while nobody observed it: the router did not run, its view was frozen, the member was lost. An
// unknown figure is a gap, and never 0.
//
// A minute summarizes its steps with known figures: gauges and the median have their mean, counts their sum, the 99th
// percentile its maximum.
//
// Clocks of different machines are never compared. A History counts steps of its own clock, which never goes back
// (time.Time has a monotonic reading). Routers send each other ages: the sender subtracts two readings of its clock,
// and the receiver subtracts the age from its own. So the error of an imported time is the time that the answer
// travelled, which is less than a step. The store's clock has no part: the figures are also kept while it does not
// answer.
package history
